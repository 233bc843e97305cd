"""Column types that mean the same on SQLite and PostgreSQL."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, Dialect, Integer, LargeBinary, Text
from sqlalchemy.dialects.postgresql import TIMESTAMP
from sqlalchemy.dialects.postgresql import UUID as PG_UUID
from sqlalchemy.types import TypeDecorator, TypeEngine

from tooltrail.records.tool_calls import storable

# SQLite makes a rowid alias of INTEGER only; psycopg overflows on a plain Integer.
BigInt = BigInteger().with_variant(Integer(), "sqlite")


class AnyText(TypeDecorator[str]):
    """Text that may hold what no database can: NUL and lone surrogates become escapes.

    The exact text is in the canonical JSON of the record or of its ledger entry. Comparisons bind
    through this type too, so a search for such a text finds it.
    """

    impl = Text()
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """To the driver."""
        del dialect
        if value is None or (value.isascii() and "\0" not in value):
            return value
        return storable(value)


class Uuid16(TypeDecorator[UUID]):
    """A UUID: native on PostgreSQL, 16 bytes on SQLite (half of its text, same order)."""

    impl = LargeBinary(16)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """The column type of a dialect."""
        if dialect.name == "postgresql":
            return dialect.type_descriptor(PG_UUID(as_uuid=True))
        return dialect.type_descriptor(LargeBinary(16))

    def process_bind_param(self, value: UUID | None, dialect: Dialect) -> object:
        """To the driver."""
        return value if value is None or dialect.name == "postgresql" else value.bytes

    def process_result_value(self, value: object, dialect: Dialect) -> UUID | None:
        """From the driver."""
        del dialect
        if isinstance(value, bytes):
            return UUID(bytes=value)
        return value if isinstance(value, UUID) else None


class UtcTime(TypeDecorator[datetime]):
    """An aware UTC time to the microsecond: timestamptz on PostgreSQL, sortable text on SQLite."""

    impl = Text()
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """The column type of a dialect."""
        if dialect.name == "postgresql":
            return dialect.type_descriptor(TIMESTAMP(timezone=True))
        return dialect.type_descriptor(Text())

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> object:
        """To the driver.

        Raises:
            ValueError: a time without a zone.
        """
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a stored time must know its zone")
        value = value.astimezone(UTC)
        if dialect.name == "postgresql":
            return value
        # Ten times as fast as `strftime`, which does not pad years either.
        return value.isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"

    def process_result_value(self, value: object, dialect: Dialect) -> datetime | None:
        """From the driver."""
        del dialect
        if isinstance(value, str):
            return datetime.fromisoformat(value)
        return value.astimezone(UTC) if isinstance(value, datetime) else None
