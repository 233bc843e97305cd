"""Which database engine keeps a store, and how much room it takes."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import text

from tooltrail.store._engines.database import Database
from tooltrail.store._engines.sqlite import sqlite3
from tooltrail.store._engines.targets import SqliteTarget


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """One database.

    Attributes:
        name: `SQLite` or `PostgreSQL`.
        version: as the engine spells it.
        size: bytes on disk; for SQLite with its write-ahead log.
    """

    name: str
    version: str
    size: int


def engine_facts(database: Database) -> EngineFacts:
    """Ask an engine about itself.

    Raises:
        UnavailableError: the database cannot be reached.
    """
    if isinstance(database.target, SqliteTarget):
        return EngineFacts("SQLite", sqlite3.sqlite_version, _file_size(database.target.path))
    with database.read() as connection:
        version = connection.scalar(text("SHOW server_version"))
        size = connection.scalar(text("SELECT pg_database_size(current_database())"))
    return EngineFacts("PostgreSQL", str(version), int(size or 0))


def _file_size(path: Path) -> int:
    size = path.stat().st_size
    # The last one to close the database removes its log.
    with suppress(FileNotFoundError):
        size += path.with_name(f"{path.name}-wal").stat().st_size
    return size
