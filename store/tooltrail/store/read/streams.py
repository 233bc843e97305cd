"""Reads streams of complete outputs: the location of their bytes, and the bytes.

The bytes of a stream are a part of the receipt, else a body, else an artifact, else they wait in a
spool.
"""

import io
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Final
from uuid import UUID

from tooltrail.artifacts.paths import artifact_path
from tooltrail.records.digests import Digest, digest_of
from tooltrail.records.errors import DamageError, DigestMismatchError, unavailable_if_failing
from tooltrail.store.engines.connection import Connection
from tooltrail.store.read.bodies import read_body
from tooltrail.store.read.columns import Columns, Computed, make_view
from tooltrail.store.read.rows import Row, Sql, fetch, fetch_value, where
from tooltrail.store.views import Erasure, StreamView

_STREAM: Final = Columns(
    "streams: invocation_key role digest size line_count produced_size produced_line_count"
    " loss_reason receipt_offset",
    optional=(
        Computed("artifacts.key", "artifact_key", "integer"),
        Computed("pending_artifacts.reason", "pending_reason", "text"),
        "tombstones: reason rule removed_at",
    ),
)
_STREAMS: Final = f"""
SELECT {_STREAM.sql} FROM streams
JOIN invocations ON invocations.key = streams.invocation_key
LEFT JOIN bodies ON streams.receipt_offset IS NULL AND bodies.digest = streams.digest
LEFT JOIN artifacts ON streams.receipt_offset IS NULL AND bodies.key IS NULL
    AND artifacts.digest = streams.digest
LEFT JOIN pending_artifacts ON streams.receipt_offset IS NULL AND bodies.key IS NULL
    AND artifacts.key IS NULL AND pending_artifacts.digest = streams.digest
    AND pending_artifacts.journal_key = (
        SELECT min(p.journal_key) FROM pending_artifacts AS p WHERE p.digest = streams.digest)
LEFT JOIN tombstones ON streams.receipt_offset IS NULL AND bodies.data IS NULL
    AND tombstones.key = (SELECT max(t.key) FROM tombstones AS t WHERE t.digest = streams.digest)"""

# The artifact may have been stored from the spool of another journal.
_WAITING_FILES: Final = """
SELECT p.spooled, j.host, j.spool FROM pending_artifacts AS p
JOIN journals AS j ON j.key = p.journal_key WHERE p.digest = ?
AND NOT EXISTS (SELECT 1 FROM artifacts AS a WHERE a.digest = p.digest)"""
_RECEIPT: Final = """
SELECT surfaces.receipt FROM invocations
JOIN surfaces ON surfaces.invocation_key = invocations.key WHERE invocations.id = ?"""


def select_streams(which: Sql) -> Sql:
    """Select the streams of some invocations, in order."""
    return Sql(_STREAMS) + where([which]) + " ORDER BY streams.invocation_key, streams.n"


def stream_view(
    row: Row, owner: UUID, erasures: Mapping[str, Erasure]
) -> tuple[StreamView, list[str]]:
    """The view of a row of `select_streams`, and the problems of the row.

    `owner` is the invocation; `erasures` are the erasures of its texts, by name.
    """
    values, problems = _STREAM.read(row)
    erasure = None if values["receipt_offset"] is None else erasures.get("receipt")
    if values["removed_at"] is not None:
        reason, rule = values["reason"] or "", values["rule"] or ""
        erasure = Erasure(values["role"], reason, rule, values["removed_at"])
    path = None if values["artifact_key"] is None else artifact_path(values["digest"])
    more = {"invocation_id": owner, "artifact_path": path, "erasure": erasure}
    return make_view(StreamView, values, **more), problems


def open_in_database(connection: Connection, stream: StreamView) -> BinaryIO:
    """The bytes of a stream that is a part of a receipt, or a body.

    Raises `NotFoundError` if they are erased, and `DamageError` if they are missing or altered.
    """
    if stream.receipt_offset is None or stream.invocation_id is None:
        return io.BytesIO(read_body(connection, stream.digest))
    subject, owner = f"stream {stream.role}", str(stream.invocation_id)
    receipt: Any = fetch_value(connection, Sql(_RECEIPT, (stream.invocation_id,)))
    if not isinstance(receipt, str):
        message = f"{subject} is damaged: its receipt is erased, lost or no text"
        raise DamageError(message, path=owner)
    data = receipt.encode()[stream.receipt_offset :][: stream.size]
    if digest_of(data) != stream.digest:
        message = f"{subject} is damaged: its part of the receipt has another digest"
        raise DigestMismatchError(message, path=owner)
    return io.BytesIO(data)


def part_of(data: bytes) -> Callable[[int, int], bytes]:
    """A function that returns the bytes from an offset up to another."""
    return lambda start, stop: data[start:stop]


def waiting_files(connection: Connection, digest: Digest) -> dict[str, tuple[str, str]]:
    """The files that wait to be stored as an artifact, each with its host and its spool.

    A file is relative to its spool.
    """
    rows = fetch(connection, Sql(_WAITING_FILES, (connection.sha(digest),)))
    return {str(file): (str(host), str(spool)) for file, host, spool in rows}


def open_waiting(file: Path, stream: StreamView) -> BinaryIO | None:
    """The bytes of a stream from its file in the spool; None if there is no such file."""
    from tooltrail.artifacts import open_checked, open_without_links  # noqa: PLC0415  rarely needed

    with (
        unavailable_if_failing(f"{file} cannot be read"),
        suppress(FileNotFoundError, NotADirectoryError),
    ):
        stored = io.BufferedReader(open_without_links(file))
        return open_checked(stored, artifact_path(stream.digest), stream.size)
    return None
