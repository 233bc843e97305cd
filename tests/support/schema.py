"""Alembic on a database of a test, the way the program calls it, but in both directions."""

import io
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text

from tooltrail.store._engines.database import open_database
from tooltrail.store._engines.targets import parse_target
from tooltrail.store.tables import metadata

SCRIPTS = str(files("tooltrail.migrations"))


def alembic_config(connection: Connection | None = None) -> Config:
    config = Config(output_buffer=io.StringIO())
    config.set_main_option("script_location", SCRIPTS)
    config.attributes["target_metadata"] = metadata
    if connection is not None:
        config.attributes["connection"] = connection
    return config


def migrated(database: str | Path, step: Callable[[Config, str], object], revision: str) -> None:
    """One step of alembic in one transaction, foreign keys off as the program has them."""
    opened = open_database(parse_target(database), create=True, foreign_keys=False)
    try:
        with opened.write() as connection:
            step(alembic_config(connection), revision)
    finally:
        opened.close()


def upgraded(database: str | Path, revision: str = "head") -> None:
    migrated(database, command.upgrade, revision)


def downgraded(database: str | Path, revision: str = "base") -> None:
    migrated(database, command.downgrade, revision)


def set_revision(database: str | Path, revision: str) -> None:
    """Claim that a store is of another revision."""
    opened = open_database(parse_target(database))
    try:
        with opened.write() as connection:
            connection.execute(
                text("UPDATE tooltrail_version SET version_num = :revision"), {"revision": revision}
            )
    finally:
        opened.close()


def names_of(database: str | Path) -> set[str]:
    """Tables, indexes, triggers and functions of a database that are not the engine's own."""
    opened = open_database(parse_target(database))
    asked = _SQLITE_NAMES if opened.engine.dialect.name == "sqlite" else _POSTGRESQL_NAMES
    try:
        with opened.read() as connection:
            return set(connection.scalars(text(asked)))
    finally:
        opened.close()


_SQLITE_NAMES = "SELECT type || ' ' || name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"
_POSTGRESQL_NAMES = """
    SELECT 'table ' || tablename FROM pg_tables WHERE schemaname = 'public'
    UNION ALL SELECT 'index ' || indexname FROM pg_indexes WHERE schemaname = 'public'
    UNION ALL SELECT 'trigger ' || tgname FROM pg_trigger WHERE NOT tgisinternal
    UNION ALL SELECT 'function ' || proname FROM pg_proc
        WHERE pronamespace = 'public'::regnamespace
"""
