"""Contents for Gemini: what has a place goes there, and what has none is in the report."""

from typing import Any

import pytest
from pydantic import JsonValue
from tests.support.cases import each_case

from tooltrail.records import (
    CallBlock,
    ContentBlock,
    Conversation,
    MediaBlock,
    Message,
    MessageBlock,
    Origin,
    ProviderBlock,
    ReasoningBlock,
    ResultBlock,
    TextBlock,
    ToolCall,
)
from tooltrail.wire import DEFAULT_EXPORT_POLICY, Export, JsonObject, wire_format
from tooltrail.wire.members import LAYOUT

GEMINI = wire_format("gemini")
OURS = Origin(wire_format="gemini")
PNG = MediaBlock(kind="image", media_type="image/png", data="aGk=")
PART = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}


def write(*messages: Message) -> Export:
    return GEMINI.write_history(Conversation.of(messages), DEFAULT_EXPORT_POLICY)


def user(*blocks: MessageBlock, origin: Origin | None = None) -> Message:
    return Message(role="user", blocks=blocks, origin=origin)


def model(*blocks: MessageBlock, origin: Origin | None = OURS) -> Message:
    return Message(role="assistant", blocks=blocks, origin=origin)


def changes(export: Export) -> list[tuple[str, str]]:
    return [(change.kind, change.detail) for change in export.report]


def parts(*messages: Message) -> tuple[Any, list[tuple[str, str]]]:
    """The parts of the last content, and the changes."""
    export = write(*messages)
    contents: Any = export.request["contents"]
    return contents[-1]["parts"], changes(export)


def answered(
    *content: ContentBlock, origin: Origin | None = None, **members: Any
) -> tuple[Any, list[tuple[str, str]]]:
    """What is told of one result, and the changes."""
    call = CallBlock(call=ToolCall(tool_name="f", call_id="a"))
    result = ResultBlock(call_id="a", content=content, **members)
    asked = Message(role="assistant", blocks=(call,))
    told, report = parts(
        Message.of("user", "go"), asked, Message(role="tool", blocks=(result,), origin=origin)
    )
    (part,) = told
    assert part["functionResponse"]["name"] == "f"
    assert part["functionResponse"]["id"] == "a"
    members = {
        name: value
        for name, value in part["functionResponse"].items()
        if name not in ("name", "id")
    }
    return members, report


def rewritten(response: JsonValue) -> tuple[Any, list[tuple[str, str]]]:
    """A response as it is written after it was read, and the changes."""
    contents: list[JsonValue] = [
        {"role": "user", "parts": [{"text": "go"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": response}}]},
    ]
    export = GEMINI.write_history(GEMINI.read_history({"contents": contents}))
    written: Any = export.request["contents"]
    return written[-1]["parts"][0]["functionResponse"]["response"], changes(export)


def test_media_have_their_name_and_go_without_the_place_of_their_bytes() -> None:
    told, report = parts(user(PNG.model_copy(update={"name": "a.png", "uri": "https://x/y"})))
    assert told == [
        {"inlineData": {"mimeType": "image/png", "data": "aGk=", "displayName": "a.png"}}
    ]
    assert report == [("block_described", "of image: no uri here")]


def test_media_of_another_kind_than_their_type_are_told() -> None:
    told, report = parts(user(PNG.model_copy(update={"kind": "document"})))
    assert told == [PART]
    assert report == [("block_described", "document of type image/png")]


@pytest.mark.parametrize("uri", ["file:f_1", "s3://b/x", "gs://b/x", "files/abc"])
def test_only_gemini_is_told_of_a_place_that_is_its_own(uri: str) -> None:
    media = MediaBlock(kind="document", media_type="application/pdf", uri=uri)
    told, report = parts(user(media))
    described = f"[document application/pdf, {uri}]"
    assert told == [{"text": described}]
    assert report == [("block_described", described)]
    own = {"fileData": {"mimeType": "application/pdf", "fileUri": uri}}
    assert parts(user(media, origin=OURS)) == ([own], [])
    public = media.model_copy(update={"uri": "https://x/y"})
    told, report = parts(user(public))
    assert told == [{"fileData": {"mimeType": "application/pdf", "fileUri": "https://x/y"}}]
    assert report == []


def test_what_gemini_said_of_media_goes_back_to_it_alone() -> None:
    extras = {"videoMetadata": {"fps": 1}, "inlineData": {"brandNew": 1}}
    media = PNG.model_copy(update={"extras": extras})
    own = {
        "inlineData": {"mimeType": "image/png", "data": "aGk=", "brandNew": 1},
        "videoMetadata": {"fps": 1},
    }
    assert parts(user(media, origin=OURS)) == ([own], [])
    told, report = parts(user(media))
    assert told == [PART]
    assert report == [
        ("provider_data_dropped", "brandNew"),
        ("provider_data_dropped", "videoMetadata"),
    ]


def test_what_a_model_drew_goes_back_to_gemini() -> None:
    asked = Message.of("user", "draw")
    assert parts(asked, model(PNG)) == ([PART], [])
    told, report = parts(asked, model(PNG, origin=None))
    (described,) = told
    assert described["text"].startswith("[image image/png, 2 bytes")
    assert [kind for kind, _ in report] == ["block_described"]


def test_signatures_go_back_to_gemini_and_to_nobody_else() -> None:
    call = ToolCall(
        tool_name="f",
        arguments_raw='{"a":1}',
        extras={"thoughtSignature": "c2ln", "functionCall": {"brandNew": 1}},
    )
    thought = ReasoningBlock(text="hm", extras={"thought": True, "thoughtSignature": "eA=="})
    said = TextBlock(text="so", extras={"thoughtSignature": "eQ=="})
    ran: Any = {"executableCode": {"code": "1"}}
    blocks = (thought, said, ProviderBlock(native=ran), CallBlock(call=call))
    result = Message(
        role="tool", blocks=(ResultBlock(tool_name="f", content=(TextBlock(text="1"),)),)
    )
    export = write(Message.of("user", "go"), model(*blocks), result)
    assert export.request["contents"] == [
        {"role": "user", "parts": [{"text": "go"}]},
        {
            "role": "model",
            "parts": [
                {"text": "hm", "thought": True, "thoughtSignature": "eA=="},
                {"text": "so", "thoughtSignature": "eQ=="},
                ran,
                {
                    "functionCall": {"name": "f", "args": {"a": 1}, "brandNew": 1},
                    "thoughtSignature": "c2ln",
                },
            ],
        },
        {
            "role": "user",
            "parts": [{"functionResponse": {"name": "f", "response": {"output": "1"}}}],
        },
    ]
    assert changes(export) == []
    foreign = write(
        Message.of("user", "go"), model(*blocks, origin=Origin(wire_format="x")), result
    )
    contents: Any = foreign.request["contents"]
    assert contents[1]["parts"] == [
        {"text": "so"},
        {"functionCall": {"name": "f", "args": {"a": 1}}},
    ]
    assert [kind for kind, _ in changes(foreign)] == [
        "block_dropped",
        "provider_data_dropped",
        "provider_data_dropped",
        "provider_data_dropped",
        "provider_data_dropped",
    ]


def test_what_was_said_of_a_message_or_is_null_has_no_place() -> None:
    origin = Origin(wire_format="gemini", extras={"brandNew": 1})
    text = TextBlock(text="a", extras={"text": 5, "x": None})
    told, report = parts(Message.of("user", "go"), model(text, origin=origin))
    assert told == [{"text": "a"}]
    assert report == [("provider_data_dropped", "brandNew"), ("provider_data_dropped", "text, x")]


@each_case("native", [{}, "x", 5, None, ["x"]])
def test_what_can_be_no_part_is_dropped(native: Any) -> None:
    export = write(user(TextBlock(text="a"), ProviderBlock(native=native), origin=OURS))
    assert export.request["contents"] == [{"role": "user", "parts": [{"text": "a"}]}]
    assert [kind for kind, _ in changes(export)] == ["provider_data_dropped"]


def test_a_call_in_pieces_goes_back_without_the_pieces() -> None:
    members: Any = {"willContinue": True, "partialArgs": [], "brandNew": 1}
    call = ToolCall(
        tool_name="f", call_id="a", flags=("incomplete",), extras={"functionCall": members}
    )
    result = ResultBlock(call_id="a", content=(TextBlock(text="1"),))
    export = write(
        Message.of("user", "go"),
        model(CallBlock(call=call)),
        Message(role="tool", blocks=(result,)),
    )
    contents: Any = export.request["contents"]
    assert contents[1]["parts"] == [
        {"functionCall": {"name": "f", "args": {}, "id": "a", "brandNew": 1}}
    ]
    assert changes(export) == [
        ("incomplete_unsaid", "the call was cut off, or may have been"),
        ("provider_data_dropped", "partialArgs, willContinue"),
    ]


def test_a_structured_value_is_the_output_or_the_error() -> None:
    members: dict[str, Any] = {"structured": {"output": 1}, "has_structured": True}
    assert answered(**members) == ({"response": {"output": {"output": 1}}}, [])
    assert answered(**members, status="error") == ({"response": {"error": {"output": 1}}}, [])
    assert answered(PNG, **members) == (
        {"response": {"output": {"output": 1}}, "parts": [PART]},
        [],
    )
    assert answered(structured="abc", has_structured=True) == (
        {"response": {"output": "abc"}},
        [("structured_as_text", "the structured value is a text here")],
    )
    assert answered(**members, status="timeout")[1] == [
        ("status_flattened", "timeout is an error here")
    ]
    assert answered(**members, status="unknown")[1] == [
        ("status_flattened", "unknown is a success here")
    ]
    assert answered(TextBlock(text="one"), **members) == (
        {"response": {"output": "one"}},
        [("structured_dropped", "the structured value beside the content")],
    )


@each_case(
    "response",
    [
        {"result": "cars"},
        {"return_value": {"a": [1]}},
        {"output": "ok", "exit_code": 3},
        {"error": "full", "output": "ok"},
        {"output": {"result": "cars"}},
        {"output": {"output": 1}},
        {"error": {"error": 1}},
        {"output": None},
        {"a": None},
        {},
    ],
)
def test_a_response_is_written_as_it_was_read(response: JsonObject) -> None:
    assert rewritten(response) == (response, [])


@each_case(
    ("response", "expected"),
    [
        ({"output": "ok", "error": None}, {"output": "ok"}),
        ("ok", {"output": "ok"}),
        (["x"], {"output": ["x"]}),
    ],
)
def test_a_response_that_is_written_in_another_form_is_reported(
    response: JsonValue, expected: JsonValue
) -> None:
    assert rewritten(response) == (expected, [("provider_data_dropped", "response")])


def test_a_failure_is_an_error_whatever_was_read() -> None:
    members: Any = {"structured": {"a": 1}, "has_structured": True, "extras": {LAYOUT: "ok"}}
    assert answered(**members) == ({"response": {"a": 1}}, [])
    assert answered(**members, status="error") == ({"response": {"error": {"a": 1}}}, [])


def test_media_stand_behind_the_text_of_a_response() -> None:
    text = TextBlock(text="seen")
    told = {"response": {"output": "seen"}, "parts": [PART]}
    assert answered(text, PNG) == (told, [])
    assert answered(PNG, text) == (told, [("order_changed", "what is text comes first")])
    assert answered(PNG, status="error")[1][0][0] == "block_described"


@each_case(
    ("media_type", "is_native"),
    [
        ("image/bmp", True),
        ("audio/ogg", True),
        ("application/pdf", True),
        ("text/plain", True),
        ("application/zip", False),
        ("text/html", False),
        (None, False),
    ],
)
def test_a_response_holds_the_types_that_the_server_takes(
    media_type: str | None, is_native: bool
) -> None:
    kind: Any = (media_type or "").split("/")[0]
    media = MediaBlock(
        kind=kind if kind in ("image", "audio") else "document", media_type=media_type, data="aGk="
    )
    told, report = answered(media)
    assert ("parts" in told) == is_native
    assert [kind for kind, _ in report] == ([] if is_native else ["block_described"])


def test_what_gemini_was_told_of_a_result_goes_back_to_it_alone() -> None:
    own: Any = {"brandNew": 1}
    content = (TextBlock(text="a"), PNG.model_copy(update={"extras": {"x": 1}}))
    told, report = answered(
        *content, ProviderBlock(native=own), extras={"scheduling": "SILENT"}, origin=OURS
    )
    assert told == {
        "response": {"output": "a"},
        "parts": [{**PART, "x": 1}, own],
        "scheduling": "SILENT",
    }
    assert report == []
    told, report = answered(*content, extras={"scheduling": "SILENT"})
    assert told == {"response": {"output": "a"}, "parts": [PART]}
    assert report == [("provider_data_dropped", "x"), ("provider_data_dropped", "scheduling")]


def test_what_stood_beside_a_response_stands_beside_it_again() -> None:
    call = CallBlock(call=ToolCall(tool_name="f"))
    result = ResultBlock(content=(TextBlock(text="a"),), extras={"part": {"partMetadata": {}}})
    told, report = parts(
        Message.of("user", "go"), model(call), Message(role="tool", blocks=(result,), origin=OURS)
    )
    assert told == [
        {"functionResponse": {"name": "f", "response": {"output": "a"}}, "partMetadata": {}}
    ]
    assert report == []
