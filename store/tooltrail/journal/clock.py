"""The clock and the entropy of this process, which records themselves must not read."""

import os
import time
from datetime import UTC, datetime
from functools import partial
from typing import Final
from uuid import UUID

from tooltrail.records.ids import IdFactory, keyed_id

now: Final = partial(datetime.now, UTC)
"""The time, aware UTC."""


def _unix_ms() -> int:
    return time.time_ns() // 1_000_000


class _Ids:
    factory = IdFactory(unix_ms=_unix_ms, entropy=os.urandom)


def _renew() -> None:
    # A fork would go on with its parent's counter; the random digits alone keep them apart.
    _Ids.factory = IdFactory(unix_ms=_unix_ms, entropy=os.urandom)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


def new_id() -> UUID:
    """A fresh UUIDv7."""
    return _Ids.factory()


def id_of(kind: str, key: str | None) -> UUID:
    """The id that follows from an idempotency key; a fresh one without a key.

    Raises:
        InvalidRecordError: the key is empty or too long.
    """
    return new_id() if key is None else keyed_id(kind, key)
