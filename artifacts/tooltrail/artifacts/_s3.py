"""Amazon S3 and compatible stores, through s3fs.

Objects are created with `If-None-Match: *`, which S3 also checks when a multipart upload is
completed. If a part fails, the upload of s3fs aborts while other parts are in flight, and S3 keeps
those parts. The upload here waits for all parts before it aborts.
"""

import contextlib
import math
import os
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tooltrail.artifacts._entries import FileFacts
from tooltrail.artifacts._object_backend import PARALLEL_PARTS, PART_SIZE, ObjectStore
from tooltrail.records.errors import InvalidRecordError

MOST_PARTS = 10_000
"""Parts per upload, a limit of S3; objects above 80 GiB have larger parts."""

DEFAULTS: dict[str, Any] = {
    "config_kwargs": {
        "connect_timeout": 5,
        "read_timeout": 20,
        **({} if "AWS_MAX_ATTEMPTS" in os.environ else {"retries": {"total_max_attempts": 2}}),
    }
}
"""Options of s3fs, in seconds. botocore makes two attempts, not five, because a command that reads
waits for them; s3fs retries too."""

RETRIES = 2
"""Attempts of s3fs per request, and per read of a body. Its default of 5 is too many together with
the retries of botocore if the store does not answer."""


class S3Store(ObjectStore):
    """One bucket; see `ObjectStore`."""

    def check_key(self, key: str) -> None:
        if "?versionId=" in key:
            raise InvalidRecordError("a path on S3 cannot contain '?versionId='")

    def head(self, key: str) -> FileFacts:
        answer = self._call("head_object", Key=key)
        modified_at: datetime = answer["LastModified"]
        return FileFacts(answer["ContentLength"], modified_at.astimezone(UTC))

    def create(self, key: str, data: bytes) -> None:
        self._call("put_object", Key=key, Body=data, IfNoneMatch="*")

    def upload(self, key: str, source: Path) -> None:
        with source.open("rb") as file, self._uploading(key) as upload_id:
            sent = self._send_parts(key, upload_id, file.fileno())
            self._call(
                "complete_multipart_upload",
                Key=key,
                UploadId=upload_id,
                MultipartUpload={"Parts": sent},
                IfNoneMatch="*",
            )

    def clear_uploads(self, key: str) -> None:
        # Without the right to list or abort uploads, a lifecycle rule of the bucket removes them.
        with contextlib.suppress(OSError):
            answer = self._call("list_multipart_uploads", Prefix=key)
            for upload in answer.get("Uploads", []):
                if upload["Key"] == key:
                    self._abort(key, upload["UploadId"])

    def check(self, prefix: str) -> None:
        self._call("list_objects_v2", Prefix=prefix, MaxKeys=1)

    @contextlib.contextmanager
    def _uploading(self, key: str) -> Generator[str]:
        upload_id: str = self._call("create_multipart_upload", Key=key)["UploadId"]
        try:
            yield upload_id
        except BaseException:
            # The first error is the one to report. If the abort fails too, a later put aborts.
            with contextlib.suppress(OSError):
                self._abort(key, upload_id)
            raise

    def _send_parts(self, key: str, upload_id: str, descriptor: int) -> list[dict[str, Any]]:
        size = os.fstat(descriptor).st_size
        part_size = part_size_of(size)

        def send(index: int) -> dict[str, Any]:
            body = os.pread(descriptor, part_size, index * part_size)
            answer = self._call(
                "upload_part", Key=key, UploadId=upload_id, PartNumber=index + 1, Body=body
            )
            return {"PartNumber": index + 1, "ETag": answer["ETag"]}

        # Leaving the pool waits for the parts in flight; map cancels the others.
        with ThreadPoolExecutor(PARALLEL_PARTS) as pool:
            return list(pool.map(send, range(math.ceil(size / part_size))))

    def _abort(self, key: str, upload_id: str) -> None:
        self._call("abort_multipart_upload", Key=key, UploadId=upload_id)

    def _call(self, method: str, **arguments: object) -> dict[str, Any]:
        with self._client() as client:
            return client.call_s3(method, Bucket=self._bucket, **arguments)


def part_size_of(size: int) -> int:
    """The size in bytes of each part but the last, for an object of `size` bytes."""
    return max(PART_SIZE, math.ceil(size / MOST_PARTS))
