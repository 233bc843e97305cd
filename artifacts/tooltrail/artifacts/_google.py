"""Google Cloud Storage, through gcsfs.

Objects are created with `ifGenerationMatch=0`. Large objects are uploaded in a resumable session,
which is neither visible nor charged until it is complete. gcsfs cancels it if a chunk fails.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tooltrail.artifacts._entries import FileFacts
from tooltrail.artifacts._object_backend import PART_SIZE, ObjectStore

DEFAULTS: dict[str, Any] = {"requests_timeout": 60}
"""Options of gcsfs: seconds per request. gcsfs retries a request up to five times."""

_CONTENT_TYPE = "application/octet-stream"


class GoogleStore(ObjectStore):
    """One bucket; see `ObjectStore`. Google removes unfinished uploads by itself."""

    def head(self, key: str) -> FileFacts:
        # `info` would send a second request, to look for a folder with this name.
        with self._client() as client:
            item = client.call("GET", "b/{}/o/{}", self._bucket, key, json_out=True)
        modified_at = datetime.fromisoformat(item["updated"])
        return FileFacts(int(item["size"]), modified_at.astimezone(UTC))

    def create(self, key: str, data: bytes) -> None:
        with self._client() as client:
            client.pipe_file(self._path(key), data, content_type=_CONTENT_TYPE, mode="create")

    def upload(self, key: str, source: Path) -> None:
        with self._client() as client:
            client.put_file(
                str(source),
                self._path(key),
                content_type=_CONTENT_TYPE,
                chunksize=PART_SIZE,
                mode="create",
            )

    def check(self, prefix: str) -> None:
        with self._client() as client:
            client.call(
                "GET", "b/{}/o", self._bucket, json_out=True, prefix=prefix or None, maxResults=1
            )
