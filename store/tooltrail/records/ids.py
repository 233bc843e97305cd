"""Identity: UUID version 7 (RFC 9562 section 5.7), made by the store and never by a provider.

A call id of a provider repeats, is empty, or holds slashes; it is data. A UUIDv7 sorts by the time
of its making, so that an index on it grows at its end. Its last digits are the random ones, which
is why people shorten an id to its end.
"""

import hashlib
import re
import threading
from collections.abc import Callable
from uuid import UUID

from tooltrail.records.errors import InvalidRecordError

SHORT_ID_DIGITS = 8
"""Digits of a shortened id. 32 random bits: within ten thousand records two clash in 1 of 90 cases,
and a clash is reported, never guessed at."""

_RANDOM_BITS = 62
_COUNTER_BITS = 12

_SPELLING = "[0-9a-fA-F]{32}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
"""`uuid.UUID` takes far more for an id: signs, underscores, `0x`, hyphens in any place."""


class IdFactory:
    """Makes UUIDv7 that rise strictly within one process, also when the clock stands or jumps back.

    The 12 bits after the milliseconds are a counter (RFC 9562 section 6.2, method 1). When it is
    used up within one millisecond the timestamp runs ahead of the clock by one. Safe to share
    between threads; not between a process and its fork, each of which must make its own.

    Args:
        unix_ms: the clock, milliseconds since 1970 UTC.
        entropy: gives so many random bytes, `os.urandom` for instance.
    """

    def __init__(self, *, unix_ms: Callable[[], int], entropy: Callable[[int], bytes]) -> None:
        self._unix_ms = unix_ms
        self._entropy = entropy
        self._lock = threading.Lock()
        self._last_ms = -1
        self._counter = 0

    def __call__(self) -> UUID:
        """The next id."""
        tail = int.from_bytes(self._entropy(8), "big") & ((1 << _RANDOM_BITS) - 1)
        with self._lock:
            now = self._unix_ms()
            if now > self._last_ms:
                self._last_ms, self._counter = now, 0
            else:
                self._counter += 1
                if self._counter >> _COUNTER_BITS:
                    self._last_ms, self._counter = self._last_ms + 1, 0
            return uuid7(self._last_ms, self._counter, tail)


def uuid7(unix_ms: int, counter: int, tail: int) -> UUID:
    """Put a UUIDv7 together.

    Args:
        unix_ms: milliseconds since 1970 UTC, 48 bits.
        counter: 12 bits.
        tail: 62 bits.
    """
    return UUID(int=unix_ms << 80 | 0x7 << 76 | counter << 64 | 0b10 << 62 | tail)


MAX_KEY_CHARS = 1000
"""Characters of an idempotency key, and of a session's name."""


def keyed_id(kind: str, key: str) -> UUID:
    """The id of what is recorded under a key: UUID version 8 (RFC 9562 section 5.8).

    The same kind and key give the same id on every machine, so that nobody needs to look it up.

    Args:
        kind: `session`, `name`, `call` or `message`.
        key: any text of 1 to `MAX_KEY_CHARS` characters.

    Raises:
        InvalidRecordError: the key is empty or too long.
    """
    if not 0 < len(key) <= MAX_KEY_CHARS:
        raise InvalidRecordError(
            f"a key must have 1 to {MAX_KEY_CHARS:,} characters, not {len(key):,}"
        )
    data = f"tooltrail\0{kind}\0{key}".encode("utf-8", "surrogatepass")
    number = int.from_bytes(hashlib.sha256(data).digest()[:16], "big")
    number &= ~(0xF << 76 | 0b11 << 62)
    return UUID(int=number | 0x8 << 76 | 0b10 << 62)


def parse_id(text: str) -> UUID:
    """Read an id in its full spelling, with hyphens or without.

    Raises:
        InvalidRecordError: `text` is not a UUID.
    """
    if re.fullmatch(_SPELLING, text) is None:
        raise InvalidRecordError(f"not an id: {text[:80]!r}")
    return UUID(text)


def short_id(record_id: UUID) -> str:
    """The last digits of an id, enough for people to point at it."""
    return record_id.hex[-SHORT_ID_DIGITS:]
