"""The location of a database: an SQLite file or a PostgreSQL server. Never shows credentials."""

import os
import re
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from tooltrail.records.errors import InvalidRecordError, check_type, unavailable_if_failing
from tooltrail.records.frozen import Frozen


class SqliteTarget(Frozen):
    """A database file.

    Attributes:
        path: real path of the file, without symbolic links: SQLite keeps its other files beside it.
    """

    path: Path

    def __str__(self) -> str:
        return str(self.path)


class PostgresTarget(Frozen):
    """A database of a PostgreSQL server.

    Attributes:
        url: a connection URI of libpq, with all credentials and options. Never print it.
    """

    url: str

    def __str__(self) -> str:
        """The server and the database, without user and credentials: one text for all spellings.

        The name of the spool is derived from it.
        """
        parts = urlsplit(self.url)
        hosts, name = parts.netloc.rpartition("@")[2], unquote(parts.path[1:])
        where = {name: value for name, value in parse_qsl(parts.query) if name in _WHERE}
        name = where.pop("dbname", name)  # a member of the query replaces what stands before it
        one = re.fullmatch(_ONE_HOST, hosts)
        if one and "," not in where.get("host", "") + where.get("port", ""):
            host = where.pop("host", unquote(one["host"]))
            port = where.pop("port", one["port"] or _PORT)
            if "/" in host:  # the folder of a socket
                where["host"], host = host, ""
            elif ":" in host.strip("[]"):
                host = f"[{host.strip('[]')}]"
            host = host.lower()
            hosts = f"{host}:{port}" if host or port != _PORT else ""
        query = f"?{urlencode(sorted(where.items()), quote_via=quote)}" if where else ""
        return f"postgresql://{hosts}{f'/{quote(name)}' if name else ''}{query}"

    __repr__ = __str__


Target = SqliteTarget | PostgresTarget

_MOST_PATH_BYTES: Final = 504
"""Longest path of a database: with the end `-journal`, SQLite's MAX_PATHNAME of 512."""

_PORT: Final = "5432"
_ONE_HOST: Final = r"(?P<host>\[.*\]|[^:,]*)(:(?P<port>[0-9]*))?"
_WHERE: Final = frozenset({"host", "hostaddr", "port", "dbname", "service"})
"""Members of the query of a URL that select the database."""

_BROKEN_URL: Final = re.compile(r"postgres(ql)?(\+\w*)?:", re.IGNORECASE)
"""The beginning of a URL without `//`, such as `postgresql:/user:password@host`."""

_AMBIGUOUS: Final = r"[^/]*[@?][^/]*@|[^?]*/[^?]*@|.*#"
"""A URL whose password may end at another `@` than `urlsplit` takes, so that a part of it could be
printed: it has a second `@`, or a `/`, `?` or `#` before an `@`."""

_UNREADABLE: Final = (
    "the database URL cannot be read; write postgresql://USER:PASSWORD@HOST:PORT/NAME, with %40 for"
    " an @, %2F for a /, %3F for a ? and %23 for a # in the password"
)


def parse_target(database: str | Path) -> Target:
    """Read a file path, `sqlite:///PATH`, or `postgresql://…`.

    Raises:
        InvalidRecordError: another kind of database, SQLite without a file, a folder, a URL or path
            that cannot be read, or neither a text nor a path.
    """
    check_type("database", database, str, Path)
    if "\0" in str(database):
        raise InvalidRecordError("the name of a database holds a NUL character")
    if str(database) == ":memory:":
        raise InvalidRecordError("a store needs a file: a path, or sqlite:///PATH")
    if isinstance(database, Path) or "://" not in database:
        if _BROKEN_URL.match(str(database)):
            # Not treated as a file name, which would be printed: it may contain a password.
            raise InvalidRecordError(_UNREADABLE)
        return _file_target(database)
    scheme, _, rest = database.partition("://")
    backend = scheme.partition("+")[0].lower()
    if backend == "sqlite":
        path = unquote(rest)[1:]
        if "?" in rest:
            raise InvalidRecordError("sqlite:///PATH takes no options; write %3F for a ? in PATH")
        if not rest.startswith("/") or path in ("", ":memory:"):
            raise InvalidRecordError("a store needs a file: sqlite:///PATH")
        return _file_target(path)
    if backend in ("postgresql", "postgres"):
        return _server_target(rest)
    raise InvalidRecordError(f"{backend} is not supported; use SQLite or PostgreSQL")


def absolute_path(name: str | Path) -> Path:
    """An absolute path, with `~` and `~user` replaced.

    Raises `InvalidRecordError` if the user does not exist or has no home folder, or if no file can
    have the name.
    """
    try:
        path = Path(name).expanduser().absolute()
        is_possible = b"\0" not in os.fsencode(path)
    except RuntimeError as error:
        raise InvalidRecordError(f"the home folder in {str(name)!r} is not known") from error
    except ValueError:  # a NUL in the name of a user, or text that is not Unicode
        path, is_possible = Path(name), False
    if not is_possible:
        raise InvalidRecordError(f"no file can have the name {str(name)!r}")
    return path


def is_there(target: Target) -> bool:
    """Whether there is a database file; True for a server.

    Raises:
        InvalidRecordError: the path is a pipe, a device, a loop of symbolic links, or too long.
        UnavailableError: the parent folder cannot be read.
    """
    if not isinstance(target, SqliteTarget):
        return True
    path = target.path
    with unavailable_if_failing(f"database {path} cannot be opened"):
        is_found = path.is_symlink() or path.exists()  # a real path is a link only in a loop
        if is_found and not path.is_file():
            raise InvalidRecordError(f"{path} is not a regular file; a database is one")
    if (size := len(os.fsencode(path))) > _MOST_PATH_BYTES:
        limit = f"SQLite opens no path of more than {_MOST_PATH_BYTES} bytes"
        raise InvalidRecordError(f"{limit}, and the path of {path.name} has {size}")
    return is_found


def has_driver(target: Target) -> bool:
    """Whether the driver of a database is installed. Does not import the driver."""
    if isinstance(target, SqliteTarget):
        return True
    from importlib.util import find_spec  # noqa: PLC0415  not for SQLite

    return find_spec("psycopg") is not None


def _file_target(name: str | Path) -> SqliteTarget:
    path = Path(os.path.realpath(absolute_path(name)))
    if os.path.isdir(path):  # noqa: PTH112  never raises, unlike `Path.is_dir`
        raise InvalidRecordError(f"{path} is a folder; a database is a file")
    return SqliteTarget(path)


def _server_target(rest: str) -> PostgresTarget:
    url = f"postgresql://{rest}"
    if re.match(_AMBIGUOUS, rest):
        raise InvalidRecordError(_UNREADABLE)
    try:
        parts = urlsplit(url)
        parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        if "," not in parts.netloc:
            _ = parts.port
    except ValueError:
        # No cause: it may quote a part of a password that was parsed as a port.
        raise InvalidRecordError(_UNREADABLE) from None
    return PostgresTarget(url)
