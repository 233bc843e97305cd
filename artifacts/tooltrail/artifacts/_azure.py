"""Azure Blob Storage, through adlfs.

Objects are created with `If-None-Match: *`. Large objects are uploaded in blocks. Azure removes
uncommitted blocks after a week; there is no request that removes them earlier.
"""

from pathlib import Path
from typing import Any, Protocol

from tooltrail.artifacts._connection import Connection
from tooltrail.artifacts._entries import FileFacts, Info, facts_of
from tooltrail.artifacts._object_backend import PARALLEL_PARTS
from tooltrail.artifacts._ranges import clip
from tooltrail.artifacts._store_errors import translating_errors
from tooltrail.records.errors import InvalidRecordError

DEFAULTS: dict[str, Any] = {"connection_timeout": 10, "read_timeout": 30}
"""Options of adlfs, in seconds. Azure's client retries a request up to three times."""


class AzureFileSystem(Protocol):
    """The part of adlfs that is used here, with types."""

    def info(self, path: str) -> Info: ...
    def cat_file(self, path: str, *, start: int | None, end: int | None) -> bytes: ...
    def ls(self, path: str, *, detail: bool) -> list[Info]: ...
    def rm_file(self, path: str) -> None: ...
    def pipe_file(self, path: str, value: bytes, *, overwrite: bool) -> None: ...
    def put_file(
        self, lpath: str, rpath: str, *, overwrite: bool, max_concurrency: int
    ) -> None: ...


class AzureStore:
    """One container; see `ObjectStore`."""

    def __init__(self, connection: Connection[AzureFileSystem], bucket: str) -> None:
        self._connection = connection
        self._bucket = bucket

    def check_key(self, key: str) -> None:
        # adlfs splits paths like URLs, and joins the parts in another order.
        if "?" in key and "#" in key:
            raise InvalidRecordError("a path on Azure cannot contain both '?' and '#'")

    def head(self, key: str) -> FileFacts:
        with translating_errors():
            return facts_of(self._connection.get().info(self._path(key)))

    def get(self, key: str, start: int, stop: int | None) -> bytes:
        if start < 0:
            # Azure does not support ranges that are counted from the end.
            start, stop = clip(start, stop, self.head(key).size)
        if start == stop:
            return b""
        # Azure refuses a range of an empty object, but returns the complete object. Its client
        # asks for the complete object only if no start is given.
        first = None if start == 0 else start
        with translating_errors():
            return self._connection.get().cat_file(self._path(key), start=first, end=stop)

    def create(self, key: str, data: bytes) -> None:
        with translating_errors():
            self._connection.get().pipe_file(self._path(key), data, overwrite=False)

    def upload(self, key: str, source: Path) -> None:
        with translating_errors():
            self._connection.get().put_file(
                str(source), self._path(key), overwrite=False, max_concurrency=PARALLEL_PARTS
            )

    def clear_uploads(self, key: str) -> None:
        """Do nothing: Azure removes uncommitted blocks."""

    def delete(self, key: str) -> None:
        with translating_errors():
            self._connection.get().rm_file(self._path(key))

    def infos(self, prefix: str) -> list[Info]:
        with translating_errors():
            return self._connection.get().ls(self._path(prefix).rstrip("/"), detail=True)

    def check(self, prefix: str) -> None:  # noqa: ARG002 - access is granted by container
        with translating_errors():
            self._connection.get().info(self._bucket)

    def _path(self, key: str) -> str:
        return f"{self._bucket}/{key}"
