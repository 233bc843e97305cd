"""Builds statements from pieces, and fetches rows that may hold any value."""

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from datetime import datetime
from types import NoneType
from typing import Any, Final, TypeAlias
from uuid import UUID

from tooltrail.records.errors import DamageError, InvalidRecordError, check_type
from tooltrail.records.frozen import Frozen
from tooltrail.store.engines.connection import Connection, in_parts

Row: TypeAlias = Sequence[Any]

MAX_KEY_DIGITS: Final = 18
"""Most decimal digits that always fit into the 64 bits of a key."""


class Sql(Frozen):
    """A piece of SQL, and the values of its `?`.

    A `+` before a column prevents SQLite from using an index for it, see the documentation of the
    query planner. `fetch` removes these hints for PostgreSQL. `+` has no other use in a piece.

    `server` is the piece for PostgreSQL, if that is another one.
    """

    text: str
    values: tuple[object, ...] = ()
    server: "Sql | None" = None

    def __add__(self, other: "Sql | str") -> "Sql":
        """Both pieces, one behind the other."""
        return joined("", (self, Sql(other) if isinstance(other, str) else other))


def joined(separator: str, pieces: Iterable[Sql]) -> Sql:
    """Pieces joined by a separator."""
    every = tuple(pieces)
    values = tuple(value for one in every for value in one.values)
    differs = any(one.server is not None for one in every)
    server = joined(separator, (on_server(one) for one in every)) if differs else None
    return Sql(separator.join(one.text for one in every), values, server)


def on_server(piece: Sql) -> Sql:
    """The piece for PostgreSQL."""
    return piece if piece.server is None else piece.server


def where(conditions: Sequence[Sql]) -> Sql:
    """The WHERE clause of conditions that must all be true; empty if there are none."""
    return Sql(" WHERE ") + joined(" AND ", conditions) if conditions else Sql("")


def check_limit(limit: int | None) -> None:
    """Raise `InvalidRecordError` for a limit below 1, or one that is no number."""
    check_type("limit", limit, int, NoneType)
    if limit is not None and limit < 1:
        raise InvalidRecordError(f"a list of at most {limit} rows shows nothing; ask for 1 or more")


def limited(limit: int | None) -> Sql:
    """The LIMIT clause; empty if `limit` is None."""
    return Sql("") if limit is None else Sql(" LIMIT ?", (limit,))


def is_in(column: str, values: Sequence[object]) -> Sql:
    """The condition that a column has one of some values."""
    marks = "= ?" if len(values) == 1 else f"IN ({', '.join('?' * len(values))})"
    return Sql(f"{column} {marks}", tuple(values))


_LARGEST: Final = 1 << 50
"""Largest size in a sum: a petabyte. A larger one is damaged, and could make the sum too large."""


def sum_of(value: str) -> str:
    """SQL for a sum of integers: an integer, and 0 for no rows. Leaves out damaged values."""
    is_size = f"{value} BETWEEN {-_LARGEST} AND {_LARGEST}"
    return f"CAST(coalesce(sum(CASE WHEN {is_size} THEN {value} END), 0) AS bigint)"


def fetch(connection: Connection, statement: Sql) -> Sequence[Row]:
    """All rows of a query, even if values are damaged; see `query_leniently`."""
    if not connection.is_sqlite:
        server = on_server(statement)
        statement = Sql(server.text.replace("+", ""), server.values)
    values = [_driver_value(connection, one) for one in statement.values]
    return query_leniently(connection, statement.text, values)


def query_leniently(
    connection: Connection, sql: str, values: Sequence[object]
) -> list[tuple[Any, ...]]:
    """All rows of a query, even if values are damaged.

    A text that is not UTF-8 becomes bytes, a time outside the range of Python becomes text. The
    normal conversion of the driver is several times as fast, and is tried first.
    """
    try:
        return connection.query(sql, values)
    except (DamageError, InvalidRecordError) as error:
        if getattr(error.__cause__, "sqlstate", None) is not None:
            raise  # an error of a server, which ends the transaction
        with _lenient(connection) as again:
            return again.query(sql, values)


def fetch_each(
    connection: Connection, query: Sql, column: str, values: Sequence[object], order: str = ""
) -> list[Row]:
    """All rows of a query without its last condition: that a column has one of these values."""
    parts = in_parts(values)
    return [row for part in parts for row in fetch(connection, query + is_in(column, part) + order)]


def fetch_value(connection: Connection, statement: Sql) -> Any:
    """The first value of the first row; None if there is no row."""
    rows = fetch(connection, statement)
    return rows[0][0] if rows else None


def _driver_value(connection: Connection, value: object) -> object:
    match value:
        case str():
            return connection.text(value)
        case UUID():
            return connection.uuid(value)
        case datetime():
            return connection.moment(value)
        case _:
            return value


@contextmanager
def _lenient(connection: Connection) -> Generator[Connection]:
    """The same transaction, with a driver that converts any value of a row to a Python value."""
    driver: Any = connection.driver
    if connection.is_sqlite:
        driver.text_factory = _text_or_bytes
        try:
            yield connection
        finally:
            driver.text_factory = str
        return
    from psycopg import DataError as OutOfRange  # noqa: PLC0415  an optional driver
    from psycopg.types.datetime import TimestamptzLoader  # noqa: PLC0415  the same

    class TimeOrText(TimestamptzLoader):
        def load(self, data: Any) -> Any:
            try:
                return super().load(data)
            except OutOfRange:
                return bytes(data).decode()

    driver.adapters.register_loader("timestamptz", TimeOrText)
    # Existing cursors keep the old loader, so a new one is needed.
    again = Connection(connection.target, driver)
    try:
        yield again
    finally:
        again.close()
        driver.adapters.register_loader("timestamptz", TimestamptzLoader)


def _text_or_bytes(value: bytes) -> str | bytes:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value
