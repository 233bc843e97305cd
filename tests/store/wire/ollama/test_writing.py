"""Conversations as messages for Ollama."""

from collections.abc import Sequence

from tests.support.cases import each_case

from tooltrail.records import (
    CallBlock,
    ContentBlock,
    Conversation,
    MediaBlock,
    Message,
    MessageBlock,
    Origin,
    ReasoningBlock,
    ResourceBlock,
    ResultBlock,
    TextBlock,
    ToolCall,
)
from tooltrail.wire import Export, ExportPolicy, JsonObject
from tooltrail.wire.members import objects_in
from tooltrail.wire.ollama import FORMAT
from tooltrail.wire.ollama.reading import read_history

PNG = "iVBORw0KGgoAAAANSUhEUg=="
OWN = Origin(wire_format="ollama")
IMAGE = MediaBlock(kind="image", media_type="image/png", data=PNG)


def exported(*messages: Message, policy: ExportPolicy | None = None) -> Export:
    return FORMAT.write_history(Conversation.of(messages), policy or ExportPolicy())


def natives(export: Export) -> list[JsonObject]:
    return objects_in(export.request["messages"])


def kinds(export: Export) -> list[str]:
    return [change.kind for change in export.report]


def asking(
    *calls: ToolCall, before: Sequence[MessageBlock] = (), origin: Origin | None = None
) -> Message:
    blocks = (*before, *(CallBlock(call=call) for call in calls))
    return Message(role="assistant", blocks=blocks, origin=origin)


def answering(*results: ResultBlock) -> Message:
    return Message(role="tool", blocks=results)


def answered(*content: ContentBlock, call_id: str | None = None) -> ResultBlock:
    return ResultBlock(call_id=call_id, content=content)


def test_ids_may_repeat_and_be_of_any_length_and_are_changed_where_they_cannot_be_sent() -> None:
    ids = ["functions.Bash:0", "functions.Bash:0", "x" * 500, "a\0b"]
    calls = [ToolCall(tool_name="f", call_id=one, position=n) for n, one in enumerate(ids)]
    results = [answered(TextBlock(text=str(n)), call_id=one) for n, one in enumerate(ids)]
    export = exported(asking(*calls), answering(*results))
    written = [one["id"] for one in objects_in(natives(export)[0]["tool_calls"])]
    assert written[:3] == ids[:3]
    assert [one["tool_call_id"] for one in natives(export)[1:]] == written
    assert [one["content"] for one in natives(export)[1:]] == ["0", "1", "2", "3"]
    assert kinds(export) == ["id_renamed"]


def test_images_go_beside_the_text_of_messages_and_results() -> None:
    export = exported(
        Message(role="user", blocks=(TextBlock(text="What is it?"), IMAGE)),
        asking(ToolCall(tool_name="f")),
        answering(answered(TextBlock(text="a screen"), IMAGE)),
        asking(ToolCall(tool_name="f")),
        answering(answered(IMAGE)),
    )
    user, _, first, _, second = natives(export)
    assert (user["content"], user["images"]) == ("What is it?", [PNG])
    assert (first["content"], first["images"]) == ("a screen", [PNG])
    assert (second["content"], second["images"]) == ("", [PNG])
    assert not export.report


def test_the_type_and_name_of_an_image_that_its_bytes_do_not_tell_are_reported() -> None:
    image = MediaBlock(
        kind="image", media_type="image/bmp", data=PNG, name="a.bmp", extras={"detail": "low"}
    )
    (change,) = exported(Message(role="user", blocks=(image,))).report
    assert change.kind == "provider_data_dropped"
    assert change.detail == "of an image: media_type, name, extras"


@each_case(
    "block",
    [
        MediaBlock(kind="audio", media_type="audio/wav", data="AAEC"),
        MediaBlock(kind="document", media_type="application/pdf", data="AAEC"),
        MediaBlock(kind="image", uri="https://example.com/a.png"),
        MediaBlock(kind="image", media_type="image/png", data="not base64!"),
        MediaBlock(kind="image", media_type="image/png", data=""),
        ResourceBlock(uri="file:///a", text="x"),
    ],
)
def test_other_blocks_are_described(block: MediaBlock | ResourceBlock) -> None:
    export = exported(
        Message(role="user", blocks=(block,)),
        asking(ToolCall(tool_name="f")),
        answering(answered(block)),
    )
    user, _, result = natives(export)
    assert str(user["content"]).startswith("[")
    assert user["content"] == result["content"]
    assert "images" not in {**user, **result}
    assert kinds(export) == ["block_described", "block_described"]


def test_the_order_of_blocks_is_that_of_the_format_and_a_change_is_told() -> None:
    message = Message(role="user", blocks=(IMAGE, TextBlock(text="a"), TextBlock(text="b")))
    export = exported(message)
    assert natives(export) == [{"role": "user", "content": "a\nb", "images": [PNG]}]
    assert kinds(export) == ["order_changed", "messages_merged"]


def test_text_behind_a_call_stands_before_it_and_is_told() -> None:
    blocks = (CallBlock(call=ToolCall(tool_name="f")), TextBlock(text="so"))
    export = exported(
        Message(role="assistant", blocks=blocks), answering(answered(TextBlock(text="x")))
    )
    assert natives(export)[0]["content"] == "so"
    assert kinds(export) == ["order_changed"]


@each_case(
    ("raw", "arguments", "kind"),
    [
        ("", {}, None),
        ('{"b":1,"a":2}', {"b": 1, "a": 2}, None),
        ('{"a":', {"invalid_json": '{"a":'}, "arguments_wrapped"),
        ("[1]", {"arguments": [1]}, "arguments_wrapped"),
        ('{"a":"\\ud800"}', {"a": "\ufffd"}, "text_replaced"),
        ('{"n":9007199254740992}', {"n": 2**53}, None),
        ('{"n":[-9007199254740993]}', {"n": [-(2**53) - 1]}, "number_rounded"),
    ],
)
def test_arguments_are_an_object_and_nothing_of_them_is_lost(
    raw: str, arguments: JsonObject, kind: str | None
) -> None:
    call = ToolCall(tool_name="f", arguments_raw=raw)
    export = exported(asking(call), answering(answered(TextBlock(text="x"))))
    (native,) = objects_in(natives(export)[0]["tool_calls"])
    assert native == {"function": {"name": "f", "arguments": arguments}}
    assert kinds(export) == ([] if kind is None else [kind])


def test_integers_that_the_server_may_round_are_counted() -> None:
    call = ToolCall(tool_name="f", arguments_raw=f'{{"a":{2**60},"b":[{2**61},true,1]}}')
    (change,) = exported(asking(call), answering(answered(TextBlock(text="x")))).report
    assert change.detail == "2 integers beyond 2**53 here, which the server may round"


def test_what_the_model_thought_and_extras_go_back_to_ollama_alone() -> None:
    call = ToolCall(tool_name="f", extras={"function": {"index": 4}, "tag": "\ud800"})
    origin = OWN.model_copy(update={"extras": {"tone": "x"}})
    messages = [
        asking(call, before=[ReasoningBlock(text="hm")], origin=origin),
        answering(answered(TextBlock(text="x"))),
    ]
    export = exported(*messages)
    assert natives(export)[0] == {
        "role": "assistant",
        "tone": "x",
        "content": "",
        "thinking": "hm",
        "tool_calls": [{"tag": "\ufffd", "function": {"index": 4, "name": "f", "arguments": {}}}],
    }
    assert kinds(export) == ["text_replaced"]
    assert read_history(export.request).messages[0].blocks[0] == ReasoningBlock(text="hm")

    elsewhere = exported(*messages, policy=ExportPolicy(replay_provider_data=False))
    assert natives(elsewhere)[0] == {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"function": {"name": "f", "arguments": {}}}],
    }
    assert set(kinds(elsewhere)) == {"block_dropped", "provider_data_dropped"}
    assert len(elsewhere.report.of_kind("provider_data_dropped")) == 2


def test_a_message_of_a_role_of_some_models_goes_back_to_ollama_alone() -> None:
    native: JsonObject = {"role": "control", "content": "thinking\0"}
    (message,) = read_history({"messages": [native]}).messages
    assert natives(exported(message)) == [{"role": "control", "content": "thinking\ufffd"}]
    foreign = exported(message.model_copy(update={"origin": None}))
    assert natives(foreign) == [{"role": "system", "content": ""}]
    assert kinds(foreign) == ["provider_data_dropped", "message_empty"]


def test_what_else_a_result_is_said_to_be_is_dropped_and_told() -> None:
    result = ResultBlock(
        content=(TextBlock(text="a", extras={"note": 1}), TextBlock(text="b")),
        structured={"a": 1},
        has_structured=True,
        extras={"score": 1},
    )
    export = exported(asking(ToolCall(tool_name="f")), answering(result))
    assert natives(export)[1]["content"] == "a\nb"
    assert kinds(export) == [
        "provider_data_dropped",
        "provider_data_dropped",
        "messages_merged",
        "structured_dropped",
    ]


def test_what_a_message_cannot_say_here_is_told() -> None:
    export = exported(
        Message.of("developer", "Be brief."),
        Message(role="user", blocks=(TextBlock(text=""), TextBlock(text="x"))),
        Message(role="user"),
        Message(role="assistant", blocks=(TextBlock(text="No.", is_refusal=True),)),
        Message(role="user", blocks=(CallBlock(call=ToolCall(tool_name="f")),)),
    )
    assert [one["role"] for one in natives(export)] == [
        "system",
        "user",
        "user",
        "assistant",
        "assistant",
        "tool",
    ]
    assert kinds(export) == [
        *("role_changed", "message_empty", "message_empty", "block_described", "role_changed"),
        *("result_missing", "status_flattened", "error_as_prefix"),
    ]
