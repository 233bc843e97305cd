"""What comes back of a conversation that was written for Ollama.

The row of the loss table: name, arguments, order, batch and ids survive; the error flag, blocks but
images, the raw text of arguments and the spelling of numbers do not.
"""

import json
from collections.abc import Iterable, Iterator

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.conversations import (
    json_objects,
    spoken_texts,
    tool_names,
)

from tooltrail.records import (
    CallBlock,
    ContentBlock,
    Conversation,
    MediaBlock,
    Message,
    MessageBlock,
    Origin,
    ReasoningBlock,
    ResultBlock,
    TextBlock,
    ToolCall,
    read_json,
)
from tooltrail.wire import DEFAULT_EXPORT_POLICY, Export, JsonObject
from tooltrail.wire.ollama import FORMAT

PNG = "iVBORw0KGgoAAAANSUhEUg=="
PREFIX = "ERROR: "
OWN = Origin(wire_format="ollama")
own_extras: list[JsonObject] = [{}, {"t": 1}]


def written(conversation: Conversation) -> Export:
    return FORMAT.write_history(conversation, DEFAULT_EXPORT_POLICY)


def respelled(raw: str) -> str:
    """Arguments travel as an object, so white space and the spelling of numbers are lost."""
    value = read_json(raw) if raw.strip() else {}
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def expected(conversation: Conversation) -> Conversation:
    """What the row of the loss table leaves of a conversation in normal form."""
    messages: list[Message] = []
    asked: list[ToolCall] = []
    for message in conversation.messages:
        blocks = [*_expected_blocks(message.blocks)]
        if message.calls:
            asked = [*message.calls]
        if message.role == "tool":
            blocks = [*map(_expected_result, message.results, asked)]
        messages.append(
            Message(role=message.role, blocks=tuple(blocks), origin=_expected_origin(message))
        )
    return Conversation.of(messages)


def _expected_origin(message: Message) -> Origin | None:
    """A request says nothing of answers; what goes back to Ollama comes from it again."""
    is_own = any(isinstance(block, ReasoningBlock) for block in message.blocks) or any(
        call.extras for call in message.calls
    )
    if message.origin is None or not (is_own or message.origin.extras):
        return None
    return Origin(wire_format="ollama", extras=message.origin.extras)


def _expected_blocks(blocks: Iterable[MessageBlock]) -> Iterator[MessageBlock]:
    """A call keeps its name, id, arguments and place; an id that repeats is flagged again."""
    ids: list[str | None] = []
    for block in blocks:
        if not isinstance(block, CallBlock):
            yield block
            continue
        call = block.call
        is_repeated = call.call_id is not None and call.call_id in ids
        kept = ToolCall(
            tool_name=call.tool_name,
            arguments_raw=respelled(call.arguments_raw),
            call_id=call.call_id,
            position=len(ids),
            flags=("id_repeated",) if is_repeated else (),
            extras=call.extras,
        )
        ids.append(call.call_id)
        yield CallBlock(call=kept)


def _expected_result(result: ResultBlock, call: ToolCall) -> ResultBlock:
    """No flag tells an error, but the prefix does; a result is named as its call is."""
    content = list(result.content)
    if result.is_error:
        first = content[0] if content else None
        if not isinstance(first, TextBlock):
            content.insert(0, TextBlock(text=PREFIX))
        elif not first.text.startswith(PREFIX):
            content[0] = TextBlock(text=PREFIX + first.text)
    head = content[0] if content else None
    is_error = isinstance(head, TextBlock) and head.text.startswith(PREFIX)
    return ResultBlock(
        call_id=call.call_id,
        tool_name=call.tool_name,
        status="error" if is_error else "unknown",
        content=tuple(content),
    )


images = st.sampled_from(
    [
        MediaBlock(kind="image", media_type="image/png", data=PNG),
        MediaBlock(kind="image", media_type="image/jpeg", data="/9j/4AAQSkZJRg=="),
        MediaBlock(kind="image", data="AAECAwQF"),
    ]
)


@st.composite
def own_conversations(draw: st.DrawFn) -> Conversation:
    """What Ollama keeps beyond the common: thoughts, images, extras, calls without ids."""
    messages: list[Message] = []
    for _ in range(draw(st.integers(1, 3))):
        spoken: list[MessageBlock] = [TextBlock(text=draw(spoken_texts))]
        messages.append(Message(role="user", blocks=(*spoken, *draw(st.lists(images, max_size=2)))))
        said: list[MessageBlock] = [ReasoningBlock(text=draw(spoken_texts))]
        said.extend(TextBlock(text=one) for one in draw(st.lists(spoken_texts, max_size=1)))
        results: list[ResultBlock] = []
        extras: JsonObject = draw(st.sampled_from([{}, {"function": {"index": 2}}, {"tag": "x"}]))
        for position in range(draw(st.integers(1, 3))):
            raw = json.dumps(draw(json_objects))
            call_id = draw(st.sampled_from([None, "call_0", f"call_{len(messages)}_{position}"]))
            call = ToolCall(
                tool_name=draw(tool_names),
                arguments_raw=raw,
                call_id=call_id,
                position=position,
                extras=extras,
            )
            said.append(CallBlock(call=call, key=f"{len(messages)} {position}"))
            texts = [TextBlock(text=one) for one in draw(st.lists(spoken_texts, max_size=1))]
            content: list[ContentBlock] = [*texts, *draw(st.lists(images, max_size=2))]
            results.append(
                ResultBlock(
                    key=f"{len(messages)} {position}",
                    status=draw(st.sampled_from(["ok", "error", "unknown"])),
                    content=tuple(content) or (TextBlock(text="x"),),
                )
            )
        origin = OWN.model_copy(
            update={"model": "qwen3", "extras": draw(st.sampled_from(own_extras))}
        )
        messages.append(Message(role="assistant", blocks=tuple(said), origin=origin))
        messages.append(Message(role="tool", blocks=tuple(results)))
    return Conversation.of(messages)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(own_conversations())
def test_what_ollama_said_itself_comes_back_to_it(conversation: Conversation) -> None:
    export = written(conversation)
    again = FORMAT.read_history(export.request)
    assert again == expected(conversation)
    assert {change.kind for change in export.report} <= {"error_as_prefix"}
    second = written(again)
    assert (second.request, list(second.report)) == (export.request, [])
