"""A transaction of either database, with the same syntax of statements and values.

Statements are plain SQL with `?` for each value. They go to the driver directly: both statements
and imports are several times as fast as with a layer between.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final, Protocol, TypeAlias, TypeVar, cast
from uuid import UUID

from tooltrail.records.digests import Digest, hex_of
from tooltrail.records.plain_text import storable
from tooltrail.store.engines.failures import translated_errors
from tooltrail.store.engines.sqlite_library import sqlite3
from tooltrail.store.engines.targets import SqliteTarget, Target
from tooltrail.store.engines.values import microseconds_of

T = TypeVar("T")

Row: TypeAlias = dict[str, Any]
Values: TypeAlias = tuple[Any, ...]

_AT_ONCE: Final = 500
"""Values in one query; older versions of SQLite accept 999."""


class DriverConnection(Protocol):
    """The common interface of connections of sqlite3 and psycopg."""

    def cursor(self) -> Any: ...

    def close(self) -> None: ...


class Connection:
    """One connection, inside a transaction. For one thread; made by `Database`.

    Every method raises `UnavailableError`, `DamageError` or `InvalidRecordError`; see
    `translated_errors`.

    Attributes:
        driver: the driver's connection.
    """

    def __init__(self, target: Target, driver: DriverConnection) -> None:
        self.target = target
        self.is_sqlite = isinstance(target, SqliteTarget)
        self.driver = driver
        self._cursor: sqlite3.Cursor = driver.cursor()  # that of psycopg has the same methods

    def uuid(self, value: UUID | None) -> object:
        """An id in the type that the driver expects."""
        return value.bytes if self.is_sqlite and value is not None else value

    def moment(self, value: datetime | None) -> object:
        """A time in the type that the driver expects."""
        return microseconds_of(value) if self.is_sqlite and value is not None else value

    def sha(self, value: Digest | None) -> bytes | None:
        """A digest in the type that the driver expects."""
        return None if value is None else bytes.fromhex(hex_of(value))

    def text(self, value: str | None) -> str | None:
        """A text that both databases can store: NUL and lone surrogates become escapes."""
        if value is None or (value.isascii() and "\0" not in value):
            return value
        return storable(value)

    def query(self, sql: str, values: Sequence[object] = ()) -> list[Values]:
        """All rows of a query."""
        with translated_errors(self.target):
            self._cursor.execute(self._marked(sql), values)
            return self._cursor.fetchall()

    def query_one(self, sql: str, values: Sequence[object] = ()) -> Values | None:
        """The first row of a query; None if there is none."""
        return next(iter(self.query(sql, values)), None)

    def query_each(self, sql: str, values: Sequence[object]) -> list[Values]:
        """All rows of a query in which `(?)` is a list of any number of values."""
        found: list[Values] = []
        for some in in_parts(values):
            marks = ", ".join("?" * len(some))
            found += self.query(sql.replace("(?)", f"({marks})"), some)
        return found

    def execute(self, sql: str, values: Sequence[object] = ()) -> int:
        """Run a statement, and return the number of changed rows."""
        with translated_errors(self.target):
            self._cursor.execute(self._marked(sql), values)
            return self._cursor.rowcount

    def run(self, sql: str) -> None:
        """Run a statement without values, unchanged."""
        with translated_errors(self.target):
            self._cursor.execute(sql)

    def update(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        """Run a statement for each row of values."""
        if rows:
            with translated_errors(self.target):
                self._cursor.executemany(self._marked(sql), rows)

    def insert(self, table: str, rows: Sequence[Row]) -> None:
        """Insert new rows, all with the same columns in the same order."""
        if not rows:
            return
        if self.is_sqlite:
            self._execute_many(table, rows)
            return
        columns, cursor = ", ".join(f'"{name}"' for name in rows[0]), cast("Any", self._cursor)
        with (
            translated_errors(self.target),
            cursor.copy(f"COPY {table} ({columns}) FROM STDIN") as copy,
        ):
            for row in rows:
                copy.write_row(tuple(row.values()))

    def insert_once(self, table: str, rows: Sequence[Row]) -> None:
        """Insert rows unless the table has them: for rows that many facts name."""
        if rows:
            self._execute_many(table, rows, " ON CONFLICT DO NOTHING")

    def has_table(self, name: str) -> bool:
        """Whether the current schema has a table of this name."""
        if self.is_sqlite:
            sql = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
        else:
            sql = "SELECT 1 WHERE to_regclass(?) IS NOT NULL"
        return bool(self.query(sql, (name,)))

    def column_names(self, table: str) -> list[str]:
        """The names of the columns of a table, in order."""
        with translated_errors(self.target):
            self._cursor.execute(f"SELECT * FROM {table} LIMIT 0")  # noqa: S608  our own names
            return [str(column[0]) for column in self._cursor.description]

    def close(self) -> None:
        """Close the cursor."""
        self._cursor.close()

    def _marked(self, sql: str) -> str:
        return sql if self.is_sqlite else sql.replace("%", "%%").replace("?", "%s")

    def _execute_many(self, table: str, rows: Sequence[Row], behind: str = "") -> None:
        columns = ", ".join(f'"{name}"' for name in rows[0])
        marks = ", ".join("?" * len(rows[0]))
        sql = f"INSERT INTO {table} ({columns}) VALUES ({marks}){behind}"  # noqa: S608  ours
        with translated_errors(self.target):
            self._cursor.executemany(self._marked(sql), (tuple(row.values()) for row in rows))


def in_parts(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """Split values into parts that fit into one query."""
    return (values[begin : begin + _AT_ONCE] for begin in range(0, len(values), _AT_ONCE))
