"""What is to be written of a call that waited in an outbox, made before the transaction."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from pydantic import ValidationError
from sqlalchemy import Connection

from tooltrail.journal.clock import now
from tooltrail.records import (
    CanonicalResult,
    CompleteOutput,
    Digest,
    Facts,
    InvalidRecordError,
    Omission,
    Postponed,
    Projection,
    Published,
    Receipt,
    StreamRecord,
    ToolCall,
    UnavailableError,
    digest_of,
    load_policy,
)
from tooltrail.records.canonical_json import decode
from tooltrail.records.envelope import ArtifactReference
from tooltrail.records.policy_documents import first_complaint
from tooltrail.store._outbox.started_entries import call_of, salvaged
from tooltrail.store._recording import writes
from tooltrail.store._recording.ended_invocation import EndedInvocation, Scratch, content_of
from tooltrail.store._recording.finishing import FinishedRows, Outcome, inline_bodies
from tooltrail.store._recording.keys import Claim, claim
from tooltrail.store._recording.publisher import StreamPublisher
from tooltrail.store._recording.starting import Beginning
from tooltrail.store._recording.upkeep import Upkeep, ensure_standing
from tooltrail.store._recording.whole import Whole
from tooltrail.store._repairing.told_outputs import output_of
from tooltrail.store.ended import EndedCall
from tooltrail.store.entries import CallEnded, EndedStream, ShownResult
from tooltrail.store.invocation import SinkGoneError
from tooltrail.store.recorder import Session

if TYPE_CHECKING:
    from tooltrail.store.store import Store


@dataclass(frozen=True, slots=True)
class CallPlan:
    """All that is written of one call.

    Attributes:
        whole: its rows.
        claim_in: asks for the key under which it is recorded once, in a session; None without one.
            Which session it is may turn out only when it is written.
        seen: the upkeep of the store from before anything was published.
    """

    whole: Whole
    claim_in: Callable[[UUID], Claim] | None
    seen: Upkeep

    def ensure_standing(self, connection: Connection, store: "Store") -> None:
        """See `ensure_standing` of `_recording.upkeep`.

        Raises:
            UnavailableError: the artifacts are away.
        """
        if self.whole.publisher.published:
            ensure_standing(connection, store, self.whole.publisher, self.seen)


def plan_call(
    store: "Store", session: Session, entry: CallEnded, scratch: Scratch, spool: Path
) -> CallPlan:
    """Make what is to be written; exactly what its caller was shown, if it was shown anything.

    Args:
        store: where to.
        session: that it is of, by its id alone.
        entry: what is known.
        scratch: in which streams become artifacts.
        spool: that its outbox is in, and its output as far as the entry does not hold it.

    Raises:
        InvalidRecordError, NotFoundError: it can never be recorded as it is.
        UnavailableError: not now, since it has artifacts and these are away.
    """
    seen = store.upkeep
    try:
        if entry.shown is None:
            return _plan_anew(store, session, entry, scratch)
        publisher = _published(store, entry, scratch, spool / str(entry.id))
        return _plan_shown(entry, entry.shown, publisher, seen)
    except ValidationError as error:
        raise InvalidRecordError(f"not a call: {first_complaint(error)}") from error
    except SinkGoneError as error:
        raise UnavailableError(str(error)) from error


def _plan_anew(store: "Store", session: Session, entry: CallEnded, scratch: Scratch) -> CallPlan:
    document, call = _document_of(entry), call_of(entry)
    policy = None if entry.policy is None else load_policy(_object(entry.policy), store.families)
    if entry.family is None:
        family = (policy or store.policy).family_of(call.tool_name, store.families)
    else:
        family = store.families.named(entry.family)
    streams = {stream.role: _record_of(stream) for stream in entry.streams}
    try:
        output: CompleteOutput = output_of(document, family, streams, is_exact=False)
    except KeyError as error:
        raise InvalidRecordError(f"stream {error} has no bytes") from error
    ended = EndedCall(call, output, family.name, policy, entry.started_at, entry.finished_at)
    known_as = (entry.id, min(entry.at, now()))
    invocation = EndedInvocation(store, session, ended, scratch, known_as)
    seen = store.upkeep
    claim_in = _claim_of(entry, call, family.name, digest_of(output.to_json()))
    return CallPlan(invocation.whole(invocation.planned()), claim_in, seen)


def _plan_shown(
    entry: CallEnded,
    shown: ShownResult,
    publisher: StreamPublisher,
    seen: Upkeep,
) -> CallPlan:
    call = call_of(entry)
    policy, family = (entry.policy or "{}").encode(), entry.family or ""
    streams = tuple(map(_record_of, entry.streams))
    canonical = CanonicalResult.from_json(shown.canonical)
    if canonical.to_json() != shown.canonical.encode():
        raise InvalidRecordError("its canonical result is not canonical JSON")
    receipt = Receipt(shown.receipt, *shown.renderer, digest_of(policy))
    artifacts = (Published(role, ArtifactReference(path=path)) for role, path in shown.artifacts)
    omissions = tuple(Omission.model_validate(dict(one)) for one in shown.omissions)
    error = _document_of(entry).get("error")
    rows = FinishedRows(
        id=entry.id,
        started_at=shown.began_at,
        is_witnessed=shown.is_witnessed,
        outcome=Outcome(
            entry.complete_output.encode(),
            cast("Any", shown.state),
            None if error is None else error["kind"],
            Facts(**shown.facts),
        ),
        streams=streams,
        projection=Projection(canonical, tuple(artifacts), omissions),
        receipt=receipt,
        bodies=inline_bodies(streams, receipt, publisher),
        finished_at=shown.ended_at,
    )
    beginning = Beginning(entry.id, shown.began_at, call, family, digest_of(policy), policy)
    arguments = writes.Body.of(call.arguments_bytes)
    whole = Whole(beginning, arguments, rows, publisher)
    output = digest_of(entry.complete_output.encode())
    return CallPlan(whole, _claim_of(entry, call, family, output), seen)


def _claim_of(
    entry: CallEnded, call: ToolCall, family: str, output: Digest
) -> Callable[[UUID], Claim] | None:
    key, times = entry.idempotency_key, (entry.started_at, entry.finished_at)
    if key is None:
        return None

    def claim_in(session_id: UUID) -> Claim:
        content = content_of(session_id, call, family, output, times)
        return claim(key, "invocation", entry.id, content, entry.at)

    return claim_in


def _published(store: "Store", entry: CallEnded, scratch: Scratch, folder: Path) -> StreamPublisher:
    """Publish what its caller was told is an artifact; all else stays in the database.

    Or in the spool, where its caller was told that.

    Raises:
        UnavailableError: the artifacts are away.
    """
    captured = salvaged(store, entry, scratch, folder)
    publisher = StreamPublisher(store.archive, captured, scratch.folder, claim=scratch.claim)
    for stream in entry.all_streams():
        if stream.path is None:
            continue
        reference = publisher.publish(_record_of(stream))
        if isinstance(reference, Postponed):
            raise UnavailableError(reference.reason)
        if reference.path != stream.path:
            raise InvalidRecordError(f"artifact {stream.path} would be {reference.path} now")
    for stream in entry.all_streams():
        if stream.spooled is not None and stream.spooled.reason is not None:
            publisher.leave(_record_of(stream), stream.spooled.reason)
    return publisher


def _record_of(stream: EndedStream) -> StreamRecord:
    content = None if stream.spooled is not None else stream.content
    return StreamRecord.model_validate(
        {**stream.facts(), "head": stream.content, "content": content}
    )


def _document_of(entry: CallEnded) -> dict[str, Any]:
    return _object(entry.complete_output)


def _object(text: str) -> dict[str, Any]:
    document = decode(text)
    if not isinstance(document, dict):
        raise InvalidRecordError("a document of it is no JSON object")
    return document
