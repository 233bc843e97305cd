"""Recorded calls as spans, with the real SDK of OpenTelemetry and its own exporters."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode, format_span_id, format_trace_id

from tooltrail.adapters.opentelemetry import export_session
from tooltrail.records import (
    CompleteOutput,
    GenericOutput,
    ToolCall,
    UnavailableError,
    error_of_refusal,
)
from tooltrail.store import EndedCall, Session, Store

BEGAN = datetime(2026, 3, 4, 5, 6, 7, 891_011, tzinfo=UTC)
BEGAN_NS = 1_772_600_767_891_011_000
LONG = "".join(f"line {number}\n" for number in range(20_000))


def spans_of(store: Store, session: Session) -> list[ReadableSpan]:
    exporter = InMemorySpanExporter()
    export_session(store.reader, session.id, exporter)
    return list(exporter.get_finished_spans())


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def ended(name: str, output: GenericOutput, **options: Any) -> EndedCall:
    call = ToolCall.of(name, {"n": 1}, call_id=f"call_{name}")
    return EndedCall(call, CompleteOutput.success(name, output), **options)


def test_a_call_becomes_a_span_of_the_conventions(sqlite_store: Store) -> None:
    with sqlite_store.open_session(agent="helper") as session:
        finished = session.record(
            ended(
                "look",
                GenericOutput.of("found"),
                started_at=BEGAN,
                finished_at=BEGAN + timedelta(microseconds=5),
                seen="it is there",
            )
        )
    call, whole = spans_of(sqlite_store, session)
    assert (call.name, call.kind.name) == ("execute_tool look", "INTERNAL")
    assert (call.start_time, call.end_time) == (BEGAN_NS, BEGAN_NS + 5_000)
    assert call.status.status_code is StatusCode.UNSET
    found = attributes(call)
    assert {key: found[key] for key in found if not key.startswith("tooltrail.")} == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "look",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "call_look",
        "gen_ai.tool.call.arguments": '{"n":1}',
        "gen_ai.tool.call.result": "it is there",
        "gen_ai.conversation.id": str(session.id),
        "gen_ai.agent.name": "helper",
    }
    assert found["tooltrail.invocation.id"] == str(finished.invocation_id)
    assert whole.name == "invoke_agent helper"
    assert call.parent == whole.context
    assert whole.parent is None


def test_what_was_cut_is_said_and_leads_to_the_complete_output(sqlite_store: Store) -> None:
    with sqlite_store.open_session() as session:
        session.record(ended("long", GenericOutput.of(LONG)))
    found = attributes(spans_of(sqlite_store, session)[0])
    assert found["tooltrail.output.size"] == len(LONG)
    assert found["tooltrail.truncated"] is True
    assert any("content.0" in one and "bytes" in one for one in found["tooltrail.omissions"])
    role, size, digest, path = found["tooltrail.streams"][0].split()
    assert (role, size) == ("content.0", str(len(LONG)))
    (artifact,) = sqlite_store.reader.artifacts(session=session.id)
    assert (path, digest) == (artifact.path, artifact.digest)
    assert found["tooltrail.artifacts"] == (f"{role} {path}",)
    assert len(found["gen_ai.tool.call.result"]) < len(LONG)


def test_a_failure_is_an_error_of_its_kind(sqlite_store: Store) -> None:
    with sqlite_store.open_session() as session:
        refused = error_of_refusal(refused_by="user", reason="not now")
        denied = CompleteOutput.failure("look", refused)
        session.record(EndedCall(ToolCall.of("look", {}), denied, seen="You may not."))
    span = spans_of(sqlite_store, session)[0]
    assert span.status.status_code is StatusCode.ERROR
    assert span.status.description == "the call was refused by user: not now"
    found = attributes(span)
    assert (found["error.type"], found["tooltrail.outcome"]) == ("permission_denied", "denied")
    assert found["tooltrail.receipt"] == "You may not."
    assert "gen_ai.tool.call.result" not in found
    assert "gen_ai.tool.call.id" not in found


def test_a_call_that_still_runs_is_counted_and_has_a_span_later(sqlite_store: Store) -> None:
    session = sqlite_store.open_session()
    calls = [ended(f"tool{number}", GenericOutput.of()) for number in range(150)]
    assert sum(1 for _ in session.record_many(calls)) == 150
    running = session.start(ToolCall.of("slow", {}))
    exporter = InMemorySpanExporter()
    assert export_session(sqlite_store.reader, session.id, exporter) == (150, 1)
    names = [span.name for span in exporter.get_finished_spans()]
    assert names == [f"execute_tool {call.call.tool_name}" for call in calls]

    first = {span.name: span.context for span in exporter.get_finished_spans()}
    running.finish(CompleteOutput.success("slow", GenericOutput.of()))
    session.close()
    again = spans_of(sqlite_store, session)
    assert len(again) == 152
    contexts = {span.name: span.context for span in again}
    assert first.items() <= contexts.items()
    assert all(one.parent == again[-1].context for one in again[:-1])


def test_child_sessions_are_in_the_trace_of_their_root(sqlite_store: Store) -> None:
    with (
        sqlite_store.open_session(agent="lead") as lead,
        sqlite_store.open_session(agent="helper", parent=lead.id) as helper,
        sqlite_store.open_session(agent="aide", parent=helper.id) as aide,
    ):
        finished = aide.record(ended("look", GenericOutput.of("found")))
    call, aide_span = spans_of(sqlite_store, aide)
    (helper_span,), (lead_span,) = spans_of(sqlite_store, helper), spans_of(sqlite_store, lead)
    spans = [call, aide_span, helper_span, lead_span]
    traces = {format_trace_id(span.context.trace_id) for span in spans if span.context}
    assert traces == {lead.id.hex}
    parents = [span.parent for span in spans]
    assert parents == [aide_span.context, helper_span.context, lead_span.context, None]
    assert call.context is not None
    span_id = format_span_id(call.context.span_id)
    assert sqlite_store.reader.invocation(span_id).summary.id == finished.invocation_id


def test_the_exporter_of_the_sdk_writes_every_value_to_a_file(
    sqlite_store: Store, tmp_path: Path
) -> None:
    with sqlite_store.open_session(title="odd \u2028 title") as session:
        odd = ToolCall(tool_name="odd", arguments_raw='{"a": "\ud800\u0000"', call_id="c")
        output = CompleteOutput.success("odd", GenericOutput.of("\ud800 \x1b[0m"))
        session.record(EndedCall(odd, output))
    path = tmp_path / "spans.jsonl"
    with path.open("w", encoding="utf-8") as out:
        exporter = ConsoleSpanExporter(out=out, formatter=lambda one: one.to_json(None) + "\n")
        assert export_session(sqlite_store.reader, session.id, exporter) == (1, 0)
    written = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    spans = spans_of(sqlite_store, session)
    assert [one["attributes"] for one in written] == [
        json.loads(json.dumps(attributes(span))) for span in spans
    ]
    assert written[0]["attributes"]["gen_ai.tool.call.arguments"].startswith('{"a": "\\xed')
    assert written[1]["context"]["trace_id"] == f"0x{session.id.hex}"
    assert written[0]["parent_id"] == written[1]["context"]["span_id"]


class RefusingExporter(SpanExporter):
    """An exporter whose backend is gone."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return SpanExportResult.FAILURE


def test_spans_that_an_exporter_refuses_are_no_success(sqlite_store: Store) -> None:
    with sqlite_store.open_session() as session:
        session.record(ended("look", GenericOutput.of("found")))
    with pytest.raises(UnavailableError, match="refused"):
        export_session(sqlite_store.reader, session.id, RefusingExporter())
