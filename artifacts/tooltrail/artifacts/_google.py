"""Google Cloud Storage, by gcsfs.

Objects are created with `ifGenerationMatch=0`. Large ones go up in a resumable session, which
nobody sees or pays for before it is complete, and which gcsfs gives up when a chunk fails.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from tooltrail.artifacts._connection import Connection
from tooltrail.artifacts._entries import FileFacts, Info
from tooltrail.artifacts._object_place import PART_SIZE
from tooltrail.artifacts._store_errors import asking

DEFAULTS: dict[str, Any] = {"requests_timeout": 60}
"""Options of gcsfs: seconds for one request, which it repeats up to five times."""

_CONTENT_TYPE = "application/octet-stream"


class GoogleFileSystem(Protocol):
    """As much of gcsfs as is used here, with types."""

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
        """Every key is its own."""

    def head(self, key: str) -> FileFacts:
        # `info` asks twice, in case there is a folder of this name.
        with asking():
            item = self._connection.get().call("GET", "b/{}/o/{}", self._bucket, key, json_out=True)
        modified_at = datetime.fromisoformat(item["updated"])
        return FileFacts(int(item["size"]), modified_at.astimezone(UTC))

    def get(self, key: str, start: int, stop: int | None) -> bytes:
        with asking():
            return self._connection.get().cat_file(self._path(key), start=start, end=stop)

    def create(self, key: str, data: bytes) -> None:
        with asking():
            self._connection.get().pipe_file(
                self._path(key), data, content_type=_CONTENT_TYPE, mode="create"
            )

    def upload(self, key: str, source: Path) -> None:
        with asking():
            self._connection.get().put_file(
                str(source),
                self._path(key),
                content_type=_CONTENT_TYPE,
                chunksize=PART_SIZE,
                mode="create",
            )

    def clear_uploads(self, key: str) -> None:
        """Sessions end by themselves."""

    def delete(self, key: str) -> None:
        with asking():
            self._connection.get().rm_file(self._path(key))

    def infos(self, prefix: str) -> list[Info]:
        with asking():
            return self._connection.get().ls(self._path(prefix).rstrip("/"), detail=True)

    def check(self, prefix: str) -> None:
        with asking():
            self._connection.get().call(
                "GET", "b/{}/o", self._bucket, json_out=True, prefix=prefix or None, maxResults=1
            )

    def _path(self, key: str) -> str:
        return f"{self._bucket}/{key}"
