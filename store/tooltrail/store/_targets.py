"""Which database is meant: a file of SQLite, or a PostgreSQL server. Passwords are never shown."""

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from tooltrail.records import InvalidRecordError


@dataclass(frozen=True, slots=True)
class SqliteTarget:
    """A database file."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)


@dataclass(frozen=True, slots=True)
class PostgresTarget:
    """A database of a PostgreSQL server, reached through psycopg 3."""

    url: URL

    def __str__(self) -> str:
        return self.url.render_as_string(hide_password=True)


Target = SqliteTarget | PostgresTarget


def parse_target(database: str | Path) -> Target:
    """Read a file path, `sqlite:///PATH`, or `postgresql://…`.

    Raises:
        InvalidRecordError: another kind of database, or SQLite without a file.
    """
    if isinstance(database, Path) or "://" not in database:
        return SqliteTarget(Path(database).expanduser().absolute())
    try:
        url = make_url(database)
    except ArgumentError as error:
        raise InvalidRecordError("the database URL cannot be read") from error
    backend = url.get_backend_name()
    if backend == "sqlite":
        if not url.database or url.database == ":memory:":
            raise InvalidRecordError("a store needs a file: sqlite:///PATH")
        return SqliteTarget(Path(url.database).expanduser().absolute())
    if backend in ("postgresql", "postgres"):
        return PostgresTarget(url.set(drivername="postgresql+psycopg"))
    raise InvalidRecordError(f"{backend} is not supported; use SQLite or PostgreSQL")
