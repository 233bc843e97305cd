"""The one transaction that ends an invocation."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from uuid import UUID

from sqlalchemy import Connection

from tooltrail.artifacts import StoredArtifact
from tooltrail.records import (
    CompleteOutput,
    Facts,
    Omission,
    Projection,
    Receipt,
    StreamRecord,
    digest_of,
)
from tooltrail.records.canonical_json import encode
from tooltrail.records.tool_calls import storable
from tooltrail.store import _writes as writes
from tooltrail.store._clock import now
from tooltrail.store._prepared import Row
from tooltrail.store._publisher import StreamPublisher
from tooltrail.store._writes import Body, Chain
from tooltrail.store.tables import (
    ArtifactRow,
    CanonicalResultRow,
    CompleteOutputRow,
    InvocationArtifactRow,
    OmissionRow,
    OutputStreamRow,
    ReceiptRow,
)


@dataclass(frozen=True)
class FinishedRows:
    """Everything that is known of an invocation at its end.

    Its streams are those of the output, or what a failed tool had printed before. How long it took
    is known only where its end was witnessed. It ends now, unless it is said when it did.
    """

    key: int
    id: UUID
    started_at: datetime
    is_witnessed: bool
    output: CompleteOutput
    streams: tuple[StreamRecord, ...]
    projection: Projection
    receipt: Receipt
    bodies: tuple[Body, ...]
    finished_at: datetime | None = None

    @property
    def omissions(self) -> tuple[Omission, ...]:
        """What all stages left out, in their order."""
        return self.projection.omissions + self.receipt.omissions

    @property
    def size(self) -> int:
        """Bytes of the documents and bodies, which make up all of a record that can be large."""
        documents = len(self.complete_document) + len(self.canonical_document)
        return documents + sum(len(body.data) for body in self.bodies)

    @cached_property
    def complete_document(self) -> bytes:
        """The complete output as canonical JSON."""
        return self.output.to_json()

    @cached_property
    def canonical_document(self) -> bytes:
        """The canonical result as canonical JSON."""
        return self.projection.canonical.to_json()


def inline_bodies(
    streams: Iterable[StreamRecord], receipt: Receipt, publisher: StreamPublisher
) -> tuple[Body, ...]:
    """The bodies of an invocation: its streams that are no artifacts, and its receipt."""
    contents = {
        stream.content
        for stream in streams
        if stream.content is not None and publisher.path_of(stream) is None
    }
    return tuple(map(Body.of, {*contents, receipt.to_bytes()}))


def write_finished(
    connection: Connection, chain: Chain, rows: FinishedRows, publisher: StreamPublisher
) -> bool:
    """Write all surfaces of an invocation and its ledger entry.

    Returns:
        False when the invocation was finished before; then nothing was written.
    """
    finished_at = max(
        rows.finished_at or now(), rows.started_at
    )  # a clock set back must not give a negative duration
    if not writes.finish_invocation(connection, rows.key, _final_columns(rows, finished_at)):
        return False
    _put_shared(connection, rows, publisher, finished_at)
    complete = _write_complete(connection, rows, publisher)
    canonical = _write_canonical(connection, rows)
    receipt = _write_receipt(connection, rows, finished_at)
    payload: Row = {
        "state": rows.output.final_state,
        "complete_output": complete,
        "canonical_result": canonical,
        "receipt": receipt,
        "renderer": f"{rows.receipt.renderer_name} {rows.receipt.renderer_version}",
        "omissions": digest_of(encode(_omission_rows(rows))),
    }
    event = writes.Event("invocation.finished", rows.id, finished_at, payload)
    writes.append_entry(connection, chain, event)
    return True


def _put_shared(
    connection: Connection, rows: FinishedRows, publisher: StreamPublisher, created_at: datetime
) -> None:
    """Write what other invocations may share, in one order for all.

    PostgreSQL makes the second of two equal rows wait for the first, so that two invocations that
    share two rows would wait for each other if they came in different orders.
    """
    write_artifacts(connection, publisher, created_at)
    writes.put_bodies(connection, rows.bodies)


def write_artifacts(
    connection: Connection, publisher: StreamPublisher, created_at: datetime
) -> None:
    """Write the rows of what was published; those that are there stay."""
    for artifact in sorted(publisher.published, key=lambda stored: stored.path):
        writes.put_once(connection, ArtifactRow, _artifact_row(artifact, created_at))


def _final_columns(rows: FinishedRows, finished_at: datetime) -> Row:
    output = rows.output
    facts = output.result.facts() if output.result else Facts()
    elapsed = finished_at - rows.started_at
    return {
        "state": output.final_state,
        "finished_at": finished_at,
        "duration_ms": round(elapsed.total_seconds() * 1000) if rows.is_witnessed else None,
        "error_kind": output.error.kind if output.error else None,
        "exit_status": facts.exit_status,
        "signal": facts.signal,
        "timed_out": facts.timed_out,
        "output_size": sum(s.produced_size for s in rows.streams if s.role != "order"),
        "truncated": bool(rows.omissions),
    }


def _write_complete(connection: Connection, rows: FinishedRows, publisher: StreamPublisher) -> str:
    document = rows.complete_document
    digest = digest_of(document)
    writes.insert_rows(
        connection,
        CompleteOutputRow,
        [{"invocation_key": rows.key, "document": document.decode(), "digest": digest}],
    )
    streams = (
        {
            **stream.model_dump(),
            "artifact_path": publisher.path_of(stream),
            "postponed_reason": publisher.postponed_reason(stream),
        }
        for stream in rows.streams
    )
    writes.insert_rows(connection, OutputStreamRow, writes.numbered(rows.key, streams))
    return digest


def _write_canonical(connection: Connection, rows: FinishedRows) -> str:
    canonical = rows.projection.canonical
    document = rows.canonical_document
    digest = digest_of(document)
    row = {
        "invocation_key": rows.key,
        "status": canonical.status,
        "summary_text": canonical.summary_text,
        "document": document.decode(),
        "digest": digest,
    }
    writes.insert_rows(connection, CanonicalResultRow, [row])
    artifacts = ({"role": p.role, "path": p.reference.path} for p in rows.projection.artifacts)
    writes.insert_rows(connection, InvocationArtifactRow, writes.numbered(rows.key, artifacts))
    return digest


def _write_receipt(connection: Connection, rows: FinishedRows, created_at: datetime) -> str:
    receipt = rows.receipt
    data = receipt.to_bytes()
    digest = digest_of(data)
    row = {
        "renderer_name": receipt.renderer_name,
        "renderer_version": receipt.renderer_version,
        "policy_digest": receipt.policy_digest,
        "body_digest": digest,
        "size": len(data),
        "created_at": created_at,
    }
    writes.insert_rows(connection, ReceiptRow, writes.numbered(rows.key, [row]))
    writes.insert_rows(connection, OmissionRow, writes.numbered(rows.key, _omission_rows(rows)))
    return digest


def _omission_rows(rows: FinishedRows) -> list[Row]:
    """The omissions as they are stored, which is also what the ledger commits to."""
    return [
        {
            "stage": o.stage,
            "field": storable(o.field),
            "unit": o.unit,
            "before_count": o.before,
            "after_count": o.after,
            "reason": storable(o.reason),
        }
        for o in rows.omissions
    ]


_MOST_INDEX_BYTES = 1 << 20
"""Longest index in a row, of some 16 GiB; a longer one is read where it is, in two requests."""


def _index_column(artifact: StoredArtifact) -> bytes | None:
    data = None if artifact.index is None else artifact.index.to_bytes()
    return data if data is None or len(data) <= _MOST_INDEX_BYTES else None


def _artifact_row(artifact: StoredArtifact, created_at: datetime) -> Row:
    return {
        "path": artifact.path,
        "digest": artifact.digest,
        "size": artifact.size,
        "stored_size": artifact.stored_size,
        "line_count": artifact.line_count,
        "created_at": created_at,
        "frame_index": _index_column(artifact),
    }
