"""Converts stored values: compact types on SQLite, native types on PostgreSQL."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final, cast
from uuid import UUID

from tooltrail.records.digests import ALGORITHM, Digest
from tooltrail.records.times import in_utc

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
LEAST_KEY: Final = -(1 << 63)
"""The least integer of both engines."""

NO_NUMBER: Final = 1 << 62
"""Every key, and every position in a session or a ledger, is smaller in a store without damage. New
rows get the next number below it. Larger numbers are damage, and SQLite has no number after its
largest one."""

_MICROSECOND: Final = timedelta(microseconds=1)


def microseconds_of(at: datetime) -> int:
    """Microseconds since 1970, exactly."""
    return (in_utc(at) - EPOCH) // _MICROSECOND


def digest_from(value: bytes) -> Digest:
    """The digest in a value of a driver."""
    return Digest(f"{ALGORITHM}:{bytes(value).hex()}")


def moment_of(value: object) -> datetime:
    """The time in a value of a driver; 1970 for a damaged value, so that it hides nothing else."""
    with suppress(OverflowError):
        if isinstance(value, int):
            return EPOCH + timedelta(microseconds=value)
    return value if isinstance(value, datetime) else EPOCH


def uuid_from(value: object) -> UUID:
    """The id in a value of a driver."""
    return UUID(bytes=value) if isinstance(value, bytes) else cast("UUID", value)
