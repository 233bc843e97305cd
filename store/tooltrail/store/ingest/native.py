"""Rows as a database driver takes them. The ingester writes hundreds of facts at once.

SQLAlchemy Core defines the tables; the statements go to the driver directly, which is several times
as fast. On PostgreSQL new rows are copied in.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any, Final, Protocol, Self, TypeAlias, cast
from uuid import UUID

from sqlalchemy import Connection, Table

from tooltrail.records.digests import ALGORITHM, Digest
from tooltrail.records.errors import InvalidRecordError
from tooltrail.records.tool_calls import storable
from tooltrail.store._engines.driver_errors import raised_as_ever
from tooltrail.store.column_types import EPOCH, microseconds_of

Row: TypeAlias = dict[str, Any]

_DIGITS_FROM: Final = len("sha256:")


class _Copy(Protocol):
    def write_row(self, row: Sequence[object]) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


class _Cursor(Protocol):
    rowcount: int

    def execute(self, sql: str, values: Sequence[object] = ...) -> object: ...

    def executemany(self, sql: str, rows: Iterable[Sequence[object]]) -> object: ...

    def fetchall(self) -> list[tuple[Any, ...]]: ...

    def copy(self, sql: str) -> _Copy: ...

    def close(self) -> None: ...


class Native:
    """The driver behind one connection, inside a transaction. For one thread.

    Attributes:
        is_sqlite: whether the database is SQLite.
    """

    def __init__(self, connection: Connection) -> None:
        self.is_sqlite = connection.dialect.name == "sqlite"
        self._connection = connection
        self._cursor = cast("_Cursor", connection.connection.cursor())
        self._statements: dict[tuple[str, ...], tuple[str, Callable[[Row], Sequence[object]]]] = {}

    def uuid(self, value: UUID | None) -> object:
        """An id as the driver takes it."""
        return value.bytes if self.is_sqlite and value is not None else value

    def moment(self, value: datetime) -> object:
        """A time as the driver takes it."""
        return microseconds_of(value) if self.is_sqlite else value

    def sha(self, value: Digest | None) -> bytes | None:
        """A digest as the driver takes it."""
        return None if value is None else bytes.fromhex(value[_DIGITS_FROM:])

    def text(self, value: str | None) -> str | None:
        """A text as both databases can store it: NUL and lone surrogates become escapes."""
        if value is None or (value.isascii() and "\0" not in value):
            return value
        return storable(value)

    def read_uuid(self, value: Any) -> UUID:
        """The reverse of `uuid`."""
        return UUID(bytes=value) if isinstance(value, bytes) else cast("UUID", value)

    def insert(self, table: Table, rows: Sequence[Row]) -> None:
        """Insert new rows, all with the same columns."""
        if not rows:
            return
        if self.is_sqlite:
            self._execute_many(table, rows, "INSERT INTO")
            return
        columns = ", ".join(f'"{name}"' for name in rows[0])
        sql = f"COPY {table.name} ({columns}) FROM STDIN"
        with self._translated(sql), self._cursor.copy(sql) as copy:
            for row in rows:
                copy.write_row(tuple(row.values()))

    def insert_once(self, table: Table, rows: Sequence[Row]) -> None:
        """Insert rows unless the table has them; rows that many facts name."""
        if not rows:
            return
        if self.is_sqlite:
            self._execute_many(table, rows, "INSERT OR IGNORE INTO")
        else:
            self._execute_many(table, rows, "INSERT INTO", " ON CONFLICT DO NOTHING")

    def update(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        """Run an UPDATE for each row of values. `?` marks a value, on either database."""
        if rows:
            with self._translated(sql):
                self._cursor.executemany(self._marked(sql), rows)

    def query(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query. `?` marks a value, on either database."""
        with self._translated(sql):
            self._cursor.execute(self._marked(sql), values)
            return self._cursor.fetchall()

    def query_each(
        self, sql: str, values: Sequence[object], *, at_once: int = 500
    ) -> list[tuple[Any, ...]]:
        """All rows of a query whose `(?)` stands for any number of values."""
        found: list[tuple[Any, ...]] = []
        for begin in range(0, len(values), at_once):
            some = values[begin : begin + at_once]
            marks = ", ".join("?" * len(some))
            found += self.query(sql.replace("(?)", f"({marks})"), some)
        return found

    def close(self) -> None:
        """Give the cursor back."""
        self._cursor.close()

    def _marked(self, sql: str) -> str:
        return sql if self.is_sqlite else sql.replace("?", "%s")

    def _execute_many(self, table: Table, rows: Sequence[Row], verb: str, behind: str = "") -> None:
        names = (verb, table.name, *rows[0])
        found = self._statements.get(names)
        if found is None:
            columns = ", ".join(f'"{name}"' for name in rows[0])
            marks = ", ".join("?" * len(rows[0]))
            sql = f"{verb} {table.name} ({columns}) VALUES ({marks}){behind}"
            found = self._statements[names] = (self._marked(sql), _values_of(tuple(rows[0])))
        sql, values_of = found
        with self._translated(sql):
            self._cursor.executemany(sql, map(values_of, rows))

    @contextmanager
    def _translated(self, sql: str) -> Generator[None]:
        """Raise what `translated_errors` understands.

        Raises:
            DBAPIError: the driver's error.
            InvalidRecordError: no column can hold a value.
        """
        try:
            with raised_as_ever(self._connection, sql):
                yield
        except (TypeError, UnicodeError) as error:
            raise InvalidRecordError(f"a value cannot be stored: {error}") from error


def digest_from(value: bytes) -> Digest:
    """A digest as a driver gives it."""
    return Digest(f"{ALGORITHM}:{bytes(value).hex()}")


def moment_of(value: object) -> datetime:
    """A time as a driver gives it."""
    if isinstance(value, int):
        return EPOCH + timedelta(microseconds=value)
    return cast("datetime", value)


def _values_of(names: tuple[str, ...]) -> Callable[[Row], Sequence[object]]:
    if len(names) == 1:
        (name,) = names
        return lambda row: (row[name],)
    return cast("Callable[[Row], Sequence[object]]", itemgetter(*names))
