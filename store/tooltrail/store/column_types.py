"""Column types of the lean schema: short on SQLite, native on PostgreSQL."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import BigInteger, Dialect, Integer, LargeBinary
from sqlalchemy.dialects.postgresql import TIMESTAMP
from sqlalchemy.types import TypeDecorator, TypeEngine

from tooltrail.records.digests import ALGORITHM, Digest, hex_of

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)

# SQLite makes a rowid alias of INTEGER only; psycopg overflows on a plain Integer.
Int64 = BigInteger().with_variant(Integer(), "sqlite")


class Moment(TypeDecorator[datetime]):
    """An aware UTC time: timestamptz on PostgreSQL, microseconds since 1970 on SQLite."""

    impl = BigInteger()
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """The column type of a dialect."""
        if dialect.name == "postgresql":
            return dialect.type_descriptor(TIMESTAMP(timezone=True))
        return dialect.type_descriptor(Integer())

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> object:
        """To the driver."""
        if value is None or dialect.name == "postgresql":
            return value
        return microseconds_of(value)

    def process_result_value(self, value: object, dialect: Dialect) -> datetime | None:
        """From the driver."""
        del dialect
        if isinstance(value, int):
            return EPOCH + timedelta(microseconds=value)
        return value.astimezone(UTC) if isinstance(value, datetime) else None


class Sha256(TypeDecorator[Digest]):
    """A digest in 32 bytes; `sha256:<hex>` in Python."""

    impl = LargeBinary(32)
    cache_ok = True

    def process_bind_param(self, value: Digest | None, dialect: Dialect) -> bytes | None:
        """To the driver."""
        del dialect
        return None if value is None else bytes.fromhex(hex_of(value))

    def process_result_value(self, value: object, dialect: Dialect) -> Digest | None:
        """From the driver."""
        del dialect
        return Digest(f"{ALGORITHM}:{value.hex()}") if isinstance(value, bytes) else None


def microseconds_of(at: datetime) -> int:
    """Microseconds since 1970, exactly."""
    return (at - EPOCH) // _MICROSECOND
