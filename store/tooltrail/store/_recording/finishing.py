"""The one transaction that ends an invocation."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import NamedTuple, Self
from uuid import UUID

from sqlalchemy import Connection

from tooltrail.artifacts import StoredArtifact
from tooltrail.journal.clock import now
from tooltrail.records import (
    CompleteOutput,
    Digest,
    Facts,
    InvocationState,
    Omission,
    Projection,
    Receipt,
    StreamRecord,
    digest_of,
)
from tooltrail.records.canonical_json import encode
from tooltrail.records.tool_calls import storable
from tooltrail.store._engines.prepared import Row
from tooltrail.store._recording import writes
from tooltrail.store._recording.publisher import StreamPublisher
from tooltrail.store._recording.verdicts import FAMILY as VERDICTS
from tooltrail.store._recording.verdicts import verdict_row
from tooltrail.store._recording.writes import Body, Chain, Event
from tooltrail.store.tables import (
    ArtifactRow,
    Base,
    CanonicalResultRow,
    CompleteOutputRow,
    InvocationArtifactRow,
    OmissionRow,
    OutputStreamRow,
    ReceiptRow,
    StructuredOutputRow,
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the rows say of a complete output.

    Attributes:
        document: all of it as canonical JSON.
        state: in which its invocation ends.
        error_kind: of the error; None for a success.
        facts: what lists show of its result.
    """

    document: bytes
    state: InvocationState
    error_kind: str | None
    facts: Facts

    @classmethod
    def of(cls, output: CompleteOutput) -> Self:
        """That of an output."""
        kind = output.error.kind if output.error else None
        facts = output.result.facts() if output.result else Facts()
        return cls(output.to_json(), output.final_state, kind, facts)


@dataclass(frozen=True)
class FinishedRows:
    """Everything that is known of an invocation at its end.

    Its streams are those of the output, or what a failed tool had printed before. How long it took
    is known only where its end was witnessed. It ends now, unless it is said when it did.

    Attributes:
        measured_ms: how long it took by a monotonic clock; None where this process did not run it.
    """

    id: UUID
    started_at: datetime
    is_witnessed: bool
    outcome: Outcome
    streams: tuple[StreamRecord, ...]
    projection: Projection
    receipt: Receipt
    bodies: tuple[Body, ...]
    finished_at: datetime | None = None
    measured_ms: int | None = None

    def ended_at(self) -> datetime:
        """When it ended; a clock that was set back must not give a negative duration."""
        return max(self.finished_at or now(), self.started_at)

    @property
    def omissions(self) -> tuple[Omission, ...]:
        """What all stages left out, in their order."""
        return self.projection.omissions + self.receipt.omissions

    @property
    def size(self) -> int:
        """Bytes of the documents and bodies, which make up all of a record that can be large."""
        documents = len(self.outcome.document) + len(self.canonical_document)
        return documents + sum(len(body.data) for body in self.bodies)

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


class Surfaces(NamedTuple):
    """What the end of an invocation adds to the tables that no other invocation shares.

    Attributes:
        columns: of its own row.
        children: rows of other tables.
        event: what the ledger says of it.
    """

    columns: Row
    children: Mapping[type[Base], list[Row]]
    event: Event


def write_finished(
    connection: Connection, chain: Chain, key: int, rows: FinishedRows, publisher: StreamPublisher
) -> bool:
    """Write all surfaces of an invocation and its ledger entry.

    Returns:
        False when the invocation was finished before; then nothing was written.
    """
    finished_at = rows.ended_at()
    surfaces = surfaces_of(key, rows, publisher, finished_at)
    if not writes.finish_invocation(connection, key, surfaces.columns):
        return False
    # What other invocations may share, in one order for all: PostgreSQL makes the second of two
    # equal rows wait for the first, so that two invocations that share two rows would wait for
    # each other if they came in different orders.
    write_artifacts(connection, publisher, finished_at)
    writes.put_bodies(connection, rows.bodies)
    for table, children in surfaces.children.items():
        writes.insert_rows(connection, table, children)
    writes.append_entry(connection, chain, surfaces.event)
    return True


def write_artifacts(
    connection: Connection, publisher: StreamPublisher, created_at: datetime
) -> None:
    """Write the rows of what was published; those that are there stay."""
    for artifact in sorted(publisher.published, key=lambda stored: stored.path):
        writes.put_once(connection, ArtifactRow, artifact_row(artifact, created_at))


def surfaces_of(
    key: int, rows: FinishedRows, publisher: StreamPublisher, finished_at: datetime
) -> Surfaces:
    """Everything that an end adds, for the invocation with this key."""
    receipt = rows.receipt
    data = receipt.to_bytes()
    complete, canonical = digest_of(rows.outcome.document), digest_of(rows.canonical_document)
    omissions = _omission_rows(rows)
    payload: Row = {
        "state": rows.outcome.state,
        "complete_output": complete,
        "canonical_result": canonical,
        "receipt": digest_of(data),
        "renderer": f"{receipt.renderer_name} {receipt.renderer_version}",
        "omissions": digest_of(encode(omissions)),
    }
    document = {"document": rows.outcome.document.decode(), "digest": complete}
    artifacts = ({"role": p.role, "path": p.reference.path} for p in rows.projection.artifacts)
    children: dict[type[Base], list[Row]] = {
        CompleteOutputRow: [{"invocation_key": key, **document}],
        OutputStreamRow: writes.numbered(key, _stream_rows(rows, publisher)),
        CanonicalResultRow: [{"invocation_key": key, **_canonical_row(rows, canonical)}],
        InvocationArtifactRow: writes.numbered(key, artifacts),
        ReceiptRow: writes.numbered(key, [_receipt_row(receipt, data, finished_at)]),
        OmissionRow: writes.numbered(key, omissions),
    }
    if receipt.renderer_name == VERDICTS and (verdict := verdict_row(rows.projection.canonical)):
        children[StructuredOutputRow] = [{"invocation_key": key, **verdict}]
    event = Event("invocation.finished", rows.id, finished_at, payload)
    return Surfaces(_final_columns(rows, finished_at), children, event)


def _final_columns(rows: FinishedRows, finished_at: datetime) -> Row:
    facts = rows.outcome.facts
    elapsed_ms = rows.measured_ms
    if elapsed_ms is None:
        elapsed_ms = round((finished_at - rows.started_at).total_seconds() * 1000)
    return {
        "state": rows.outcome.state,
        "finished_at": finished_at,
        "duration_ms": elapsed_ms if rows.is_witnessed else None,
        "error_kind": rows.outcome.error_kind,
        "exit_status": facts.exit_status,
        "signal": facts.signal,
        "timed_out": facts.timed_out,
        "output_size": sum(s.produced_size for s in rows.streams if s.role != "order"),
        "truncated": bool(rows.omissions),
    }


def _stream_rows(rows: FinishedRows, publisher: StreamPublisher) -> Iterator[Row]:
    return (
        {
            **stream.model_dump(),
            "artifact_path": publisher.path_of(stream),
            "postponed_reason": publisher.postponed_reason(stream),
        }
        for stream in rows.streams
    )


def _canonical_row(rows: FinishedRows, digest: Digest) -> Row:
    canonical = rows.projection.canonical
    return {
        "status": canonical.status,
        "summary_text": canonical.summary_text,
        "document": rows.canonical_document.decode(),
        "digest": digest,
    }


def _receipt_row(receipt: Receipt, data: bytes, created_at: datetime) -> Row:
    return {
        "renderer_name": receipt.renderer_name,
        "renderer_version": receipt.renderer_version,
        "policy_digest": receipt.policy_digest,
        "body_digest": digest_of(data),
        "size": len(data),
        "created_at": created_at,
    }


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


def artifact_row(artifact: StoredArtifact, created_at: datetime) -> Row:
    """What was published, which many may refer to."""
    return {
        "path": artifact.path,
        "digest": artifact.digest,
        "size": artifact.size,
        "stored_size": artifact.stored_size,
        "line_count": artifact.line_count,
        "created_at": created_at,
    }
