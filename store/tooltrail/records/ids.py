"""Ids: UUID version 7 (RFC 9562 section 5.7), made by the store and never by a provider.

A provider's call id may repeat, be empty, or hold slashes, so it is only data. UUIDv7s sort by the
time of their creation, so that an index on them grows at its end. Their last digits are the random
ones, so a shortened id consists of the last digits.
"""

import re
import threading
from collections.abc import Callable
from uuid import UUID

from tooltrail.records.digests import sha256
from tooltrail.records.errors import InvalidRecordError, check_type

SHORT_ID_DIGITS = 8
"""Digits of a shortened id. They are 32 random bits: among ten thousand records two clash in 1 of
90 cases. A clash is reported, never resolved by a guess."""

_RANDOM_BITS = 62
_COUNTER_BITS = 12

_SPELLING = "[0-9a-fA-F]{32}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
"""Accepted ids. `uuid.UUID` accepts far more: signs, underscores, `0x`, hyphens anywhere."""


class IdFactory:
    """Makes UUIDv7s that strictly increase within a process, even if the clock stops or jumps back.

    The 12 bits after the milliseconds are a counter (RFC 9562 section 6.2, method 1). If the
    counter overflows within a millisecond, it carries into the timestamp, which then runs ahead of
    the clock. Safe to share between threads; not between a process and its fork: each needs its
    own factory.

    Args:
        unix_ms: the clock, milliseconds since 1970 UTC.
        entropy: returns the given number of random bytes, for example `os.urandom`.
    """

    def __init__(self, *, unix_ms: Callable[[], int], entropy: Callable[[int], bytes]) -> None:
        self._unix_ms = unix_ms
        self._entropy = entropy
        self._lock = threading.Lock()
        self._last = -1  # milliseconds and counter as one number

    def __call__(self) -> UUID:
        """The next id."""
        tail = int.from_bytes(self._entropy(8), "big") & ((1 << _RANDOM_BITS) - 1)
        with self._lock:
            self._last = max(self._unix_ms() << _COUNTER_BITS, self._last + 1)
            return uuid7(*divmod(self._last, 1 << _COUNTER_BITS), tail)


def uuid7(unix_ms: int, counter: int, tail: int) -> UUID:
    """A UUIDv7 of 48 bits of milliseconds since 1970 UTC, 12 bits of a counter, and 62 bits."""
    return UUID(int=unix_ms << 80 | 0x7 << 76 | counter << 64 | 0b10 << 62 | tail)


MAX_KEY_CHARS = 1000
"""Most characters of an idempotency key, and of a session's name."""


def keyed_id(kind: str, key: str) -> UUID:
    """The id of a record that has an idempotency key: UUID version 8 (RFC 9562 section 5.8).

    The same kind and key give the same id on every machine, so that no lookup is needed.

    Args:
        kind: `session`, `name`, `call` or `message`.
        key: any text of 1 to `MAX_KEY_CHARS` characters.

    Raises:
        InvalidRecordError: the key is no text, or has another length.
    """
    check_type("a key or name", key, str)
    if not 0 < len(key) <= MAX_KEY_CHARS:
        what = "the name of a session" if kind == "name" else "a key"
        raise InvalidRecordError(
            f"{what} must have 1 to {MAX_KEY_CHARS:,} characters, not {len(key):,}"
        )
    data = f"tooltrail\0{kind}\0{key}".encode("utf-8", "surrogatepass")
    number = int.from_bytes(sha256(data)[:16], "big")
    number &= ~(0xF << 76 | 0b11 << 62)
    return UUID(int=number | 0x8 << 76 | 0b10 << 62)


def parse_id(text: str) -> UUID:
    """Read a full id, with or without hyphens.

    Raises:
        InvalidRecordError: `text` is not a UUID.
    """
    if re.fullmatch(_SPELLING, text) is None:
        raise InvalidRecordError(f"not an id: {text[:80]!r}")
    return UUID(text)


def short_id(record_id: UUID) -> str:
    """The last digits of an id, enough for people to refer to a record."""
    return record_id.hex[-SHORT_ID_DIGITS:]
