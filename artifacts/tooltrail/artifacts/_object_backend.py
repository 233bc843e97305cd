"""The backend for object stores: the common part of S3, Google and Azure.

All three can create an object exclusively, atomically and durably, so this module needs no
temporary names, folders or links. Large objects are uploaded in parts, and the store checks
exclusion only at the end. So the backend first checks whether the object exists.
"""

import contextlib
import errno
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from tooltrail.artifacts._connection import Connection
from tooltrail.artifacts._entries import FileFacts, Info, children
from tooltrail.artifacts._ranged_reader import open_ranged
from tooltrail.artifacts._store_errors import RangeBeyondEndError, translating_errors
from tooltrail.artifacts.sink import SinkCapabilities

FRAME_SIZE = 1024 * 1024
"""Plain bytes in a frame: in the 20 ms that a request takes, another megabyte arrives."""

PART_SIZE = 8 * 1024 * 1024
"""Bytes of a part of a large object. Smaller objects are uploaded in one request."""

CONCURRENT_PUTS = 8
"""Puts at once: fewer than the connections that a client keeps, 10 for S3 by default."""

PARALLEL_PARTS = 4
"""Parts that are uploaded at once; each is in memory."""


class ObjectFileSystem(Protocol):
    """The part of s3fs, gcsfs and adlfs that is used here, with types."""

    def info(self, path: str) -> Info: ...
    def cat_file(self, path: str, *, start: int | None, end: int | None) -> bytes: ...
    def ls(self, path: str, *, detail: bool) -> list[Info]: ...
    def rm_file(self, path: str) -> None: ...
    def pipe_file(self, path: str, value: bytes, **options: object) -> None: ...
    def put_file(self, lpath: str, rpath: str, **options: object) -> None: ...
    def call_s3(self, method: str, **arguments: object) -> dict[str, Any]: ...  # of s3fs
    def call(
        self, method: str, path: str, *names: str, **arguments: object
    ) -> Info: ...  # of gcsfs


class ObjectStore(ABC):
    """One bucket, as `ObjectBackend` uses it. All methods but `check_key` raise OSError.

    Keys are relative to the bucket.
    """

    def __init__(self, connection: Connection[ObjectFileSystem], bucket: str) -> None:
        self._connection = connection
        self._bucket = bucket

    @abstractmethod
    def head(self, key: str) -> FileFacts:
        """The size and time of an object; FileNotFoundError."""

    @abstractmethod
    def create(self, key: str, data: bytes) -> None:
        """Create a small object exclusively; FileExistsError."""

    @abstractmethod
    def upload(self, key: str, source: Path) -> None:
        """Create a large object exclusively; after a failure no parts remain.

        FileExistsError; or FileNotFoundError if another process has aborted the upload.
        """

    @abstractmethod
    def check(self, prefix: str) -> None:
        """Raise unless the bucket exists and may be listed below the prefix."""

    def check_key(self, key: str) -> None:  # noqa: B027  accepts every key
        """Raise InvalidRecordError for a key that the client would confuse with another key."""

    def clear_uploads(self, key: str) -> None:  # noqa: B027  does nothing
        """Abort all uploads to a key whose object exists, unless the store drops them by itself."""

    def get(self, key: str, start: int, stop: int | None) -> bytes:
        """The bytes of a range that is not empty; FileNotFoundError, RangeBeyondEndError."""
        with self._client() as client:
            return client.cat_file(self._path(key), start=start, end=stop)

    def delete(self, key: str) -> None:
        """Remove an object that the caller has just found."""
        with self._client() as client:
            client.rm_file(self._path(key))

    def infos(self, prefix: str) -> list[Info]:
        """The names below a prefix, as `BUCKET/KEY`. The prefix is empty or ends in a slash."""
        with self._client() as client:
            return client.ls(self._path(prefix).rstrip("/"), detail=True)

    @contextlib.contextmanager
    def _client(self) -> Generator[ObjectFileSystem]:
        """The file system; its errors become OSError."""
        with translating_errors():
            yield self._connection.get()

    def _path(self, key: str) -> str:
        return f"{self._bucket}/{key}"


class ObjectBackend:
    """Objects below a prefix of a bucket."""

    may_be_replaced = False
    capabilities = SinkCapabilities(
        durable=True,
        cross_process=True,
        frame_size=FRAME_SIZE,
        concurrent_puts=CONCURRENT_PUTS,
    )

    def __init__(self, store: ObjectStore, bucket: str, prefix: str) -> None:
        """Store objects in `bucket` below `prefix`, which is empty or ends in a slash."""
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
        # The object exists, so no other upload can succeed: neither one that a killed process
        # left, nor one that still runs elsewhere with the same bytes.
        self._store.clear_uploads(target)
        return is_new

    def open(self, target: str) -> BinaryIO:
        """Open an object with one request, for its size; reads are those of `RangedReader`."""
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
        # The answer of a store to a deletion does not tell whether the object existed.
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
            # These codes also mean that the bucket is missing, or that a change is in progress.
            if not self._is_there(target):
                self.check_root()
                raise
            return False
        return True
