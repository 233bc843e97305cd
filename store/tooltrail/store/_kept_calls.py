"""A call as it waits in an outbox, with exactly what its caller is handed back."""

from tooltrail.records import StreamRecord
from tooltrail.store._ending import Ending
from tooltrail.store._publisher import StreamPublisher
from tooltrail.store._recording import EndedInvocation
from tooltrail.store.entries import CallEnded, EndedStream, ShownResult
from tooltrail.store.finished import Finished

_WAITS = "the store is away"
"""Why what is long is not an artifact, as a receipt says it; a server's own words would vary."""


def kept_call(invocation: EndedInvocation) -> tuple[CallEnded, Finished]:
    """What is kept of a call, and what its caller gets.

    That is what a commit has to which nobody answered: the store may have it. Otherwise it is made
    as where the artifacts are away, so that nothing is asked for that may be away, too.

    Raises:
        InvalidRecordError: see `Session.record`.
    """
    ending = invocation.uncertain or invocation.planned_away(_WAITS)
    beginning, ended = invocation.started.beginning, invocation.ended
    call, publisher = beginning.call, ending.publisher
    entry = CallEnded(
        id=beginning.id,
        session=invocation.session_id,
        tool_name=call.tool_name,
        arguments_raw=call.arguments_raw,
        call_id=call.call_id,
        title=call.title,
        complete_output=ending.rows.outcome.document.decode(),
        streams=tuple(_stream(one, publisher.path_of(one)) for one in ending.rows.streams),
        family=beginning.family,
        policy=beginning.policy_json.decode(),
        started_at=ended.started_at,
        finished_at=ended.finished_at,
        idempotency_key=ended.idempotency_key,
        shown=_shown(ending, publisher),
    )
    return entry, ending.told()


def _shown(ending: Ending, publisher: StreamPublisher) -> ShownResult:
    rows = ending.rows
    told = {stream.digest for stream in rows.streams}
    hidden = (one for one in publisher.sources if one[0].digest not in told)
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
        published=tuple(_stream(*one) for one in hidden),
    )


def _stream(stream: StreamRecord, path: str | None) -> EndedStream:
    # A record is refused whose streams do not carry their content.
    return EndedStream(
        role=stream.role,
        content=stream.content or b"",
        produced_size=stream.produced_size,
        produced_line_count=stream.produced_line_count,
        loss_reason=stream.loss_reason,
        path=path,
    )
