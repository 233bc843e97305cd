"""Conversations written as the messages of a Chat Completions request, whoever had them."""

from typing import Any

import pytest
from tests.support.cases import each_case
from tests.support.wire.checks import history_problems
from tests.support.wire.schemas import problems

from tooltrail.records import (
    CallBlock,
    Conversation,
    MediaBlock,
    Message,
    MessageBlock,
    Origin,
    ProviderBlock,
    ReasoningBlock,
    ResourceBlock,
    ResultBlock,
    TextBlock,
    ToolCall,
)
from tooltrail.wire import Export, ExportPolicy
from tooltrail.wire.openai_chat import FORMAT

OWN = Origin(wire_format="openai", provider="openai")
FOREIGN = Origin(wire_format="anthropic", extras={"a": 1})
TEXT = TextBlock(text="ok")
REFUSAL = TextBlock(text="no", is_refusal=True)
THOUGHT = ReasoningBlock(text="hm", extras={"member": "reasoning_content"})
CALL = CallBlock(call=ToolCall(tool_name="f", call_id="call_1"))
ANSWER = Message(role="tool", blocks=(ResultBlock(call_id="call_1", content=(TEXT,)),))
PNG = MediaBlock(kind="image", media_type="image/png", data="aGk=")


def written(*messages: Message, policy: ExportPolicy | None = None) -> Export:
    export = FORMAT.write_history(Conversation.of(messages), policy or ExportPolicy())
    assert history_problems("openai", export.request) == []
    return export


def told(export: Export) -> list[Any]:
    messages = export.request["messages"]
    assert isinstance(messages, list)
    return messages


def kinds(export: Export) -> list[str]:
    return [change.kind for change in export.report]


def said(*blocks: MessageBlock, origin: Origin | None = None) -> Message:
    return Message(role="assistant", blocks=blocks, origin=origin)


def user(*blocks: MessageBlock, origin: Origin | None = None) -> Message:
    return Message(role="user", blocks=blocks, origin=origin)


@each_case(
    ("blocks", "is_moved"),
    [
        ((THOUGHT, TEXT, REFUSAL, CALL), False),
        ((TEXT, CALL), False),
        ((REFUSAL, TEXT, CALL), True),
        ((CALL, TEXT), True),
        ((CALL, REFUSAL), True),
        ((TEXT, THOUGHT, CALL), True),
    ],
)
def test_what_moves_is_told(blocks: tuple[MessageBlock, ...], is_moved: bool) -> None:
    export = written(said(*blocks, origin=OWN), ANSWER)
    assert kinds(export) == (["order_changed"] if is_moved else [])
    if len(blocks) == 4:
        assert told(export)[0] == {
            "role": "assistant",
            "reasoning_content": "hm",
            "content": "ok",
            "refusal": "no",
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            ],
        }


def image(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def sound(spelled: str) -> dict[str, Any]:
    return {"type": "input_audio", "input_audio": {"data": "AAEC", "format": spelled}}


def file(name: str) -> dict[str, Any]:
    data = "data:application/pdf;base64,aGk="
    return {"type": "file", "file": {"filename": name, "file_data": data}}


def heard(media_type: str) -> MediaBlock:
    return MediaBlock(kind="audio", media_type=media_type, data="AAEC")


PDF = MediaBlock(kind="document", media_type="application/pdf", data="aGk=", name="a.pdf")
AWAY = MediaBlock(kind="image", uri="https://a/b")
SHOWN = image("data:image/png;base64,aGk=")
MEDIA: list[tuple[MediaBlock, dict[str, Any], list[str]]] = [
    (PNG, SHOWN, []),
    (PNG.model_copy(update={"name": "a.png"}), SHOWN, ["block_described"]),
    (PNG.model_copy(update={"extras": {"a": 1}}), SHOWN, ["provider_data_dropped"]),
    (AWAY, image("https://a/b"), []),
    (
        AWAY.model_copy(update={"media_type": "image/png"}),
        image("https://a/b"),
        ["block_described"],
    ),
    (heard("audio/wav"), sound("wav"), []),
    (heard("audio/mpeg"), sound("mp3"), []),
    (heard("audio/mp3"), sound("mp3"), ["block_described"]),
    (PDF, file("a.pdf"), []),
    (PDF.model_copy(update={"name": None}), file("document"), ["block_described"]),
]


@each_case(("block", "part", "changes"), MEDIA)
def test_media_are_parts_and_what_they_do_not_say_is_told(
    block: MediaBlock, part: dict[str, Any], changes: list[str]
) -> None:
    export = written(user(block))
    assert told(export) == [{"role": "user", "content": [part]}]
    assert problems("openai.message", told(export)[0]) == []
    assert kinds(export) == changes


FILE = MediaBlock(kind="document", uri="file:file-1")


@pytest.mark.parametrize(
    ("policy", "is_sent"),
    [
        (ExportPolicy(), True),
        (ExportPolicy(provider="azure"), False),
        (ExportPolicy(replay_provider_data=False), False),
    ],
)
def test_the_name_of_a_file_goes_to_the_provider_that_gave_it_alone(
    policy: ExportPolicy, is_sent: bool
) -> None:
    export = written(user(FILE, origin=OWN), policy=policy)
    (message,) = told(export)
    if is_sent:
        assert message["content"] == [{"type": "file", "file": {"file_id": "file-1"}}]
    else:
        assert message["content"] == "[document of unknown type, file:file-1]"
    assert kinds(export) == ([] if is_sent else ["block_described"])


@each_case("uri", ["s3://a/b", "file:file-1", "file:///etc/passwd", "gs://a/b"])
@each_case("kind", ["image", "document"])
def test_a_place_that_means_nothing_there_is_described(kind: Any, uri: str) -> None:
    export = written(user(MediaBlock(kind=kind, uri=uri)))
    assert told(export)[0]["content"] == f"[{kind} of unknown type, {uri}]"
    assert kinds(export) == ["block_described"]


def test_a_text_without_characters_among_parts_is_told() -> None:
    export = written(user(TEXT, TextBlock(text=""), PNG))
    assert [part["type"] for part in told(export)[0]["content"]] == ["text", "image_url"]
    assert kinds(export) == ["block_dropped"]
    assert written(user(TextBlock(text=""))).request == {
        "messages": [{"role": "user", "content": ""}]
    }


REPLAYED: list[dict[str, Any]] = [
    {"role": "system", "content": "a", "name": "s"},
    {
        "role": "user",
        "name": "bob",
        "content": [
            {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}},
            {"type": "image_url", "image_url": {"url": "https://a/b", "detail": "high"}, "c": 1},
            {"type": "video_url", "video_url": {"url": "https://a/b"}},
        ],
    },
    {
        "role": "assistant",
        "content": [{"type": "thinking", "thinking": []}, {"type": "text", "text": "a"}],
        "tool_calls": [
            {
                "id": "call_1",
                "type": "function",
                "function": {"name": "f", "arguments": "{}", "x": 1},
                "extra_content": {"google": 1},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": "1", "cached": True},
]


def test_what_a_provider_said_besides_goes_back_to_it() -> None:
    conversation = FORMAT.read_history({"messages": [*REPLAYED]})
    export = FORMAT.write_history(conversation, ExportPolicy())
    assert export.request == {"messages": REPLAYED}
    assert not export.report


def test_what_a_provider_said_besides_goes_to_no_other() -> None:
    conversation = FORMAT.read_history({"messages": [*REPLAYED]})
    export = written(*conversation.messages, policy=ExportPolicy(replay_provider_data=False))
    assert sorted({change.detail for change in export.report}) == [
        *("[provider's thinking]", "[provider's video_url]", "c, image_url", "cache_control"),
        *("cached", "extra_content, function", "name"),
    ]
    assert all(problems("openai.message", one) == [] for one in told(export))


def test_extras_replace_nothing_that_is_said() -> None:
    text = TextBlock(text="a", extras={"type": "b", "x": None, "y": 1})
    origin = Origin(wire_format="openai", extras={"role": "system", "tool_calls": []})
    export = written(user(text, origin=origin))
    assert told(export) == [{"role": "user", "content": [{"type": "text", "text": "a", "y": 1}]}]
    assert [change.detail for change in export.report] == ["type, x", "role, tool_calls"]


def test_of_sound_that_was_said_its_id_goes_back() -> None:
    audio: Any = {"id": "audio_1", "data": "aGk=", "expires_at": 1, "transcript": "hi"}
    answer = FORMAT.read_response(
        {"choices": [{"message": {"content": None, "audio": audio}, "finish_reason": "stop"}]}
    )
    export = written(answer.message)
    assert told(export) == [{"role": "assistant", "content": "", "audio": {"id": "audio_1"}}]
    assert problems("openai.message", told(export)[0]) == []
    assert [change.detail for change in export.report] == ["audio: data, expires_at, transcript"]
    again = FORMAT.read_history(export.request)
    assert not written(*again.messages).report


def test_reasoning_goes_back_to_who_said_it_and_is_told_of_to_others() -> None:
    assert kinds(written(said(THOUGHT, TEXT, origin=OWN))) == []
    other = ReasoningBlock(text="hm", extras={"member": "content"})
    for message in (
        said(THOUGHT, TEXT),
        said(other, TEXT, origin=OWN),
        said(ReasoningBlock(text="", extras=THOUGHT.extras), TEXT, origin=OWN),
    ):
        export = written(message)
        assert told(export) == [{"role": "assistant", "content": "ok"}]
        assert kinds(export) == ["block_dropped"]
    signed = ReasoningBlock(text="hm", extras={"member": "reasoning", "signature": "x"})
    assert kinds(written(said(signed, TEXT, origin=OWN))) == ["provider_data_dropped"]


def test_what_another_provider_said_for_itself_stays_behind() -> None:
    message = said(
        ProviderBlock(native={"type": "server_tool_use"}),
        TextBlock(text="a", extras={"citations": []}),
        ResourceBlock(uri="mcp://x", extras={"b": 1}),
        origin=FOREIGN,
    )
    export = written(message)
    assert told(export) == [{"role": "assistant", "content": "a\n[link of unknown type, mcp://x]"}]
    assert sorted(kinds(export)) == [
        "block_described",
        "messages_merged",
        *["provider_data_dropped"] * 4,
    ]


@pytest.mark.parametrize(
    "message", [said(), said(THOUGHT), said(TextBlock(text="", is_refusal=True))]
)
def test_a_message_that_says_nothing_is_left_out(message: Message) -> None:
    export = written(message)
    assert told(export) == []
    assert kinds(export)[-1] == "message_empty"


def test_the_token_counts_that_an_importer_keeps_are_not_sent() -> None:
    origin = Origin(wire_format="openai", extras={"usage": {"output_tokens": 7}})
    export = written(user(TEXT, origin=origin), said(TEXT, origin=origin))
    assert told(export) == [
        {"role": "user", "content": "ok"},
        {"role": "assistant", "content": "ok"},
    ]
    assert kinds(export) == ["provider_data_dropped"] * 2
