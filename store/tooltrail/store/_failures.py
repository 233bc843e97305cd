"""What a driver's error means to the caller: locked, full, damaged, unreachable or refused."""

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from tooltrail.records import DamageError, InvalidRecordError, TooltrailError, UnavailableError
from tooltrail.store._targets import Target

_PRIMARY_CODE = 0xFF
"""SQLite's extended result codes carry the primary code in the low byte."""

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_UNAVAILABLE = {
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_READONLY: "it is read-only",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
    sqlite3.SQLITE_PERM: "access is denied",
    sqlite3.SQLITE_IOERR: "reading or writing failed",
}


@contextmanager
def translated_errors(target: Target) -> Generator[None]:
    """Turn driver errors into the errors of `tooltrail.records`.

    Raises:
        UnavailableError: locked, full, read-only, unreachable; a retry may succeed.
        DamageError: the database file is corrupt.
        InvalidRecordError: the database refused the record.
    """
    try:
        yield
    except DBAPIError as error:
        raise _translate(error, target) from error
    except PoolTimeoutError as error:
        raise UnavailableError(f"database {target}: all connections are in use") from error


def _translate(error: DBAPIError, target: Target) -> TooltrailError:
    original = error.orig
    code = getattr(original, "sqlite_errorcode", None)
    if isinstance(code, int):
        code &= _PRIMARY_CODE
        if code in _DAMAGED:
            return DamageError(f"database {target} is damaged: {original}", path=str(target))
        if code in _BUSY:
            return UnavailableError(f"database {target} is locked by another process")
        if code in _UNAVAILABLE:
            return UnavailableError(f"database {target}: {_UNAVAILABLE[code]}")
    sentence = str(original).strip().split("\n")[0]
    if isinstance(error, OperationalError | InterfaceError):
        return UnavailableError(f"database {target}: {sentence}")
    return InvalidRecordError(f"database {target} refused the record: {sentence}")
