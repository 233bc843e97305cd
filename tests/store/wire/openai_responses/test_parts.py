"""Parts of messages and of outputs as they are written, and what they cannot say."""

import pytest
from tests.support.cases import each_case
from tests.support.wire.responses_messages import (
    FOREIGN,
    OWN,
    PNG,
    TEXT,
    answered,
    asked,
    call,
    items_of,
    kinds,
    output_of,
    result,
    written,
)

from tooltrail.records import (
    Conversation,
    MediaBlock,
    Message,
    MessageBlock,
    ResourceBlock,
    ResultBlock,
    TextBlock,
)
from tooltrail.wire import Export, ExportPolicy
from tooltrail.wire.members import objects_in
from tooltrail.wire.openai_responses import FORMAT


def test_one_text_is_a_text_and_anything_more_is_parts() -> None:
    assert output_of(TEXT) == ("ok", [])
    assert output_of(TEXT, PNG, TextBlock(text="b")) == (
        [
            {"type": "input_text", "text": "ok"},
            {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "auto"},
            {"type": "input_text", "text": "b"},
        ],
        [],
    )


def test_a_failure_with_media_says_so_in_front() -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "auto"}
    prefixed = [{"type": "input_text", "text": "ERROR: ok"}, image]
    assert output_of(TEXT, PNG, status="error") == (prefixed, ["error_as_prefix"])
    bare = [{"type": "input_text", "text": "ERROR: "}, image]
    changes = ["status_flattened", "error_as_prefix"]
    assert output_of(PNG, status="timeout") == (bare, changes)


def test_a_structured_value_stands_for_missing_content_alone() -> None:
    assert output_of(structured={"ä": [1]}, has_structured=True) == (
        '{"ä":[1]}',
        ["structured_as_text"],
    )
    assert output_of(TEXT, structured=1, has_structured=True) == ("ok", ["structured_dropped"])
    (parts, changes) = output_of(TEXT, PNG, structured=1, has_structured=True)
    assert isinstance(parts, list)
    assert changes == ["structured_dropped"]


DESCRIBED: list[MessageBlock] = [
    MediaBlock(kind="image", media_type="image/bmp", data="aGk="),
    MediaBlock(kind="image", media_type="image/png", data="no base64"),
    MediaBlock(kind="image", media_type="image/png", data=""),
    MediaBlock(kind="image"),
    MediaBlock(kind="image", uri="ftp://x"),
    MediaBlock(kind="image", uri="https://x y"),
    MediaBlock(kind="image", uri="data:image/png;base64,aGk="),
    MediaBlock(kind="audio", media_type="audio/wav", data="aGk="),
    MediaBlock(kind="document", media_type="no type", data="aGk="),
    ResourceBlock(uri="mcp://x", text="a"),
    ResourceBlock(uri="mcp://x"),
]


@each_case("block", DESCRIBED)
def test_what_has_no_part_is_described(block: MessageBlock) -> None:
    export = written(
        Message(role="user", blocks=(block,)),
        asked(call()),
        answered(ResultBlock.model_validate({"call_id": "call_1", "content": (block,)})),
        Message(role="assistant", blocks=(block,)),
    )
    assert kinds(export) == ["block_described"] * 3
    user, _, output, said = items_of(export)
    assert isinstance(output["output"], list)
    assert output["output"][0] == {"type": "input_text", "text": user["content"]}
    assert said["content"] == user["content"]
    assert str(user["content"]).startswith("[")


LOSSY: list[MediaBlock] = [
    PNG.model_copy(update={"name": "a.png"}),
    PNG.model_copy(update={"uri": "https://x"}),
    MediaBlock(kind="image", uri="https://x", media_type="image/png"),
    MediaBlock(kind="document", uri="https://x", name="a"),
    MediaBlock(kind="document", data="aGk="),
    MediaBlock(kind="document", data="aGk=", name="a", uri="https://x"),
]


@each_case("block", LOSSY)
def test_what_a_part_cannot_say_of_media_is_told(block: MediaBlock) -> None:
    export = written(Message(role="user", blocks=(block,)))
    assert isinstance(items_of(export)[0]["content"], list)
    assert kinds(export) == ["block_described"]


def test_a_message_of_nothing_is_left_out_and_told() -> None:
    export = written(Message(role="user", blocks=()))
    assert (items_of(export), kinds(export)) == ([], ["message_empty"])


FILES = [
    MediaBlock(kind="image", uri="file:file-1"),
    MediaBlock(kind="document", uri="file:file-1"),
]


@pytest.mark.parametrize("block", FILES)
def test_the_name_of_a_file_goes_to_the_provider_that_gave_it_alone(block: MediaBlock) -> None:
    shown = Message(role="user", blocks=(block,), origin=OWN)
    export = written(shown)
    parts = objects_in(items_of(export)[0]["content"])
    assert [part["file_id"] for part in parts] == ["file-1"]
    assert not export.report
    for other in (
        shown.model_copy(update={"origin": FOREIGN}),
        Message(role="user", blocks=(block,)),
    ):
        export = written(other)
        assert items_of(export)[0]["content"] == f"[{block.kind} of unknown type, file:file-1]"
        assert kinds(export) == ["block_described"]


def test_a_path_is_no_name_of_a_file() -> None:
    path = MediaBlock(kind="document", uri="file:///etc/passwd")
    export = written(Message(role="user", blocks=(path,), origin=OWN))
    assert items_of(export)[0]["content"] == "[document of unknown type, file:///etc/passwd]"


def unchecked(*messages: Message) -> Export:
    """An export with members that the client's types do not know."""
    return FORMAT.write_history(Conversation.of(messages), ExportPolicy())


def test_extras_replace_nothing_that_a_part_says() -> None:
    text = TextBlock(text="a", extras={"type": "b", "text": "c", "x": None, "y": 1})
    export = unchecked(Message(role="user", blocks=(text,), origin=OWN))
    assert items_of(export)[0]["content"] == [{"type": "input_text", "text": "a", "y": 1}]
    assert [change.detail for change in export.report] == ["text, type, x"]


def test_the_extras_of_a_call_and_its_output_replace_nothing() -> None:
    one = call(extras={"type": "x", "a": 1})
    export = unchecked(asked(one, origin=OWN), answered(result(TEXT, extras={"output": 1, "b": 2})))
    assert export.request["input"] == [
        {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}", "a": 1},
        {"type": "function_call_output", "call_id": "call_1", "output": "ok", "b": 2},
    ]
    assert sorted(change.detail for change in export.report) == ["output", "type"]
