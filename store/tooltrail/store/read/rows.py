"""Rows as the driver gives them: fetched whatever they hold, and each value checked.

SQLite keeps a text in a column of integers when somebody writes one there. So a query selects plain
driver values, and `Columns.read` makes Python values of one row: what is not of the kind of its
column is replaced by a neutral value of that kind and named as damage. A damaged row never hides
another.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple, TypeAlias
from uuid import UUID

from sqlalchemy import (
    Boolean,
    Column,
    ColumnElement,
    CompoundSelect,
    Connection,
    Integer,
    LargeBinary,
    Select,
    Text,
    type_coerce,
)
from sqlalchemy.exc import DataError, DBAPIError, OperationalError
from sqlalchemy.types import NullType, TypeEngine

from tooltrail.records.digests import ALGORITHM, EMPTY, Digest
from tooltrail.store.column_types import EPOCH, Moment, Sha256
from tooltrail.store.tables._types import AnyText, Uuid16

AnySelect: TypeAlias = Select[*tuple[Any, ...]]
AnyUnion: TypeAlias = CompoundSelect[*tuple[Any, ...]]
AnyRow: TypeAlias = Sequence[Any]

NO_ID: Final = UUID(int=0)
"""Stands where an id cannot be read."""

_DIGEST_BYTES: Final = 32


class Kind(NamedTuple):
    """What the values of a column are.

    Attributes:
        name: for people.
        read: makes the value; raises `ValueError`, `TypeError` or `OverflowError` for another kind.
        neutral: stands for a value that cannot be read.
    """

    name: str
    read: Callable[[Any], Any]
    neutral: object


def _read_text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _read_count(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError
    return value


def _read_flag(value: object) -> bool:
    if value not in (0, 1):
        raise ValueError
    return bool(value)


def _read_bytes(value: object) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError
    return value


def _read_digest(value: object) -> Digest:
    if not isinstance(value, bytes) or len(value) != _DIGEST_BYTES:
        raise ValueError
    return Digest(f"{ALGORITHM}:{value.hex()}")


def _read_id(value: object) -> UUID:
    return value if isinstance(value, UUID) else UUID(bytes=_read_bytes(value))


def _read_moment(value: object) -> datetime:
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    return EPOCH + timedelta(microseconds=_read_count(value))


_KINDS: Final[Mapping[type[TypeEngine[Any]], Kind]] = {
    Uuid16: Kind("id", _read_id, NO_ID),
    Moment: Kind("time", _read_moment, EPOCH),
    Sha256: Kind("digest", _read_digest, EMPTY),
    AnyText: Kind("text", _read_text, ""),
    Text: Kind("text", _read_text, ""),
    Boolean: Kind("flag", _read_flag, False),
    LargeBinary: Kind("bytes", _read_bytes, b""),
    # Behind `Boolean`, which is none of its subclasses; all sorts of integers are.
    Integer: Kind("integer", _read_count, 0),
}


class Columns:
    """Columns of a query, and how their driver values are read. Unchanged once made.

    Args:
        columns: with their types. A column of a table may be NULL where the table says so; anything
            else may not.
        optional: further ones that may be NULL, such as those of an outer join.
    """

    def __init__(
        self, *columns: ColumnElement[Any], optional: Sequence[ColumnElement[Any]] = ()
    ) -> None:
        every = (*columns, *optional)
        self.selected = tuple(type_coerce(one, NullType()).label(_name_of(one)) for one in every)
        """What a query selects, in this order: driver values, by name."""
        self._readers = tuple(
            (_name_of(one), _kind_of(one), n >= len(columns) or _may_be_null(one))
            for n, one in enumerate(every)
        )

    def __len__(self) -> int:
        return len(self.selected)

    def read(self, row: AnyRow, problems: list[str]) -> list[Any]:
        """The values at the front of a row.

        Args:
            row: driver values, in the order of `selected`; there may be more behind them.
            problems: what cannot be read is added, as `duration_ms holds no integer`.
        """
        values: list[Any] = []
        for (name, kind, is_optional), value in zip(self._readers, row, strict=False):
            if value is None and is_optional:
                values.append(None)
                continue
            try:
                values.append(kind.read(value))
            except (ValueError, TypeError, OverflowError):
                problems.append(f"{name} holds no {kind.name}")
                values.append(None if is_optional else kind.neutral)
        return values


def damage_of(table: str, key: object, problems: Sequence[str]) -> str | None:
    """The damage of a row in one sentence; None where nothing is wrong."""
    if not problems:
        return None
    return f"row {key} of {table} is damaged: {', '.join(dict.fromkeys(problems))}"


def fetch(connection: Connection, statement: AnySelect | AnyUnion) -> Sequence[AnyRow]:
    """All rows of a query, whatever they hold.

    A text that is not UTF-8 comes as bytes, a time beyond those of Python as text. The usual way of
    the driver is several times as fast, and is tried first.
    """
    try:
        return connection.execute(statement).all()
    except (OperationalError, DataError) as error:
        if not _is_about_a_value(error):
            raise
        with _lenient(connection):
            return connection.execute(statement).all()


def _is_about_a_value(error: DBAPIError) -> bool:
    """Whether a driver could not make a Python value of what a row holds."""
    if isinstance(error, OperationalError):
        return str(error.orig).startswith("Could not decode")
    # An error of the server has a code.
    return getattr(error.orig, "sqlstate", None) is None


@contextmanager
def _lenient(connection: Connection) -> Generator[None]:
    driver: Any = connection.connection.driver_connection
    if connection.dialect.name == "sqlite":
        before, driver.text_factory = driver.text_factory, _text_or_bytes
        try:
            yield
        finally:
            driver.text_factory = before
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
    try:
        yield
    finally:
        driver.adapters.register_loader("timestamptz", TimestamptzLoader)


def _text_or_bytes(value: bytes) -> str | bytes:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def _name_of(column: ColumnElement[Any]) -> str:
    return str(getattr(column, "name", column.key))


def _kind_of(column: ColumnElement[Any]) -> Kind:
    return next(kind for of, kind in _KINDS.items() if isinstance(column.type, of))


def _may_be_null(column: ColumnElement[Any]) -> bool:
    return isinstance(column, Column) and bool(column.nullable)
