"""A call as it waits in an outbox, with exactly what its caller is handed back."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from tooltrail.records import StreamRecord
from tooltrail.store._recording.ended_invocation import EndedInvocation
from tooltrail.store._recording.ending import Ending
from tooltrail.store._recording.publisher import StreamPublisher
from tooltrail.store._recording.starting import Beginning
from tooltrail.store.entries import (
    CallEnded,
    CallStarted,
    EndedStream,
    ShownResult,
    SpooledContent,
)
from tooltrail.store.finished import Finished
from tooltrail.store.on_unavailable import Fallback

WAITS = "the store is away"
"""Why what is long is not an artifact, as a receipt says it; a server's own words would vary."""


def kept_call(fallback: Fallback, invocation: EndedInvocation) -> tuple[CallEnded, Finished]:
    """What is kept of a call, and what its caller gets.

    That is what a commit has to which nobody answered: the store may have it. Otherwise it is made
    as where the artifacts are away, so that nothing is asked for that may be away, too.

    Raises:
        InvalidRecordError: see `Session.record`.
    """
    ending = invocation.uncertain or invocation.planned_away(WAITS)
    ended = invocation.ended
    entry = kept_end(
        invocation.started.beginning,
        invocation.session_id,
        ending,
        times=(ended.started_at, ended.finished_at),
        idempotency_key=ended.idempotency_key,
    )
    return entry, told_of(fallback, ending)


def kept_start(
    beginning: Beginning, session_id: UUID, alone: Mapping[str, str | int] | None
) -> CallStarted:
    """What is kept of a start."""
    call = beginning.call
    return CallStarted(
        id=beginning.id,
        session=session_id,
        at=beginning.at,
        tool_name=call.tool_name,
        arguments_raw=call.arguments_raw,
        call_id=call.call_id,
        title=call.title,
        message=call.message_id,
        position=call.position,
        family=beginning.family,
        policy=beginning.policy_json.decode(),
        alone=alone,
    )


def kept_end(
    beginning: Beginning,
    session_id: UUID,
    ending: Ending,
    *,
    times: tuple[datetime | None, datetime | None] = (None, None),
    idempotency_key: str | None = None,
) -> CallEnded:
    """What is kept of an end, from which all of the call can be recorded."""
    call, publisher = beginning.call, ending.publisher
    return CallEnded(
        id=beginning.id,
        session=session_id,
        tool_name=call.tool_name,
        arguments_raw=call.arguments_raw,
        call_id=call.call_id,
        title=call.title,
        message=call.message_id,
        position=call.position,
        complete_output=ending.rows.outcome.document.decode(),
        streams=tuple(_stream(one, publisher) for one in ending.rows.streams),
        family=beginning.family,
        policy=beginning.policy_json.decode(),
        started_at=times[0],
        finished_at=times[1],
        idempotency_key=idempotency_key,
        shown=_shown(ending, publisher),
    )


def told_of(fallback: Fallback, ending: Ending) -> Finished:
    """What its caller gets of an end that is not in the store yet."""
    is_kept = fallback.choice == "outbox"
    return replace(ending.told(), recorded_in="outbox" if is_kept else "nowhere")


def _shown(ending: Ending, publisher: StreamPublisher) -> ShownResult:
    rows = ending.rows
    told = {stream.digest for stream in rows.streams}
    hidden = (stream for stream, _ in publisher.sources if stream.digest not in told)
    return ShownResult(
        state=rows.outcome.state,
        facts=rows.outcome.facts._asdict(),
        began_at=rows.started_at,
        ended_at=rows.ended_at(),
        is_witnessed=rows.is_witnessed,
        canonical=rows.canonical_document.decode(),
        receipt=rows.receipt.text,
        renderer=(rows.receipt.renderer_name, rows.receipt.renderer_version),
        omissions=tuple(one.model_dump() for one in rows.omissions),
        artifacts=tuple((one.role, one.reference.path) for one in rows.projection.artifacts),
        published=tuple(_stream(one, publisher) for one in hidden),
    )


def _stream(stream: StreamRecord, publisher: StreamPublisher) -> EndedStream:
    return EndedStream(
        role=stream.role,
        content=stream.content or b"",
        produced_size=stream.produced_size,
        produced_line_count=stream.produced_line_count,
        loss_reason=stream.loss_reason,
        path=publisher.path_of(stream),
        spooled=None if stream.content is not None else _spooled(stream, publisher),
    )


def _spooled(stream: StreamRecord, publisher: StreamPublisher) -> SpooledContent:
    return SpooledContent(
        digest=stream.digest,
        size=stream.size,
        line_count=stream.line_count,
        reason=publisher.postponed_reason(stream),
    )
