"""Sinks in object stores: what S3, Google and Azure have in common.

All three create an object exclusively when they are asked to, atomically and durably, so there are
no parts, no folders and no links here. Large objects go up in parts, and only then is it decided
who was first: whether the object is there already is asked before.
"""

import errno
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO, Protocol

from tooltrail.artifacts._entries import FileFacts, Info, children
from tooltrail.artifacts._ranged_reader import open_ranged
from tooltrail.artifacts._store_errors import RangeBeyondEndError
from tooltrail.artifacts.sink import SinkCapabilities

FRAME_SIZE = 1024 * 1024
"""Plain bytes in a frame: a request takes some 20 ms, in which a megabyte more arrives."""

PART_SIZE = 8 * 1024 * 1024
"""Bytes of a part of a large object. What is not larger than that goes up in one request."""

CONCURRENT_PUTS = 8
"""Fewer than the connections that a client keeps, 10 for S3 by default."""

PARALLEL_PARTS = 4
"""Parts on their way at once, each held in memory."""


class ObjectStore(Protocol):
    """One bucket, as a place needs it. All methods but `check_key` raise OSError.

    Keys are relative to the bucket.
    """

    def check_key(self, key: str) -> None:
        """Raise InvalidRecordError for a key that the client would take for another one."""
        ...

    def head(self, key: str) -> FileFacts:
        """What is known of an object; FileNotFoundError."""
        ...

    def get(self, key: str, start: int, stop: int | None) -> bytes:
        """A range that is not empty; FileNotFoundError, RangeBeyondEndError."""
        ...

    def create(self, key: str, data: bytes) -> None:
        """Create a small object exclusively; FileExistsError."""
        ...

    def upload(self, key: str, source: Path) -> None:
        """Create a large object exclusively, and leave no parts when that fails.

        FileExistsError, or FileNotFoundError when another process has given up the upload.
        """
        ...

    def clear_uploads(self, key: str) -> None:
        """Give up all uploads to a key that can no longer succeed."""
        ...

    def delete(self, key: str) -> None:
        """Remove an object that was there a moment ago."""
        ...

    def infos(self, prefix: str) -> list[Info]:
        """The names below a prefix, which is empty or ends in a slash, by `BUCKET/KEY`."""
        ...

    def check(self, prefix: str) -> None:
        """Raise unless the bucket is there and may be listed below the prefix."""
        ...


class ObjectPlace:
    """Objects below a prefix of a bucket."""

    may_be_replaced = False
    capabilities = SinkCapabilities(
        durable=True,
        exclusive_create=True,
        cross_process=True,
        seekable=True,
        frame_size=FRAME_SIZE,
        concurrent_puts=CONCURRENT_PUTS,
    )

    def __init__(self, store: ObjectStore, bucket: str, prefix: str) -> None:
        """Keep objects in `bucket` below `prefix`, which is empty or ends in a slash."""
        self._store = store
        self._bucket = bucket
        self._prefix = prefix

    def locate(self, path: str) -> str:
        key = self._prefix + path
        self._store.check_key(key)
        return key

    def publish(self, source: Path, target: str) -> bool:
        if source.stat().st_size <= PART_SIZE:
            return self._is_created(target, partial(self._store.create, data=source.read_bytes()))
        is_new = not self._is_there(target) and self._is_created(
            target, partial(self._store.upload, source=source)
        )
        # The object stands, so no other upload can succeed: not one that a killed process left
        # behind, and not one that is still running elsewhere, whose bytes are the same.
        self._store.clear_uploads(target)
        return is_new

    def open(self, target: str) -> BinaryIO:
        """One request for its size; see `RangedReader` for the rest."""
        return open_ranged(partial(self.read, target), self._store.head(target).size)

    def read(self, target: str, start: int, stop: int | None) -> bytes:
        if start == stop:
            self._store.head(target)
            return b""
        try:
            return self._store.get(target, start, stop)
        except RangeBeyondEndError:
            return b""

    def facts(self, target: str) -> FileFacts:
        return self._store.head(target)

    def delete(self, target: str) -> None:
        # Stores answer alike whether an object was there or not.
        self._store.head(target)
        self._store.delete(target)

    def children(self, folder: str) -> Iterator[tuple[str, FileFacts | None]]:
        prefix = self._prefix + folder
        return children(self._store.infos(prefix), f"{self._bucket}/{prefix}")

    def check_root(self) -> None:
        try:
            self._store.check(self._prefix)
        except FileNotFoundError as error:
            raise FileNotFoundError(errno.ENOENT, f"there is no bucket {self._bucket}") from error

    def _is_there(self, target: str) -> bool:
        try:
            self._store.head(target)
        except FileNotFoundError:
            return False
        return True

    def _is_created(self, target: str, create: Callable[[str], None]) -> bool:
        try:
            create(target)
        except (FileExistsError, FileNotFoundError):
            # The same codes stand for a bucket that is not there and for a change under way.
            if not self._is_there(target):
                self.check_root()
                raise
            return False
        return True
