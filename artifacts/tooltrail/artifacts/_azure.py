"""Azure Blob Storage, through adlfs.

Objects are created with `If-None-Match: *`. Large objects are uploaded in blocks. Azure removes
uncommitted blocks after a week; there is no request that removes them earlier.
"""

from pathlib import Path
from typing import Any

from tooltrail.artifacts._entries import FileFacts, facts_of
from tooltrail.artifacts._object_backend import PARALLEL_PARTS, ObjectStore
from tooltrail.artifacts._ranges import clip
from tooltrail.records.errors import InvalidRecordError

DEFAULTS: dict[str, Any] = {"connection_timeout": 10, "read_timeout": 30}
"""Options of adlfs, in seconds. Azure's client retries a request up to three times."""


class AzureStore(ObjectStore):
    """One container; see `ObjectStore`. Azure removes uncommitted blocks by itself."""

    def check_key(self, key: str) -> None:
        # adlfs splits paths like URLs, and joins the parts in another order.
        if "?" in key and "#" in key:
            raise InvalidRecordError("a path on Azure cannot contain both '?' and '#'")

    def head(self, key: str) -> FileFacts:
        with self._client() as client:
            return facts_of(client.info(self._path(key)))

    def get(self, key: str, start: int, stop: int | None) -> bytes:
        if start < 0:
            # Azure does not support ranges that are counted from the end.
            start, stop = clip(start, stop, self.head(key).size)
        if start == stop:
            return b""
        # Azure refuses a range of an empty object, but returns the complete object. Its client
        # asks for the complete object only if no start is given.
        first = None if start == 0 else start
        with self._client() as client:
            return client.cat_file(self._path(key), start=first, end=stop)

    def create(self, key: str, data: bytes) -> None:
        with self._client() as client:
            client.pipe_file(self._path(key), data, overwrite=False)

    def upload(self, key: str, source: Path) -> None:
        with self._client() as client:
            client.put_file(
                str(source), self._path(key), overwrite=False, max_concurrency=PARALLEL_PARTS
            )

    def check(self, prefix: str) -> None:  # noqa: ARG002 - access is granted by container
        with self._client() as client:
            client.info(self._bucket)
