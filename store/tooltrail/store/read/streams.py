"""Streams of complete outputs: where their bytes are, and the bytes.

The bytes of a stream are a part of the receipt, else a body, else an artifact, else they wait in a
spool.
"""

import io
from typing import BinaryIO, Final
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, select

from tooltrail.artifacts import artifact_path
from tooltrail.records import DamageError, Digest, DigestMismatchError, digest_of
from tooltrail.store.read.bodies import read_body
from tooltrail.store.read.rows import AnyRow, AnySelect, Columns, fetch
from tooltrail.store.schema import (
    artifacts,
    bodies,
    invocations,
    pending_artifacts,
    streams,
    surfaces,
)
from tooltrail.store.views import StreamView, WaitingStream

STREAM: Final = Columns(
    streams.c.invocation_key,
    streams.c.role,
    streams.c.digest,
    streams.c.size,
    streams.c.line_count,
    streams.c.produced_size,
    streams.c.produced_line_count,
    streams.c.loss_reason,
    streams.c.receipt_offset,
    optional=(
        bodies.c.key.label("body_key"),
        artifacts.c.key.label("artifact_key"),
        pending_artifacts.c.reason.label("pending_reason"),
    ),
)

_WAITING: Final = Columns(
    invocations.c.id,
    streams.c.role,
    streams.c.digest,
    pending_artifacts.c.reason,
    invocations.c.finished_at,
    pending_artifacts.c.spooled,
)
_RECEIPT: Final = Columns(surfaces.c.receipt)


def select_streams(which: ColumnElement[bool]) -> AnySelect:
    """The streams of some invocations, in their order."""
    return (
        select(*STREAM.selected)
        .select_from(streams)
        .join(invocations, invocations.c.key == streams.c.invocation_key)
        .outerjoin(bodies, bodies.c.digest == streams.c.digest)
        .outerjoin(artifacts, artifacts.c.digest == streams.c.digest)
        .outerjoin(pending_artifacts, pending_artifacts.c.digest == streams.c.digest)
        .where(which)
        .order_by(streams.c.invocation_key, streams.c.n)
    )


def stream_view(row: AnyRow, owner: UUID, problems: list[str]) -> StreamView:
    """The view of a row of `select_streams`."""
    _, *values, offset, body, artifact, reason = STREAM.read(row, problems)
    digest: Digest = values[1]
    is_alone = offset is None and body is None
    path = artifact_path(digest) if is_alone and artifact is not None else None
    waits = is_alone and artifact is None
    values += [path, reason if waits else None, offset, owner]
    return StreamView(*values)


def select_receipt(invocation: UUID) -> AnySelect:
    """The receipt of an invocation, as its column has it."""
    mine = invocations.c.key == surfaces.c.invocation_key
    query = select(*_RECEIPT.selected).select_from(surfaces).join(invocations, mine)
    return query.where(invocations.c.id == invocation)


def open_in_database(connection: Connection, stream: StreamView) -> BinaryIO:
    """The bytes of a stream that is a part of a receipt, or a body.

    Raises:
        DamageError: the bytes are missing, altered or erased.
    """
    if stream.receipt_offset is None or stream.invocation_id is None:
        return io.BytesIO(read_body(connection, stream.digest))
    rows = fetch(connection, select_receipt(stream.invocation_id))
    receipt = rows[0][0] if rows else None
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


def select_waiting(session_key: int | None, digest: Digest | None) -> AnySelect:
    """Streams that wait in a spool, the oldest first."""
    query = (
        select(*_WAITING.selected)
        .select_from(pending_artifacts)
        .join(streams, streams.c.digest == pending_artifacts.c.digest)
        .join(invocations, invocations.c.key == streams.c.invocation_key)
        .where(pending_artifacts.c.digest.not_in(select(artifacts.c.digest)))
        .order_by(streams.c.invocation_key, streams.c.n)
    )
    if session_key is not None:
        query = query.where(invocations.c.session_key == session_key)
    return query if digest is None else query.where(pending_artifacts.c.digest == digest)


def waiting_streams(
    connection: Connection, session_key: int | None = None, digest: Digest | None = None
) -> list[WaitingStream]:
    """The streams whose bytes are in a spool and not in the sink yet, the oldest first."""
    rows = fetch(connection, select_waiting(session_key, digest))
    return [WaitingStream(*_WAITING.read(row, [])) for row in rows]
