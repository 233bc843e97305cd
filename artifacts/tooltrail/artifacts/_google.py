"""Google Cloud Storage, through gcsfs.

Objects are created with `ifGenerationMatch=0`. Large objects are uploaded in a resumable session,
which is neither visible nor charged until it is complete. gcsfs cancels it if a chunk fails.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from tooltrail.artifacts._connection import Connection
from tooltrail.artifacts._entries import FileFacts, Info
from tooltrail.artifacts._object_backend import PART_SIZE
from tooltrail.artifacts._store_errors import translating_errors

DEFAULTS: dict[str, Any] = {"requests_timeout": 60}
"""Options of gcsfs: seconds per request. gcsfs retries a request up to five times."""

_CONTENT_TYPE = "application/octet-stream"


class GoogleFileSystem(Protocol):
    """The part of gcsfs that is used here, with types."""

    def call(
        self, method: str, path: str, *names: str, json_out: bool, **parameters: object
    ) -> Info: ...
    def cat_file(self, path: str, *, start: int, end: int | None) -> bytes: ...
    def ls(self, path: str, *, detail: bool) -> list[Info]: ...
    def rm_file(self, path: str) -> None: ...
    def pipe_file(self, path: str, value: bytes, *, content_type: str, mode: str) -> None: ...
    def put_file(
        self, lpath: str, rpath: str, *, content_type: str, chunksize: int, mode: str
    ) -> None: ...


class GoogleStore:
    """One bucket; see `ObjectStore`."""

    def __init__(self, connection: Connection[GoogleFileSystem], bucket: str) -> None:
        self._connection = connection
        self._bucket = bucket

    def check_key(self, key: str) -> None:
        """Accept every key: gcsfs confuses none."""

    def head(self, key: str) -> FileFacts:
        # `info` would send a second request, to look for a folder with this name.
        with translating_errors():
            item = self._connection.get().call("GET", "b/{}/o/{}", self._bucket, key, json_out=True)
        modified_at = datetime.fromisoformat(item["updated"])
        return FileFacts(int(item["size"]), modified_at.astimezone(UTC))

    def get(self, key: str, start: int, stop: int | None) -> bytes:
        with translating_errors():
            return self._connection.get().cat_file(self._path(key), start=start, end=stop)

    def create(self, key: str, data: bytes) -> None:
        with translating_errors():
            self._connection.get().pipe_file(
                self._path(key), data, content_type=_CONTENT_TYPE, mode="create"
            )

    def upload(self, key: str, source: Path) -> None:
        with translating_errors():
            self._connection.get().put_file(
                str(source),
                self._path(key),
                content_type=_CONTENT_TYPE,
                chunksize=PART_SIZE,
                mode="create",
            )

    def clear_uploads(self, key: str) -> None:
        """Do nothing: Google removes unfinished sessions."""

    def delete(self, key: str) -> None:
        with translating_errors():
            self._connection.get().rm_file(self._path(key))

    def infos(self, prefix: str) -> list[Info]:
        with translating_errors():
            return self._connection.get().ls(self._path(prefix).rstrip("/"), detail=True)

    def check(self, prefix: str) -> None:
        with translating_errors():
            self._connection.get().call(
                "GET", "b/{}/o", self._bucket, json_out=True, prefix=prefix or None, maxResults=1
            )

    def _path(self, key: str) -> str:
        return f"{self._bucket}/{key}"
