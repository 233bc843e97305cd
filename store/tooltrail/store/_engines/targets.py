"""Which database is meant: an SQLite file or a PostgreSQL server. Credentials are never shown."""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from tooltrail.records import InvalidRecordError


@dataclass(frozen=True, slots=True)
class SqliteTarget:
    """A database file.

    Attributes:
        path: of the file itself, without symbolic links: SQLite keeps its other files beside it,
            and so is everything else that belongs to the store.
    """

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    @property
    def place(self) -> str:
        """The file, the same by whichever links it is reached."""
        return str(self.path)


@dataclass(frozen=True, slots=True)
class PostgresTarget:
    """A database of a PostgreSQL server, reached through psycopg 3.

    Attributes:
        url: with all credentials and options. It is never printed.
    """

    url: URL = field(repr=False)

    def __str__(self) -> str:
        return self.place

    @property
    def place(self) -> str:
        """The server and the database, the same for all users; no credentials."""
        url = self.url
        where = {name: value for name, value in url.query.items() if name in _WHERE}
        port = url.port if url.port or "port" in where else _PORT
        place = URL.create("postgresql", None, None, url.host, port, url.database, where)
        return place.render_as_string()


Target = SqliteTarget | PostgresTarget

_DRIVER = "postgresql+psycopg"
_PORT = 5432
_WHERE = frozenset({"host", "hostaddr", "port", "dbname", "service"})
"""Members of a URL's query that say which database is meant, and not who asks or how."""

_BROKEN_URL = re.compile(r"postgres(ql)?(\+\w*)?:", re.IGNORECASE)
"""The beginning of a URL that lacks a slash, such as `postgresql:/user:password@host`."""


def parse_target(database: str | Path) -> Target:
    """Read a file path, `sqlite:///PATH`, or `postgresql://…`.

    Raises:
        InvalidRecordError: another kind of database, SQLite without a file, or a URL or path that
            cannot be read.
    """
    if "\0" in str(database):
        raise InvalidRecordError("the name of a database holds a NUL character")
    if str(database) == ":memory:":
        raise InvalidRecordError("a store needs a file: a path, or sqlite:///PATH")
    if isinstance(database, Path) or "://" not in database:
        if _BROKEN_URL.match(str(database)):
            # Not taken for a file, whose name is printed: a password may stand in it.
            raise InvalidRecordError("the database URL cannot be read")
        return _file_target(database)
    try:
        url = make_url(database)
    except (ArgumentError, ValueError):
        # Without the cause, which may quote a part of a password that was taken for a port.
        raise InvalidRecordError("the database URL cannot be read") from None
    backend = url.get_backend_name()
    if backend == "sqlite":
        if not url.database or url.database == ":memory:":
            raise InvalidRecordError("a store needs a file: sqlite:///PATH")
        return _file_target(url.database)
    if backend in ("postgresql", "postgres"):
        return PostgresTarget(_with_password_in_its_place(url).set(drivername=_DRIVER))
    raise InvalidRecordError(f"{backend} is not supported; use SQLite or PostgreSQL")


def _file_target(name: str | Path) -> SqliteTarget:
    return SqliteTarget(Path(os.path.realpath(absolute_path(name))))


def absolute_path(name: str | Path) -> Path:
    """A path with `~` and `~user` replaced, from the current folder.

    Raises:
        InvalidRecordError: there is no such user, or none with a home folder.
    """
    try:
        return Path(name).expanduser().absolute()
    except RuntimeError as error:
        raise InvalidRecordError(f"the home folder in {str(name)!r} is not known") from error


def _with_password_in_its_place(url: URL) -> URL:
    """PostgreSQL takes `?password=…` too, which nothing would hide when the URL is shown."""
    passwords = url.normalized_query.get("password")
    if passwords is None:
        return url
    return url.difference_update_query(["password"]).set(password=passwords[-1])
