"""The clock and the entropy of this process. `tooltrail.records` must not read either."""

import os
import time
from datetime import UTC, datetime
from functools import partial
from typing import Final
from uuid import UUID

from tooltrail.records.ids import IdFactory, keyed_id

now: Final = partial(datetime.now, UTC)
"""The time, aware UTC."""


class _Ids:
    factory: IdFactory

    @classmethod
    def renew(cls) -> None:
        cls.factory = IdFactory(unix_ms=lambda: time.time_ns() // 1_000_000, entropy=os.urandom)


_Ids.renew()
# A fork would continue its parent's counter; only the random digits would tell them apart.
os.register_at_fork(after_in_child=_Ids.renew)


def new_id() -> UUID:
    """A fresh UUIDv7."""
    return _Ids.factory()


def id_of(kind: str, key: str | None) -> UUID:
    """The id that is derived from an idempotency key; a new id without a key.

    Raises `InvalidRecordError` if the key is empty or too long.
    """
    return new_id() if key is None else keyed_id(kind, key)
