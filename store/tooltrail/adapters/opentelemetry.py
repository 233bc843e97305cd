"""Exports recorded calls to OpenTelemetry, as spans of its conventions for generative AI."""

import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, Status, StatusCode, TraceFlags

from tooltrail.records import NotFoundError, UnavailableError
from tooltrail.store import InvocationDetail, InvocationFilter, Reader, SessionView

_TOGETHER: Final = 64
"""The most calls in memory; the exporter is given so many together."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Exported(NamedTuple):
    """The number of exported calls, and of calls without a span, because they still run."""

    exported_count: int
    running_count: int


class _Trace(NamedTuple):
    """What the spans of one session have in common."""

    session: SessionView
    root: UUID
    resource: Resource

    def context_of(self, one: UUID) -> SpanContext:
        """The ids of the span of a call or a session: 16 and 8 bytes, which are never all zero."""
        sampled = TraceFlags(TraceFlags.SAMPLED)
        return SpanContext(self.root.int, one.int % 2**64, is_remote=False, trace_flags=sampled)


def export_session(reader: Reader, session_id: str | UUID, exporter: SpanExporter) -> Exported:
    """Export the ended calls of a session, and the session itself if it is closed.

    Exporting again gives the same ids. The id of the trace is the id of the outermost session; the
    id of a span is the end of the id of its call or session.

    Raises:
        NotFoundError: there is no such session.
        DamageError: a call is damaged. Calls before it may be exported.
        UnavailableError: the exporter refused spans.
    """
    session = reader.session(session_id)
    trace = _Trace(session, _root_of(reader, session), Resource.create())
    where, cursor, exported, running = InvocationFilter(sessions=(session.id,)), None, 0, 0
    while True:
        page = reader.invocations(where, limit=_TOGETHER, cursor=cursor, oldest_first=True)
        ended = [reader.invocation(one.id) for one in page.items if one.finished_at is not None]
        _export(exporter, [_call_span(trace, call) for call in ended])
        exported, running = exported + len(ended), running + len(page.items) - len(ended)
        if (cursor := page.next_cursor) is None:
            break
    if session.closed_at is not None:
        name, parent = f"invoke_agent {session.agent or ''}".strip(), session.parent_id
        attributes = {"gen_ai.operation.name": "invoke_agent", "tooltrail.title": session.title}
        times = (session.opened_at, session.closed_at)
        _export(exporter, [_span(trace, name, (session.id, parent), times, attributes)])
    return Exported(exported, running)


def _root_of(reader: Reader, session: SessionView) -> UUID:
    """The id of the session that started it all, as far as the store knows."""
    path = [session.id]
    with suppress(NotFoundError):
        while session.parent_id is not None and session.parent_id not in path:
            path.append(session.parent_id)
            session = reader.session(session.parent_id)
    return path[-1]


def _export(exporter: SpanExporter, spans: list[ReadableSpan]) -> None:
    if spans and exporter.export(spans) is not SpanExportResult.SUCCESS:
        raise UnavailableError("the exporter refused spans; export the session again")


def _call_span(trace: _Trace, call: InvocationDetail) -> ReadableSpan:
    """The span of an ended call. `tooltrail.` says where all output is, and what was left out."""
    one, is_success = call.summary, call.summary.state == "success"
    canonical: Any = json.loads(call.canonical_json or "{}")
    receipt = "gen_ai.tool.call.result" if is_success else "tooltrail.receipt"
    erased = [*call.erased, *(stream.erasure for stream in call.streams if stream.erasure)]
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": one.tool_name,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": one.call_id,
        "gen_ai.tool.call.arguments": call.arguments.decode("utf-8", "backslashreplace"),
        receipt: None if call.receipt is None else call.receipt.text,
        "error.type": None if is_success else one.error_kind or one.state,
        "error.message": None if is_success else canonical.get("summary_text", one.state),
        "tooltrail.invocation.id": str(one.id),
        "tooltrail.outcome": one.outcome,
        "tooltrail.exit_status": one.exit_status,
        "tooltrail.output.size": one.output_size,
        "tooltrail.output.lost_size": one.lost_size,
        "tooltrail.truncated": one.truncated,
        "tooltrail.streams": tuple(
            f"{stream.role} {stream.size} {stream.digest} {stream.artifact_path or ''}".strip()
            for stream in call.streams
        ),
        "tooltrail.artifacts": tuple(f"{role} {path}" for role, path in call.artifacts),
        "tooltrail.omissions": tuple(
            f"{left.stage} {left.field}: {left.after} of {left.before} {left.unit}, {left.reason}"
            for left in call.omissions
        ),
        "tooltrail.not_recorded": call.not_recorded,
        "tooltrail.erased": tuple(erasure.sentence for erasure in erased),
        "tooltrail.redacted": tuple(f"{at.field}: {at.count} {at.rule}" for at in call.redacted),
    }
    times = (one.started_at, one.finished_at or one.started_at)
    name, ids = f"execute_tool {one.tool_name}", (one.id, trace.session.id)
    return _span(trace, name, ids, times, attributes)


def _span(
    trace: _Trace,
    name: str,
    ids: tuple[UUID, UUID | None],
    times: tuple[datetime, datetime],
    attributes: dict[str, Any],
) -> ReadableSpan:
    """A span with the ids of itself and of its parent. Attributes without a value are left out."""
    session, failure = trace.session, attributes.get("error.message")
    attributes |= {"gen_ai.conversation.id": str(session.id), "gen_ai.agent.name": session.agent}
    start, end = ((one - _EPOCH) // timedelta(microseconds=1) * 1000 for one in times)
    return ReadableSpan(
        name,
        trace.context_of(ids[0]),
        None if ids[1] is None else trace.context_of(ids[1]),
        trace.resource,
        {key: value for key, value in attributes.items() if value not in (None, "", ())},
        status=Status() if failure is None else Status(StatusCode.ERROR, failure),
        start_time=start,
        end_time=end,
        instrumentation_scope=InstrumentationScope("tooltrail"),
    )
