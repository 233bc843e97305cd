"""Translates errors of the drivers: locked, full, damaged, unreachable or refused."""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

from tooltrail.records.errors import (
    AccessRefusedError,
    DamageError,
    DiskFullError,
    InvalidRecordError,
    TooltrailError,
    UnavailableError,
)
from tooltrail.store.engines.sqlite import SIDE_FILES_BYTES, is_below
from tooltrail.store.engines.sqlite_library import sqlite3
from tooltrail.store.engines.targets import SqliteTarget, Target

_PRIMARY_CODE: Final = 0xFF
"""Mask of the primary code: the low byte of an extended result code of SQLite."""

_UNDEFINED: Final = "42P01"
"""SQLSTATE of a missing table; SQLite has one code for all errors of this kind."""

_EXISTS: Final = "42P07"
"""SQLSTATE of a table that exists already."""

_NO_SCHEMA: Final = "3F000"
"""SQLSTATE of a search_path without a schema that exists and that the user may use."""

_NO_RIGHT: Final = "42501"
"""SQLSTATE of a user who may not read or write a table."""

_NOT_LET_IN: Final = ("28", "3D000")
"""SQLSTATE class "invalid authorization", and the SQLSTATE of a missing database."""

CHECK: Final = "; `tooltrail db check` names the tables"
"""Advice in the message of damage; left out where that command prints the message."""

RESTORE: Final = "restore the database from a backup"
"""Advice in the message of damage that no command can mend."""

_LOCKED: Final = "it is locked by another process"
_FULL: Final[set[int | str]] = {sqlite3.SQLITE_FULL, "53100"}
_DAMAGED: Final[set[int | str]] = {
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    "XX001",
    "XX002",
    _UNDEFINED,
    "42703",
}
_UNAVAILABLE: Final[dict[int | str, str]] = {
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_PROTOCOL: _LOCKED,
    sqlite3.SQLITE_READONLY: "it is read-only",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
    sqlite3.SQLITE_PERM: "access is denied",
    sqlite3.SQLITE_IOERR: "reading or writing failed",
    "25006": "it is read-only",
    "25P03": "it ended an idle transaction (idle_in_transaction_session_timeout)",
    "25P04": "it ended a transaction that took too long (transaction_timeout)",
    "40001": "it undid a transaction that conflicted with another",
    "40P01": "it undid a transaction to end a deadlock",
    "55P03": _LOCKED,
    "57014": "it ended a statement that took too long (statement_timeout) or was cancelled",
}
"""Result codes of SQLite and SQLSTATEs of PostgreSQL after which a retry may succeed."""

_REFUSALS: Final = (
    "authentication failed",
    "no password supplied",
    "no pg_hba.conf entry",
    "certificate verify failed",
    "is not permitted to log in",
)
"""Parts of the messages of a server that refuses a user. libpq has no SQLSTATE for a failed
connection."""

_BAD_OPTION: Final = "invalid "
"""Beginning of the message of libpq about an unknown option, before it connects."""


@contextmanager
def translated_errors(target: Target) -> Generator[None]:
    """Turn driver errors into the errors of `tooltrail.records`.

    Raises:
        UnavailableError: locked, read-only, unreachable; a retry may succeed.
        AccessRefusedError: the server refuses the user.
        DiskFullError: the disk is full.
        DamageError: the database is corrupt, tables are missing, or a text is not UTF-8.
        InvalidRecordError: the database refuses a value.
    """
    try:
        yield
    except _driver_errors(target) as error:
        raise _translated(error, target) from error
    except UnicodeDecodeError as error:
        message = f"database {target} holds text that is not UTF-8"
        raise DamageError(message, path=str(target)) from error
    except UnicodeEncodeError as error:
        raise InvalidRecordError("a database takes no text that is not UTF-8") from error
    except TypeError as error:
        raise InvalidRecordError(f"a value cannot be stored: {error}") from error
    except OverflowError as error:
        # sqlite3 raises `OverflowError` for an integer beyond 64 bits; PostgreSQL has a data error.
        raise InvalidRecordError(f"database {target}: an integer is out of range") from error


def is_locked(error: UnavailableError) -> bool:
    """Whether another connection holds the lock of the SQLite file."""
    cause = error.__cause__
    return isinstance(cause, sqlite3.Error) and _UNAVAILABLE.get(_code_of(cause)) == _LOCKED


def is_no_database(error: DamageError) -> bool:
    """Whether a file does not begin like an SQLite file."""
    cause = error.__cause__
    return isinstance(cause, sqlite3.Error) and _code_of(cause) == sqlite3.SQLITE_NOTADB


@contextmanager
def damage_if_unreadable(target: Target) -> Generator[None]:
    """Turn errors about a stored value, such as an invalid time, into `DamageError`.

    For blocks that only read.
    """
    try:
        yield
    except TooltrailError:
        raise
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        # The message of the driver would quote the value.
        message = f"database {target} is damaged: a row holds what was never stored"
        raise DamageError(message, path=str(target)) from error


def _driver_errors(target: Target) -> tuple[type[Exception], ...]:
    """The error classes of the driver. A driver that raised an error is imported already."""
    if isinstance(target, SqliteTarget):
        return (sqlite3.Error,)
    psycopg: Any = sys.modules.get("psycopg")
    return () if psycopg is None else (psycopg.Error,)


def _translated(error: Exception, target: Target) -> TooltrailError:
    # The details of the driver, which quote stored values, are left out.
    sentence = str(error).strip().split("\n")[0].partition(" with text ")[0]
    code = _code_of(error)
    if code in _DAMAGED:
        damage = f"database {target} is damaged: {sentence}{CHECK}"
        if code == sqlite3.SQLITE_NOTADB:
            damage = f"{target} is not an SQLite database, or its beginning is damaged"
        return DamageError(damage, path=str(target))
    is_full = code in _FULL
    if isinstance(target, SqliteTarget) and code in _UNAVAILABLE:
        # SQLite reports a full disk as various errors, since side files need room, too.
        is_full = is_full or is_below(target.path.parent, SIDE_FILES_BYTES)
    if is_full:
        return DiskFullError(f"database {target}: the disk is full")
    if code == _NO_RIGHT:
        return AccessRefusedError(f"database {target}: {sentence}")  # it names the table
    if code in _UNAVAILABLE:
        denied = ": Permission denied" if _is_closed(target) else ""
        return UnavailableError(f"database {target}: {_UNAVAILABLE[code]}{denied}")
    if isinstance(code, str):
        return _of_server(code, sentence, str(error), target)
    return InvalidRecordError(f"database {target} refused the record: {sentence}")


def _of_server(code: str, sentence: str, words: str, target: Target) -> TooltrailError:
    """Translate an error of a server, or of libpq, which has no code."""
    if code.startswith(_NOT_LET_IN) or (not code and any(one in words for one in _REFUSALS)):
        return AccessRefusedError(f"database {target}: {sentence}")
    if not code and (words.startswith(_BAD_OPTION) or f"bad: {_BAD_OPTION}" in words):
        return InvalidRecordError(f"database {target}: {sentence}")
    if code == _EXISTS:
        problem = f"the schema has other tables: {sentence}"
        return InvalidRecordError(f"database {target}: {problem}; name another schema or database")
    if code == _NO_SCHEMA:
        problem = (
            "create the schema that the search_path names, or let the user create tables in it"
        )
        return InvalidRecordError(f"database {target}: {sentence}; {problem}")
    # Classes 08, 53, 57, 58: connection, resources, operator intervention, system.
    if not code or code[:2] in ("08", "53", "57", "58"):
        return UnavailableError(f"database {target}: {sentence}")
    return InvalidRecordError(f"database {target} refused the record: {sentence}")


def _is_closed(target: Target) -> bool:
    """Whether this user may not read the file. SQLite does not say why it cannot open a file."""
    if not isinstance(target, SqliteTarget):
        return False
    return os.access(target.path, os.F_OK) and not os.access(target.path, os.R_OK)


def _code_of(error: Exception) -> int | str:
    """The primary result code of SQLite, or the SQLSTATE of PostgreSQL; "" if libpq has none."""
    if not isinstance(error, sqlite3.Error):
        state: object = getattr(error, "sqlstate", None)
        if state is None and type(error).__name__ in ("DataError", "ProgrammingError"):
            return "22000"  # psycopg itself refuses a value
        return state if isinstance(state, str) else ""
    code: object = getattr(error, "sqlite_errorcode", None)
    if code == sqlite3.SQLITE_ERROR and str(error).startswith("no such "):
        return _UNDEFINED
    if isinstance(code, int):
        return code & _PRIMARY_CODE
    if isinstance(error, sqlite3.OperationalError):
        return sqlite3.SQLITE_CORRUPT  # Python's own error about text that is not UTF-8
    return 0
