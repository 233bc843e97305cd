"""Times in UTC, from any aware `datetime`."""

from datetime import UTC, datetime
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def in_utc(at: datetime) -> datetime:
    """An aware time in UTC as a plain `datetime`; raises `ValueError` for a time without a zone.

    A subclass, such as a `Timestamp` of pandas, may change every method. So none is called but
    `utcoffset`.
    """
    if type(at) is datetime and at.tzinfo is UTC:
        return at
    if at.utcoffset() is None:
        raise ValueError(f"a recorded time must have a zone: {at}")
    return _EPOCH + datetime.__sub__(at, _EPOCH)
