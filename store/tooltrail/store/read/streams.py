"""Streams of complete outputs: where their bytes are, and the bytes.

The bytes of a stream are a part of the receipt, else a body, else an artifact, else they wait in a
spool.
"""

import io
from collections.abc import Mapping
from typing import Any, BinaryIO, Final
from uuid import UUID

from tooltrail.artifacts.paths import artifact_path
from tooltrail.records.digests import Digest, digest_of
from tooltrail.records.errors import DamageError, DigestMismatchError, NotFoundError
from tooltrail.store.engines.connection import Connection
from tooltrail.store.read.bodies import read_body
from tooltrail.store.read.columns import Columns, Computed, damage_of
from tooltrail.store.read.rows import Row, Sql, fetch, fetch_value, where
from tooltrail.store.views import Erasure, StreamView, WaitingStream

_STREAM: Final = Columns(
    "streams: invocation_key role digest size line_count produced_size produced_line_count"
    " loss_reason receipt_offset",
    Computed("bodies.data IS NOT NULL", "has_body", "flag"),
    optional=(
        Computed("bodies.key", "body_key", "integer"),
        Computed("artifacts.key", "artifact_key", "integer"),
        Computed("pending_artifacts.reason", "pending_reason", "text"),
        "tombstones: reason rule removed_at",
    ),
)
_STREAMS: Final = f"""
SELECT {_STREAM.sql} FROM streams
JOIN invocations ON invocations.key = streams.invocation_key
LEFT JOIN bodies ON bodies.digest = streams.digest
LEFT JOIN artifacts ON artifacts.digest = streams.digest
LEFT JOIN pending_artifacts ON pending_artifacts.digest = streams.digest
    AND pending_artifacts.journal_key = (
        SELECT min(p.journal_key) FROM pending_artifacts AS p WHERE p.digest = streams.digest)
LEFT JOIN tombstones ON tombstones.key = (
    SELECT max(t.key) FROM tombstones AS t WHERE t.digest = streams.digest)"""

_WAITING: Final = Columns(
    Computed("invocations.id", "invocation_id", "id"),
    "streams: role digest",
    "pending_artifacts: reason spooled",
    "invocations: finished_at",
)
_WAITS: Final = f"""
SELECT {_WAITING.sql} FROM pending_artifacts
JOIN streams ON streams.digest = pending_artifacts.digest
JOIN invocations ON invocations.key = streams.invocation_key"""
# Not `NOT IN`, which finds nothing beside a NULL.
_IS_NOT_STORED: Final = (
    "NOT EXISTS (SELECT 1 FROM artifacts AS a WHERE a.digest = pending_artifacts.digest)"
)
_RECEIPT: Final = """
SELECT surfaces.receipt FROM invocations
JOIN surfaces ON surfaces.invocation_key = invocations.key WHERE invocations.id = ?"""
_OWNER: Final = Columns("invocations: id")
_SHOWN: Final = (
    *("role", "digest", "size", "line_count", "produced_size", "produced_line_count"),
    *("loss_reason", "receipt_offset"),
)
_ORDER: Final = " ORDER BY streams.invocation_key, streams.n"


def select_streams(which: Sql) -> Sql:
    """The streams of some invocations, in their order."""
    return Sql(_STREAMS) + where([which]) + _ORDER


def stream_view(
    row: Row, owner: UUID, erasures: Mapping[str, Erasure]
) -> tuple[StreamView, list[str]]:
    """The view of a row of `select_streams`, and what of the row cannot be read.

    Args:
        row: the row.
        owner: id of the invocation.
        erasures: of the texts of the invocation, by name.
    """
    values, problems = _STREAM.read(row)
    shown: dict[str, Any] = {name: values[name] for name in _SHOWN}
    in_receipt = values["receipt_offset"] is not None
    if not in_receipt and values["body_key"] is None:
        if values["artifact_key"] is None:
            shown["pending_reason"] = values["pending_reason"]
        else:
            shown["artifact_path"] = artifact_path(values["digest"])
    if in_receipt:
        shown["erasure"] = erasures.get("receipt")
    elif values["removed_at"] is not None and not values["has_body"]:
        reason, rule = values["reason"] or "", values["rule"] or ""
        shown["erasure"] = Erasure(values["role"], reason, rule, values["removed_at"])
    return StreamView(**shown, invocation_id=owner), problems


def find_stream(connection: Connection, invocation_key: int, role: str) -> StreamView:
    """One stream of an invocation.

    Raises:
        NotFoundError: the invocation has no such stream.
        DamageError: the row is damaged.
    """
    owner = Sql("SELECT id FROM invocations WHERE key = ?", (invocation_key,))
    invocation = _OWNER.read(fetch(connection, owner)[0])[0]["id"]
    mine = Sql("streams.invocation_key = ? AND streams.role = ?", (invocation_key, role))
    rows = fetch(connection, select_streams(mine))
    if not rows:
        raise NotFoundError(f"invocation {invocation} has no stream {role!r}")
    found, problems = stream_view(rows[0], invocation, {})
    damage = damage_of("streams", f"{invocation} {role}", problems)
    if damage is not None:
        raise DamageError(damage, path=str(invocation))
    return found


def open_in_database(connection: Connection, stream: StreamView) -> BinaryIO:
    """The bytes of a stream that is a part of a receipt, or a body.

    Raises:
        NotFoundError: the bytes are erased.
        DamageError: the bytes are missing or altered.
    """
    if stream.receipt_offset is None or stream.invocation_id is None:
        return io.BytesIO(read_body(connection, stream.digest))
    receipt: Any = fetch_value(connection, Sql(_RECEIPT, (stream.invocation_id,)))
    if not isinstance(receipt, str):
        raise DamageError(
            f"stream {stream.role} is damaged: its receipt is erased, lost or no text",
            path=str(stream.invocation_id),
        )
    data = receipt.encode()[stream.receipt_offset :][: stream.size]
    if digest_of(data) != stream.digest:
        raise DigestMismatchError(
            f"stream {stream.role} is damaged: its part of the receipt has another digest",
            path=str(stream.invocation_id),
        )
    return io.BytesIO(data)


def waiting_streams(
    connection: Connection, session_key: int | None = None, digest: Digest | None = None
) -> list[WaitingStream]:
    """The streams whose bytes are in a spool and not in the sink yet, the oldest first."""
    conditions = [Sql(_IS_NOT_STORED)]
    if session_key is not None:
        conditions.append(Sql("invocations.session_key = ?", (session_key,)))
    if digest is not None:
        conditions.append(Sql("pending_artifacts.digest = ?", (connection.sha(digest),)))
    rows = fetch(connection, Sql(_WAITS) + where(conditions) + _ORDER)
    return [WaitingStream(**_WAITING.read(row)[0]) for row in rows]
