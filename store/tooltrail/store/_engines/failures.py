"""What a driver's error means to the caller: locked, full, damaged, unreachable or refused."""

from collections.abc import Generator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, StatementError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from tooltrail.records import (
    AccessRefusedError,
    DamageError,
    DiskFullError,
    InvalidRecordError,
    TooltrailError,
    UnavailableError,
)
from tooltrail.store._engines.disk import SIDE_FILES_BYTES, is_below
from tooltrail.store._engines.refusals import find_refusal
from tooltrail.store._engines.sqlite import sqlite3
from tooltrail.store._engines.sqlite_connections import LOCKED
from tooltrail.store._engines.targets import PostgresTarget, SqliteTarget, Target

_PRIMARY_CODE = 0xFF
"""SQLite's extended result codes carry the primary code in the low byte."""

_UNDEFINED = "42P01"
"""SQLSTATE of a table that is not there; SQLite has one code for everything of the kind."""

_NO_RIGHT = "42501"
"""SQLSTATE of a user who is let in, and may not read or write a table."""

_NOT_LET_IN = ("28", "3D000")
"""SQLSTATE class "invalid authorization specification", and that of a database that is not there:
where a pooler stands between they come as answers to a statement, else as words (`refusals`)."""

_DAMAGED: set[int | str] = {
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    "XX001",
    "XX002",
    _UNDEFINED,
    "42703",
}
_UNAVAILABLE: dict[int | str, str] = {
    sqlite3.SQLITE_BUSY: LOCKED,
    sqlite3.SQLITE_LOCKED: LOCKED,
    sqlite3.SQLITE_READONLY: "it is read-only",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
    sqlite3.SQLITE_PERM: "access is denied",
    sqlite3.SQLITE_IOERR: "reading or writing failed",
    "25006": "it is read-only",
    _NO_RIGHT: "access is denied",
    "25P03": "it has ended a transaction that stood still for too long",
    "25P04": "it has ended a transaction that took too long",
}
"""Result codes of SQLite, and the SQLSTATEs that psycopg does not file under operational errors."""

_FULL: set[int | str] = {sqlite3.SQLITE_FULL, "53100"}

_BAD_OPTION = "connection is bad: invalid "
"""So libpq begins what it says of an option's value that it does not know, before it connects."""

_LIMIT_CLASS = "54"
"""SQLSTATE class "program limit exceeded": no retry can help."""


@contextmanager
def translated_errors(target: Target) -> Generator[None]:
    """Turn driver errors into the errors of `tooltrail.records`.

    Raises:
        UnavailableError: locked, read-only, unreachable; a retry may succeed.
        AccessRefusedError: the server lets nobody in by these words.
        DiskFullError: there is no room on its disk.
        DamageError: the database is corrupt, or tables are missing.
        InvalidRecordError: the database refused the record, or no column can hold a value.
    """
    try:
        yield
    except DBAPIError as error:
        raise _translate(error, target) from error
    except StatementError as error:
        raise InvalidRecordError(f"database {target} cannot be asked: {error.orig}") from error
    except OverflowError as error:
        # sqlite3 raises it bare for an integer beyond 64 bits, which PostgreSQL calls a data error.
        raise InvalidRecordError(f"database {target}: an integer is out of range") from error
    except UnicodeDecodeError as error:
        # sqlite3 raises it bare when the words of an error, a trigger's for instance, are altered.
        raise DamageError(
            f"database {target} is damaged: it holds text that is not UTF-8", path=str(target)
        ) from error
    except PoolTimeoutError as error:
        raise UnavailableError(f"database {target}: all connections are in use") from error


@contextmanager
def damage_if_unreadable(target: Target) -> Generator[None]:
    """Turn what a row cannot hold, a time that is no time for instance, into `DamageError`.

    For blocks that do nothing but read: there such a bare error is about the row.

    Raises:
        DamageError: a stored value is not of its column's kind.
    """
    try:
        yield
    except TooltrailError:
        raise
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        # The error's own words would quote what stands there.
        raise DamageError(
            f"database {target} is damaged: a row holds what was never stored", path=str(target)
        ) from error


def _translate(error: DBAPIError, target: Target) -> TooltrailError:
    code = _code_of(error.orig)
    sentence = _sentence_of(error.orig)
    if code in _DAMAGED:
        return DamageError(f"database {target} is damaged: {sentence}", path=str(target))
    if code in _FULL or (code in _UNAVAILABLE and _has_no_room(target)):
        return DiskFullError(f"database {target}: the disk is full")
    if code in _UNAVAILABLE:
        kind = AccessRefusedError if code == _NO_RIGHT else UnavailableError
        return kind(f"database {target}: {_UNAVAILABLE[code]}")
    if isinstance(code, str) and code.startswith(_NOT_LET_IN):
        return AccessRefusedError(f"database {target}: {sentence}")
    is_beyond_limit = isinstance(code, str) and code.startswith(_LIMIT_CLASS)
    is_of_server = not is_beyond_limit and code != sqlite3.SQLITE_ERROR
    if is_of_server and isinstance(error, OperationalError | InterfaceError):
        return _away(str(error.orig) if code == 0 else "", sentence, target)
    return InvalidRecordError(f"database {target} refused the record: {sentence}")


def _away(words: str, sentence: str, target: Target) -> TooltrailError:
    """What a server means that is away; by libpq's words, where that has no SQLSTATE."""
    if words and sentence.startswith(_BAD_OPTION):
        return InvalidRecordError(f"database {target}: {sentence}")
    refusal = find_refusal(words, target.url) if isinstance(target, PostgresTarget) else None
    if refusal is not None:
        return AccessRefusedError(f"database {target}: {refusal}")
    return UnavailableError(f"database {target}: {sentence}")


def _has_no_room(target: Target) -> bool:
    """SQLite reports a full disk as many things, since it cannot even make its side files there."""
    if not isinstance(target, SqliteTarget):
        return False
    return is_below(target.path.parent, SIDE_FILES_BYTES)


def _sentence_of(original: BaseException | None) -> str:
    """The driver's words without the details, which quote what was stored."""
    return str(original).strip().split("\n")[0].partition(" with text ")[0]


def _code_of(original: BaseException | None) -> int | str:
    """SQLite's primary result code or PostgreSQL's SQLSTATE, 0 when there is neither."""
    code: object = getattr(original, "sqlite_errorcode", None)
    state: object = getattr(original, "sqlstate", None)
    if code == sqlite3.SQLITE_ERROR and str(original).startswith("no such "):
        return _UNDEFINED
    if isinstance(code, int):
        return code & _PRIMARY_CODE
    if isinstance(original, sqlite3.OperationalError):
        return sqlite3.SQLITE_CORRUPT  # Python's own complaint about text that is not UTF-8
    return state if isinstance(state, str) else 0
