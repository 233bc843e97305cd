"""Runs a query that a person wrote. The query can read, and nothing else."""

from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any, Final, TypeAlias

from tooltrail.records.errors import InvalidRecordError, UnavailableError
from tooltrail.store.engines import postgres, sqlite
from tooltrail.store.engines.failures import translated_errors
from tooltrail.store.engines.sqlite_library import sqlite3
from tooltrail.store.engines.targets import PostgresTarget, SqliteTarget, Target

Rows: TypeAlias = tuple[list[str], Iterator[tuple[Any, ...]]]

STATEMENT_TIMEOUT_S: Final = 100
"""Seconds that a server may need for a part of the answer. The client waits a little longer."""

_AT_ONCE: Final = 500
"""Rows that are fetched from a server at once."""

_STEPS: Final = 100_000
"""Steps of SQLite between two looks whether the user has pressed Ctrl-C."""

_READING: Final = (
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
)
"""What SQLite may do. Not PRAGMA, ATTACH or a transaction; and no table may be changed."""

_MISTAKES: Final = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH)
_OF_QUERY: Final = ("0A", "21", "22", "25", "34", "42", "54")
"""Result codes of SQLite, and classes of SQLSTATE, that mean a mistake in the query."""
_NOT_ONE_QUERY: Final = "42601"
"""SQLSTATE of a syntax error. A server also reports another statement than a query as one."""


@contextmanager
def read_only_rows(target: Target, query: str) -> Generator[Rows]:
    """Yield the names of the columns, and the rows as they arrive, from one snapshot.

    Raises `InvalidRecordError` if the text is no query, or is wrong, or does more than read; and
    the errors of `translated_errors`, also if the server took too long.
    """
    if isinstance(target, SqliteTarget):
        opened = _of_sqlite(target, query)
    else:
        opened = _of_server(target, query)
    with translated_errors(target), opened as (cursor, names):
        yield names, cursor


@contextmanager
def _of_sqlite(target: SqliteTarget, query: str) -> Generator[tuple[Any, list[str]]]:
    with closing(sqlite.connect(target.path)) as connection:
        connection.execute("PRAGMA query_only = ON")
        connection.text_factory = partial(str, encoding="utf-8", errors="replace")
        connection.set_progress_handler(int, _STEPS)
        connection.set_authorizer(_allowed)
        try:
            cursor = connection.execute(query)
            yield cursor, _names(cursor)
        except (sqlite3.Error, sqlite3.Warning) as error:
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
            if code == sqlite3.SQLITE_INTERRUPT:
                raise KeyboardInterrupt from error
            if code == sqlite3.SQLITE_AUTH:
                raise InvalidRecordError("a query can only read: write SELECT …") from error
            if code in _MISTAKES:
                raise InvalidRecordError(f"the query failed: {error}") from error
            raise


def _allowed(action: int, first: str | None, second: str | None, *_: object) -> int:
    is_reading = action in _READING and "load_extension" not in (first, second)
    return int(sqlite3.SQLITE_OK if is_reading else sqlite3.SQLITE_DENY)


@contextmanager
def _of_server(target: PostgresTarget, query: str) -> Generator[tuple[Any, list[str]]]:
    with closing(postgres.connect(target)) as connection:
        import psycopg  # noqa: PLC0415  an optional driver
        from psycopg.types.string import TextLoader  # noqa: PLC0415  the same

        for kind in ("date", "timestamp", "timestamptz"):  # Python does not know all times
            connection.adapters.register_loader(kind, TextLoader)
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        most = (f"{STATEMENT_TIMEOUT_S}s",)
        connection.execute("SELECT set_config('statement_timeout', %s, true)", most)
        try:
            # A cursor of the server accepts one query, and no other statement.
            with connection.cursor("tooltrail_sql") as cursor:
                cursor.itersize = _AT_ONCE
                cursor.execute(query.encode())
                yield cursor, _names(cursor)
        except psycopg.errors.QueryCanceled as error:
            problem = f"the query took longer than {STATEMENT_TIMEOUT_S} s"
            raise UnavailableError(problem) from error
        except psycopg.Error as error:
            if not (error.sqlstate or "").startswith(_OF_QUERY):
                raise
            sentence = str(error).strip().partition("\n")[0]
            if error.sqlstate == _NOT_ONE_QUERY:
                sentence += "; a query is one SELECT, which can only read"
            raise InvalidRecordError(f"the query failed: {sentence}") from error


def _names(cursor: Any) -> list[str]:
    """The names of the columns; raises `InvalidRecordError` if the text was no query."""
    if cursor.description is None:
        raise InvalidRecordError("a query is needed: write SELECT …")
    return [str(column[0]) for column in cursor.description]
