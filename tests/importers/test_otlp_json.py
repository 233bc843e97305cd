"""OTLP/JSON: spans as pydantic-ai makes them, and those of other frameworks."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.models.test import TestModel
from tests.importers.sources import (
    CORPUS,
    assert_intact,
    assert_odd_values_are_imported,
    calls_in,
    import_one,
    messages_in,
    only_call,
    opened,
    output_of,
    receipt_of,
    said_in,
    stream_of,
    write_document,
    write_lines,
)

from tooltrail.store import InvocationDetail, Reader

TRACES = CORPUS / "framework_traces" / "langfuse+langfuse"


def value_of(value: Any) -> dict[str, Any]:
    """The value of an attribute in the JSON mapping of the protocol."""
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case str():
            return {"stringValue": value}
        case dict():
            return {"kvlistValue": {"values": attributes_of(cast("Any", value))}}
        case _:
            return {"arrayValue": {"values": [value_of(one) for one in value]}}


def attributes_of(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": name, "value": value_of(one)} for name, one in attributes.items()]


def span(name: str, times: tuple[int, int], attributes: Any, **more: Any) -> dict[str, Any]:
    begin, end = times
    return {
        "traceId": "5b8e",
        "spanId": name,
        "name": name,
        "startTimeUnixNano": str(begin),
        "endTimeUnixNano": str(end),
        "attributes": attributes_of(attributes),
        **more,
    }


def export(*spans: dict[str, Any]) -> dict[str, Any]:
    resource = {"attributes": attributes_of({"service.name": "agent"})}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": [*spans]}]}]}


def exported(spans: Iterable[ReadableSpan]) -> list[dict[str, Any]]:
    """Spans of the SDK as an exporter spells them, in the order of their ends."""
    found: list[dict[str, Any]] = []
    for one in spans:
        context = one.get_span_context()
        assert context is not None
        times = (one.start_time or 0, one.end_time or 0)
        events = [
            {"name": event.name, "attributes": attributes_of(event.attributes or {})}
            for event in one.events
        ]
        status = {"code": one.status.status_code.value, "message": one.status.description or ""}
        spelled = span(f"{context.span_id:016x}", times, one.attributes, events=events)
        found.append({**spelled, "traceId": f"{context.trace_id:032x}", "status": status})
    return found


def run_agent() -> list[dict[str, Any]]:
    """Two turns of a conversation, in which one tool fails at first."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    agent = Agent(TestModel(), instructions="be brief")
    agent.instrument = InstrumentationSettings(tracer_provider=provider)
    tries: list[int] = []

    def weather(city: str) -> dict[str, Any]:
        return {"city": city, "degrees": 21.5}

    def fragile(n: int) -> str:
        tries.append(n)
        if len(tries) == 1:
            raise ModelRetry("try again")
        return "done"

    agent.tool_plain(weather)
    agent.tool_plain(retries=1)(fragile)
    first = agent.run_sync("go")
    agent.run_sync("and more", message_history=first.all_messages())
    return exported(exporter.get_finished_spans())


def surfaces(reader: Reader, call: InvocationDetail) -> tuple[str, str, str, str]:
    """State, arguments, complete output and receipt of a call."""
    output = stream_of(reader, call, "content").decode()
    assert call.receipt is not None
    return call.summary.state, call.arguments.decode(), output, call.receipt.text


@pytest.mark.parametrize("together", [1, 2, 100])
def test_a_run_of_an_agent_is_recorded_once_with_all_surfaces(
    tmp_path: Path, together: int
) -> None:
    spans, path = run_agent(), tmp_path / "traces.jsonl"
    lines = [export(*spans[n : n + together]) for n in range(0, len(spans), together)]
    for end in range(1, len(lines)):  # as the collector appends
        import_one(tmp_path, write_lines(path, lines[:end]))
    imported = import_one(tmp_path, write_lines(path, lines))
    assert imported.format == "otlp-json"
    assert (imported.counts["calls"], imported.counts["results"]) == (3, 3)
    chats = [one for one in spans if one["attributes"][0]["value"] == {"stringValue": "chat"}]
    with opened(tmp_path) as reader:
        (session,) = reader.sessions()
        seen = {one.summary.tool_name: surfaces(reader, one) for one in calls_in(reader)[:2]}
        last = surfaces(reader, calls_in(reader)[2])
        messages = messages_in(reader)
    sunny = '{"city":"a","degrees":21.5}'
    assert seen["weather"] == ("success", '{"city":"a"}', sunny, sunny)
    assert seen["fragile"][0] == "error"
    assert "try again" in seen["fragile"][3]
    assert last == ("success", '{"n":0}', "done", "done")
    answers = [one for one in messages if one.role == "assistant"]
    said = [(one.role, one.text) for one in messages if one not in answers]
    assert said == [("system", "be brief"), ("user", "go"), ("user", "and more")]
    assert len(answers) == len(chats) == 4
    begins = min(int(one["startTimeUnixNano"]) for one in chats)
    assert session.opened_at.timestamp() == pytest.approx(begins / 1e9, abs=1e-5)
    assert_intact(tmp_path)


def test_the_tokens_of_each_answer_are_kept(tmp_path: Path) -> None:
    spans = run_agent()
    import_one(tmp_path, write_document(tmp_path / "a.json", export(*spans)))
    expected = Counter[str]()
    for one in spans:
        for attribute in one["attributes"]:
            if attribute["key"].startswith("gen_ai.usage."):
                expected[attribute["key"]] += int(attribute["value"]["intValue"])
    found = Counter[str]()
    with opened(tmp_path) as reader:
        for message in messages_in(reader):
            document: Any = json.loads(message.document or b"{}")
            found.update(document.get("origin", {}).get("extras", {}).get("usage", {}))
    assert found == expected
    assert found["gen_ai.usage.output_tokens"] > 0


def langfuse_export(name: str) -> dict[str, Any]:
    """A trace of a real framework. Langfuse keeps some attributes as `input` and `output`."""
    (path,) = TRACES.glob(f"*{name}*")
    spans: list[dict[str, Any]] = []
    for one in json.loads(path.read_bytes())["observations"]:
        attributes = json.loads(one["metadata"])["attributes"]
        operation = attributes.get("gen_ai.operation.name")
        names = ["gen_ai.input.messages", "gen_ai.output.messages"]
        if operation == "execute_tool":
            names = ["gen_ai.tool.call.arguments", "gen_ai.tool.call.result"]
        given = zip(names, (one["input"], one["output"]), strict=True)
        if operation in ("chat", "execute_tool"):
            attributes |= {name: text for name, text in given if text}
        begin, end = (datetime.fromisoformat(one[name]) for name in ("startTime", "endTime"))
        times = (int(begin.timestamp() * 1e9), int(end.timestamp() * 1e9))
        spans.append(span(one["id"], times, attributes))
    return export(*spans)


@pytest.mark.skipif(not TRACES.is_dir(), reason="the shared corpus is not beside the repository")
@pytest.mark.parametrize(
    ("name", "call_id", "expected", "said"),
    [
        (  # OpenInference: the span of the tool has no id
            "openai-agents",
            "call_Kud0j0DxWSmLzv9W5m6qVqXn",
            ('{"city":"Tokyo"}', *["The weather in Tokyo is sunny."] * 2),
            ["system", "user", "assistant", "assistant"],
        ),
        (  # GenAI: only the agent, whose span ends last, has the instructions
            "microsoft-agent",
            "call_CwaJHuXTm9dmHFQPlVbqyzJ0",
            ('{"location":"Tokyo, Japan"}', "stormy with a high of 23", "function_result"),
            ["user", "assistant", "assistant", "system"],
        ),
    ],
)
def test_traces_of_real_frameworks_have_each_call_and_message_once(
    tmp_path: Path, name: str, call_id: str, expected: tuple[str, str, str], said: list[str]
) -> None:
    import_one(tmp_path, write_document(tmp_path / "a.json", langfuse_export(name)))
    with opened(tmp_path) as reader:
        (call,) = calls_in(reader)
        found = surfaces(reader, call)
        roles = [one.role for one in messages_in(reader)]
    assert call.summary.call_id == call_id
    assert found[:2] == ("success", expected[0])
    assert expected[1] in found[2]
    assert expected[2] in found[3]
    assert roles == said
    assert_intact(tmp_path)


TOOL: dict[str, Any] = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "add",
    "gen_ai.tool.call.id": "c1",
    "gen_ai.tool.call.arguments": {"numbers": [1, 2.5], "exact": True},
}
ASKED = {"type": "tool_call", "id": "c1", "name": "add", "arguments": {"numbers": [1]}}
GIVEN = {"type": "tool_call_response", "id": "c1", "response": {"sum": 3.5}}
TALK: dict[str, Any] = {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "gpt-9",
    "gen_ai.system_instructions": "be brief",
    "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [ASKED, GIVEN]}]),
    "gen_ai.output.messages": json.dumps(
        [{"role": "assistant", "parts": [{"type": "text", "content": "3.5"}]}]
    ),
    "gen_ai.usage.input_tokens": 12,
}


def test_a_call_without_a_chat_has_no_receipt(tmp_path: Path) -> None:
    attributes = {**TOOL, "gen_ai.tool.call.result": {"sum": 3.5}}
    call = span("s1", (10**18, 10**18 + 2_000_000), attributes)
    other = span("s2", (10**18, 10**18), {"http.method": "GET"})
    found = only_call(tmp_path, [export(call, other), export(call)])
    assert output_of(tmp_path, found, "structured") == b'{"sum":3.5}'
    assert found.arguments == b'{"numbers":[1,2.5],"exact":true}'
    assert (found.summary.state, found.summary.duration_ms) == ("success", 2)
    assert found.not_recorded == ("receipt",)


EXCEPTION = {"exception.message": "no such number"}


@pytest.mark.parametrize(
    "failed",
    [
        {"status": {"code": 2, "message": "no such number"}},
        {"status": {"code": "STATUS_CODE_ERROR", "message": "no such number"}},
        {"events": [{"name": "exception", "attributes": attributes_of(EXCEPTION)}]},
        {"attributes": attributes_of({**TOOL, "error.type": "no such number"})},
    ],
)
def test_each_sign_of_a_failure_is_one(tmp_path: Path, failed: dict[str, Any]) -> None:
    call = {**span("s1", (1, 2), TOOL), **failed}
    found = only_call(tmp_path, [export(call)])
    assert found.summary.state == "error"
    assert "no such number" in (found.complete_json or "")


def test_messages_of_an_agent_are_recorded_if_its_chats_have_none(tmp_path: Path) -> None:
    agent = span("s2", (1, 9), {**TALK, "gen_ai.operation.name": "invoke_agent"})
    call = span("s1", (2, 3), {**TOOL, "gen_ai.tool.call.result": "3.5"})
    import_one(tmp_path, write_document(tmp_path / "a.json", export(call, agent)))
    with opened(tmp_path) as reader:
        (found,) = calls_in(reader)
        said = [(one.role, one.text) for one in messages_in(reader)]
        assert surfaces(reader, found)[2:] == ("3.5", '{"sum":3.5}')
    assert said == [("system", "be brief"), ("user", ""), ("assistant", "3.5")]


def test_an_event_of_a_span_may_have_the_messages(tmp_path: Path) -> None:
    about = {
        "gen_ai.input.messages": [{"role": "user", "content": "go"}],
        "gen_ai.output.messages": [{"role": "model", "content": "gone"}],
    }
    name = "gen_ai.client.inference.operation.details"
    events = [{"name": name, "attributes": attributes_of(about)}]
    chat = span("s1", (1, 2), {"gen_ai.operation.name": "chat"}, events=events)
    import_one(tmp_path, write_document(tmp_path / "a.json", export(chat)))
    assert said_in(tmp_path) == [("user", "go"), ("assistant", "gone")]


def test_older_names_of_the_messages_are_read(tmp_path: Path) -> None:
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.prompt.prompt_filter_results": "[]",
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": "Is it on?",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": "Yes.",
    }
    chat = span("s1", (1, 2), attributes)
    import_one(tmp_path, write_document(tmp_path / "a.json", export(chat)))
    assert said_in(tmp_path) == [("user", "Is it on?"), ("assistant", "Yes.")]


def test_a_message_may_have_a_call_with_its_result(tmp_path: Path) -> None:
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [ASKED, GIVEN]}]),
    }
    chat = span("s1", (1, 2), attributes)
    found = only_call(tmp_path, [export(chat)])
    assert (found.summary.state, receipt_of(found)) == ("success", '{"sum":3.5}')


def test_a_tool_that_says_that_it_is_fine_has_no_error(tmp_path: Path) -> None:
    call = span("s1", (1, 2), TOOL, status={"code": 1, "message": "fine"})
    found = only_call(tmp_path, [export(call)])
    assert found.summary.state == "success"
    assert "fine" not in (found.complete_json or "")


def test_calls_of_one_id_are_as_many_as_their_spans(tmp_path: Path) -> None:
    spans = [span(f"s{n}", (n, n + 1), TOOL) for n in (1, 2)]
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [ASKED, ASKED]}]),
    }
    chat = span("s9", (8, 9), attributes)
    import_one(tmp_path, write_document(tmp_path / "a.json", export(*spans, chat)))
    with opened(tmp_path) as reader:
        assert len(calls_in(reader)) == 2


def test_a_span_without_an_id_belongs_to_the_call_that_asked_for_it(tmp_path: Path) -> None:
    spans: list[dict[str, Any]] = []
    for n in (1, 5):  # ids of calls repeat in each turn
        asked = {**ASKED, "arguments": {"n": n}}
        said = [{"role": "assistant", "parts": [{"type": "text", "content": f"turn {n}"}, asked]}]
        chat = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": json.dumps(said)}
        ran = {**TOOL, "gen_ai.tool.call.id": "", "gen_ai.tool.call.arguments": {"n": n}}
        spans += [span(f"m{n}", (n, n + 1), chat), span(f"t{n}", (n + 2, n + 3), ran)]
    imported = import_one(tmp_path, write_document(tmp_path / "a.json", export(*spans)))
    assert (imported.counts["calls"], imported.counts["unpaired_calls"]) == (2, 0)


def test_a_tool_without_a_name_has_that_of_its_span(tmp_path: Path) -> None:
    genai = {"gen_ai.operation.name": "execute_tool"}
    inference = {"openinference.span.kind": "TOOL"}
    spans = [span("execute_tool add", (1, 2), genai), span("search", (2, 3), inference)]
    import_one(tmp_path, write_document(tmp_path / "a.json", export(*spans)))
    with opened(tmp_path) as reader:
        assert [one.summary.tool_name for one in calls_in(reader)] == ["add", "search"]


def test_the_name_of_an_attribute_nests_only_so_far(tmp_path: Path) -> None:
    named = {**TALK, f"llm.input_messages.0{'.a' * 5000}": "x"}
    chat = export(span("s1", (1, 2), named))
    assert import_one(tmp_path, write_lines(tmp_path / "a.jsonl", [chat])).damaged == ()
    with opened(tmp_path) as reader:
        assert messages_in(reader)[-1].text == "3.5"


def test_a_line_of_another_signal_is_of_the_unknown_type_that_its_member_names(
    tmp_path: Path,
) -> None:
    others: list[dict[str, Any]] = [{"resourceLogs": []}, {"resourceSpans": []}]
    lines = [export(span("s1", (1, 2), TALK)), *others]
    counts = import_one(tmp_path, write_lines(tmp_path / "a.jsonl", lines)).counts
    assert (counts["unknown: resourceLogs"], counts["other_lines"]) == (1, 1)


def test_events_of_the_span_of_a_tool_may_have_its_surfaces(tmp_path: Path) -> None:
    events = [  # as Strands writes them
        {"name": "gen_ai.tool.message", "attributes": attributes_of({"content": '{"n": 1}'})},
        {"name": "gen_ai.choice", "attributes": attributes_of({"message": '[{"text": "one"}]'})},
    ]
    bare = {name: TOOL[name] for name in ("gen_ai.operation.name", "gen_ai.tool.name")}
    call = span("s1", (1, 2), bare, events=events)
    found = only_call(tmp_path, [export(call)])
    assert output_of(tmp_path, found, "content") == b'[{"text": "one"}]'
    assert (found.arguments, found.summary.call_id) == (b'{"n": 1}', "s1")


def test_a_shortened_history_repeats_nothing(tmp_path: Path) -> None:
    history = [
        {"role": role, "content": f"{n}"} for n, role in enumerate(["user", "assistant"] * 3)
    ]
    spans = [
        span(
            f"s{n}",
            (n + 1, n + 2),
            {
                "openinference.span.kind": "LLM",
                **{
                    f"llm.input_messages.{k}.message.{name}": text
                    for k, one in enumerate(history[max(0, n - 2) : n + 1])
                    for name, text in one.items()
                },
                "llm.output_messages.0.message.role": "assistant",
                "llm.output_messages.0.message.content": history[n + 1]["content"],
            },
        )
        for n in (0, 2, 4)
    ]
    import_one(tmp_path, write_lines(tmp_path / "a.jsonl", map(export, spans)))
    with opened(tmp_path) as reader:
        assert [one.text for one in messages_in(reader)] == list("012345")


def test_odd_values_are_imported(tmp_path: Path) -> None:
    events = [{"name": "exception", "attributes": attributes_of({"exception.message": "no"})}]
    spans = [
        span("LINE1", (1, 2), TALK),
        span("LINE2", (2, 3), {**TOOL, "session.id": "s", "gen_ai.tool.call.result": [1]}),
        span("LINE3", (3, 4), {"llm.input_messages.0.message.role": "user"}, events=events),
        span("LINE4", (4, 5), {"gen_ai.input.messages": '[{"x": [NaN, 1e999, 1.0]}, "x"]'}),
    ]
    assert_odd_values_are_imported(tmp_path, map(export, spans))
