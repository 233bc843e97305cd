"""Column types of the lean schema: short on SQLite, native on PostgreSQL."""

from sqlalchemy import BigInteger, Integer, LargeBinary, Text
from sqlalchemy.dialects import postgresql

# SQLite makes a rowid alias of INTEGER only; psycopg overflows on a plain Integer.
Int64 = BigInteger().with_variant(Integer(), "sqlite")

AnyText = Text()
"""Text in which NUL and lone surrogates are escapes; see `Connection.text`."""

Uuid16 = LargeBinary(16).with_variant(postgresql.UUID(as_uuid=True), "postgresql")
"""A UUID: native on PostgreSQL, 16 bytes on SQLite, in the same order."""

Moment = Integer().with_variant(postgresql.TIMESTAMP(timezone=True), "postgresql")
"""A time: timestamptz on PostgreSQL, microseconds since 1970 on SQLite."""

Sha256 = LargeBinary(32)
"""A SHA-256 digest in 32 bytes."""
