"""Texts, arguments and results are made to fit, and each change is told."""

import json

from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue
from tests.support.cases import each_case
from tests.support.conversations import json_objects

from tooltrail.records import (
    ContentBlock,
    Conversation,
    MediaBlock,
    Message,
    Origin,
    ReasoningBlock,
    ResultBlock,
    ResultStatus,
    TextBlock,
    ToolCall,
)
from tooltrail.wire import Capabilities, ExportPolicy, JsonObject, wire_format
from tooltrail.wire._writing import Writing

PICTURE = MediaBlock(kind="image", media_type="image/png", uri="https://example.org/a.png")


def writing_for(policy: ExportPolicy | None = None, able: Capabilities | None = None) -> Writing:
    return Writing("openai", able or Capabilities(), policy or ExportPolicy())


def told(writing: Writing) -> list[str]:
    return [change.kind for change in writing.report]


def result(
    *texts: str, status: ResultStatus = "ok", blocks: tuple[ContentBlock, ...] = ()
) -> ResultBlock:
    content = (*(TextBlock(text=text) for text in texts), *blocks)
    return ResultBlock(status=status, content=content)


@each_case(
    ("recorded", "text", "kinds"),
    [
        (result("18 C"), "18 C", []),
        (result("a", "b"), "a\nb", ["messages_merged"]),
        (result("18 C", status="unknown"), "18 C", []),
        (result("broke", status="error"), "ERROR: broke", ["error_as_prefix"]),
        (result("ERROR: broke", status="error"), "ERROR: broke", []),
        (result("slow", status="timeout"), "ERROR: slow", ["status_flattened", "error_as_prefix"]),
        (result(status="error"), "ERROR: ", ["error_as_prefix"]),
        (result(), "(no output)", ["output_empty"]),
        (result(""), "(no output)", ["output_empty"]),
        (
            result("see", blocks=(PICTURE,)),
            "see\n[image image/png, https://example.org/a.png]",
            ["block_described", "messages_merged"],
        ),
        (result("ERROR: fine"), "ERROR: fine", ["error_as_prefix"]),
        (result("x\0"), "x\ufffd", ["text_replaced"]),
        (
            ResultBlock(structured={"b": 1, "a": [2]}, has_structured=True),
            '{"b":1,"a":[2]}',
            ["structured_as_text"],
        ),
        (ResultBlock(structured=None, has_structured=True), "null", ["structured_as_text"]),
        (
            result("18 C").model_copy(update={"structured": {"t": 18}, "has_structured": True}),
            "18 C",
            ["structured_dropped"],
        ),
        (
            ResultBlock(content=(TextBlock(text="x", extras={"cache": 1}),)),
            "x",
            ["provider_data_dropped"],
        ),
    ],
)
def test_a_result_is_one_text(recorded: ResultBlock, text: str, kinds: list[str]) -> None:
    writing = writing_for()
    assert writing.result_text(recorded, "here") == text
    assert told(writing) == kinds


def test_a_format_with_a_flag_needs_no_prefix_and_one_with_statuses_flattens_none() -> None:
    late = result("slow", status="timeout")
    writing = writing_for()
    assert writing.result_text(late, "here", prefix=False) == "slow"
    assert told(writing) == ["status_flattened"]
    writing = writing_for()
    assert writing.result_text(late, "here", prefix=False, has_status=True) == "slow"
    assert told(writing) == []


def test_an_empty_output_stays_empty_where_the_format_marks_none() -> None:
    writing = writing_for(able=Capabilities(marks_empty_output=False))
    assert (writing.result_text(result(), "here"), told(writing)) == ("", [])


@each_case(
    ("raw", "text", "kinds"),
    [
        ("", "{}", []),
        (" \n", "{}", []),
        ('{ "b":1.50, "a":2}', '{ "b":1.50, "a":2}', []),
        ("{", "{", []),
        ('{"a":1,"a":2}', '{"a":1,"a":2}', []),
        (r'{"a":"\ud800"}', r'{"a":"\ufffd"}', ["text_replaced"]),
    ],
)
def test_arguments_stay_the_text_that_they_were(raw: str, text: str, kinds: list[str]) -> None:
    writing = writing_for()
    call = ToolCall(tool_name="now", arguments_raw=raw)
    assert writing.arguments_text(call, "here") == text
    assert told(writing) == kinds


def test_the_text_of_a_custom_tool_is_not_read_as_json() -> None:
    writing = writing_for()
    for raw in ("", r'["\ud800"]', "SELECT 1"):
        call = ToolCall(tool_name="sql", arguments_raw=raw, kind="custom")
        assert writing.arguments_text(call, "here") == raw
    assert not writing.report
    dirty = ToolCall(tool_name="sql", arguments_raw="x\0", kind="custom")
    assert writing.arguments_text(dirty, "here") == "x\ufffd"


@given(json_objects)
def test_arguments_that_are_an_object_are_that_object(arguments: dict[str, JsonValue]) -> None:
    writing = writing_for()
    call = ToolCall(tool_name="now", arguments_raw=json.dumps(arguments))
    assert writing.arguments_object(call, "here") == arguments
    assert not writing.report


@each_case(
    ("raw", "wrapped"),
    [
        ("[1]", {"arguments": [1]}),
        ("null", {"arguments": None}),
        ('"x"', {"arguments": "x"}),
        ("{", {"invalid_json": "{"}),
        ('{"a":1,"a":2}', {"invalid_json": '{"a":1,"a":2}'}),
        ("{\0", {"invalid_json": "{\ufffd"}),
    ],
)
def test_arguments_that_are_no_object_are_wrapped_in_one(
    raw: str, wrapped: dict[str, JsonValue]
) -> None:
    writing = writing_for()
    call = ToolCall(tool_name="now", arguments_raw=raw)
    assert writing.arguments_object(call, "here") == wrapped
    assert told(writing)[0] == "arguments_wrapped"


origins = st.none() | st.builds(
    Origin,
    wire_format=st.sampled_from(["openai", "gemini"]),
    provider=st.sampled_from([None, "here", "elsewhere"]),
)


@given(origins, st.booleans(), st.sampled_from([None, "here"]))
def test_what_a_provider_said_for_itself_goes_back_to_it_alone(
    origin: Origin | None, replay: bool, provider: str | None
) -> None:
    writing = writing_for(ExportPolicy(replay_provider_data=replay, provider=provider))
    message = Message(role="assistant", origin=origin)
    replays = (
        origin is not None
        and origin.wire_format == "openai"
        and replay
        and (provider is None or origin.provider == provider)
    )
    assert writing.replays(message) is replays
    assert writing.beside({}, message, {"signature": "x"}, "here") == (
        {"signature": "x"} if replays else {}
    )
    assert told(writing) == ([] if replays else ["provider_data_dropped"])
    assert writing.beside({}, message, {}, "there") == {}
    assert len(writing.report.changes) <= 1


def test_an_object_goes_into_the_member_of_its_name_and_what_would_replace_one_is_told() -> None:
    writing = writing_for()
    native: JsonObject = {"source": {"type": "url"}, "text": "x"}
    said: JsonObject = {
        "source": {"ttl": 1},
        "text": "y",
        "none": None,
        "index": 0,
        "cache": {"ttl": 2},
    }
    expected: JsonObject = {"source": {"type": "url", "ttl": 1}, "text": "x", "cache": {"ttl": 2}}
    whole = writing.with_extras(native, said, "here", known=frozenset({"index"}))
    assert whole == expected
    assert [one.detail for one in writing.report] == ["index, none, text"]
    others: list[JsonObject] = [
        {"source": {"type": "file"}},
        {"source": {"ttl": None}},
        {"source": {}},
    ]
    for other in others:
        assert writing.with_extras(native, other, "there") == native
    assert [(one.where, one.detail) for one in writing.report][1:] == [("there", "source")]


ANTHROPIC: JsonObject = {"type": "thinking", "thinking": "hm", "signature": "x"}
RESPONSES: JsonObject = {
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "hm"}],
    "encrypted_content": "x",
}


@each_case("text", ["hm", "another thought", ""])
@each_case(("name", "own"), [("anthropic", ANTHROPIC), ("openai-responses", RESPONSES)])
def test_sealed_reasoning_goes_back_as_it_came_and_a_text_that_differs_is_told(
    name: str, own: JsonObject, text: str
) -> None:
    message = Message(
        role="assistant",
        blocks=(ReasoningBlock(text=text, extras=own), TextBlock(text="ok")),
        origin=Origin(wire_format=name),
    )
    export = wire_format(name).write_history(Conversation.of([message]), ExportPolicy())
    assert json.dumps(own)[1:-1] in json.dumps(export.request)
    kept = [] if text == "hm" else ["the provider's own text goes back in its place"]
    assert [one.detail.partition(": ")[2] for one in export.report.of_kind("block_dropped")] == kept
