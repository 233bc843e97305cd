"""What comes back of a conversation that was written for OpenAI Responses.

The row of the loss table: ids, names, namespaces, raw arguments, text, images, files and the order
of items survive; the error flag, sounds and links, structured values and the boundary between two
turns that nothing parts do not. Of the shell and of `apply_patch`, how they ended survives.
"""

import json
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st
from tests.support.conversations import call_ids, json_objects, spoken_texts, tool_names
from tests.support.wire.checks import history_problems
from tests.support.wire.schemas import problems

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
    ResultStatus,
    TextBlock,
    ToolCall,
)
from tooltrail.wire import DEFAULT_EXPORT_POLICY, Export, JsonObject
from tooltrail.wire._reading import is_for_provider
from tooltrail.wire.members import objects_in
from tooltrail.wire.openai_responses import FORMAT

PREFIX = "ERROR: "
NATIVE = {"shell", "apply_patch"}
OWN = Origin(wire_format="openai-responses")


def written(conversation: Conversation) -> Export:
    return FORMAT.write_history(conversation, DEFAULT_EXPORT_POLICY)


def expected(conversation: Conversation) -> Conversation:
    """What the row of the loss table leaves of a conversation in normal form."""
    messages: list[Message] = []
    calls: dict[str | None, ToolCall] = {}
    for message in conversation.messages:
        calls.update((one.call_id, one) for one in message.calls)
        blocks = tuple(_expected_block(block, calls) for block in message.blocks)
        last = messages[-1] if messages else None
        if last is not None and message.role == last.role == "assistant":
            # Nothing tells where the one turn ended.
            messages[-1] = last.model_copy(update={"blocks": (*last.blocks, *blocks)})
            continue
        messages.append(Message(role=message.role, blocks=blocks, origin=_expected_origin(message)))
    return Conversation.of(messages)


def _expected_origin(message: Message) -> Origin | None:
    """A request does not name the model, only that what is said is for this format."""
    return OWN if any(map(is_for_provider, message.blocks)) else None


def _expected_block(block: MessageBlock, calls: dict[str | None, ToolCall]) -> MessageBlock:
    if isinstance(block, ResultBlock):
        call = calls[block.call_id]
        if call.kind == "builtin" and call.tool_name in NATIVE:
            return _expected_native(block, call.tool_name)
        return _expected_result(block)
    return block


def _expected_result(result: ResultBlock) -> ResultBlock:
    """No flag tells an error, but the prefix does; an output does not repeat the name."""
    content = list(result.content)
    if result.is_error:
        first = content[0] if content else None
        if not isinstance(first, TextBlock):
            content.insert(0, TextBlock(text=PREFIX))
        elif not first.text.startswith(PREFIX):
            content[0] = TextBlock(text=PREFIX + first.text)
    head = content[0]
    is_error = isinstance(head, TextBlock) and head.text.startswith(PREFIX)
    status: ResultStatus = "error" if is_error else "unknown"
    return ResultBlock(call_id=result.call_id, status=status, content=tuple(content))


def _expected_native(result: ResultBlock, tool_name: str) -> ResultBlock:
    update: dict[str, object] = {"tool_name": None, "namespace": None}
    if tool_name == "shell":
        # Nothing is what a command without output wrote; other content is told in the report.
        text = "".join(block.text for block in result.content if isinstance(block, TextBlock))
        exited = {"type": "exit", "exit_code": int(result.status == "error")}
        outcome = {"type": "timeout"} if result.status == "timeout" else exited
        entry = {"stdout": text, "stderr": "", "outcome": outcome}
        update |= {"structured": [entry], "has_structured": True}
    return result.model_copy(update=update)


media = st.sampled_from(
    [
        MediaBlock(kind="image", media_type="image/png", data="aGk="),
        MediaBlock(kind="image", media_type="image/webp", data="aGk="),
        MediaBlock(kind="image", uri="https://example.org/a.png"),
        MediaBlock(kind="image", uri="file:file-1"),
        MediaBlock(kind="document", media_type="application/pdf", data="aGk=", name="a.pdf"),
        MediaBlock(kind="document", uri="https://example.org/a.pdf"),
        MediaBlock(kind="document", uri="file:file-2"),
    ]
)
actions: dict[str, JsonObject] = {
    "shell": {"commands": ["ls"], "timeout_ms": 100},
    "apply_patch": {"type": "update_file", "path": "a", "diff": "@@"},
}


PREFIXES = {"function": "fc", "custom": "ctc", "shell": "sh", "apply_patch": "apc"}
"""What ids of items begin with, by the kind of the call."""


@st.composite
def own_calls(draw: st.DrawFn, call_id: str, position: int) -> ToolCall:
    """A call as this format gives it."""
    kind = draw(st.sampled_from([*PREFIXES]))
    extras: JsonObject = {"id": f"{PREFIXES[kind]}_{call_id}"} if draw(st.booleans()) else {}
    if kind in actions:
        # Canonical JSON sorts members, and their order is kept, so they are in order here.
        raw = json.dumps(actions[kind], separators=(",", ":"))
        return ToolCall(
            tool_name=kind,
            arguments_raw=raw,
            call_id=call_id,
            kind="builtin",
            position=position,
            extras=extras,
        )
    raw = draw(spoken_texts) if kind == "custom" else json.dumps(draw(json_objects), indent=1)
    return ToolCall(
        tool_name=draw(tool_names),
        arguments_raw=raw,
        call_id=call_id,
        kind="custom" if kind == "custom" else "function",
        namespace=draw(st.none() | tool_names),
        position=position,
        extras=extras,
    )


@st.composite
def own_results(draw: st.DrawFn, call: ToolCall) -> ResultBlock:
    """A result as its call can have it here."""
    if call.kind == "builtin":
        statuses = ["ok", "error", "timeout"] if call.tool_name == "shell" else ["ok", "error"]
        content: list[ContentBlock] = [TextBlock(text=draw(spoken_texts))]
    else:
        statuses = ["ok", "error"]
        parts = st.lists(spoken_texts.map(lambda text: TextBlock(text=text)) | media, max_size=3)
        content = [*draw(parts.filter(bool))]
    return ResultBlock.model_validate(
        {"call_id": call.call_id, "status": draw(st.sampled_from(statuses)), "content": content}
    )


def _said(text: str, number: int) -> TextBlock:
    return TextBlock(text=text, extras={"item": {"id": f"msg_{number}", "phase": "commentary"}})


@st.composite
def own_conversations(draw: st.DrawFn) -> Conversation:
    """What this format keeps beyond the common: interleaving, reasoning, media, its own tools."""
    messages: list[Message] = []
    ids = iter(draw(st.lists(call_ids, min_size=9, max_size=9, unique=True)))
    for turn in range(draw(st.integers(1, 3))):
        spoken: list[MessageBlock] = [TextBlock(text=draw(spoken_texts))]
        shown = draw(st.lists(media, max_size=2))
        # The name of a file is its provider's, so who gave it is known.
        named = OWN if any(map(is_for_provider, shown)) else None
        messages.append(Message(role="user", blocks=(*spoken, *shown), origin=named))
        said: list[MessageBlock] = [
            ReasoningBlock(
                text=text,
                extras={
                    "id": f"rs_{turn}",
                    "summary": [{"type": "summary_text", "text": text}],
                    "encrypted_content": draw(st.none() | st.just("gAAA=")),
                },
            )
            for text in draw(st.lists(spoken_texts, max_size=1))
        ]
        results: list[ResultBlock] = []
        for position in range(draw(st.integers(1, 3))):
            said += draw(st.lists(spoken_texts.map(lambda text: TextBlock(text=text)), max_size=1))
            call = draw(own_calls(next(ids), position))
            said.append(CallBlock(call=call))
            results.append(draw(own_results(call)))
        said += [_said(text, turn) for text in draw(st.lists(spoken_texts, max_size=2))]
        listing: JsonObject = {
            "type": "mcp_list_tools",
            "id": f"mcpl_{turn}",
            "server_label": "s",
            "tools": [],
        }
        said += draw(st.sampled_from([[], [ProviderBlock(native=listing)]]))
        origin = OWN.model_copy(update={"model": "gpt-5"})
        messages.append(Message(role="assistant", blocks=tuple(said), origin=origin))
        messages.append(Message(role="tool", blocks=tuple(results)))
    return Conversation.of(messages)


def unsound(items: list[JsonObject]) -> Iterator[str]:
    """Where a call or somebody's message stands before the outputs of an earlier batch."""
    waiting = 0
    is_answering = False
    for number, item in enumerate(items):
        kind = str(item.get("type", "message"))
        if kind.endswith("_call_output"):
            waiting -= 1
            is_answering = True
        elif waiting and (is_answering or item.get("role") in {"user", "system", "developer"}):
            yield f"input[{number}] comes before {waiting} outputs"
        elif kind.endswith("_call"):
            waiting += 1
            is_answering = False
        else:
            is_answering = False
    if waiting:
        yield f"{waiting} outputs are missing"


def assert_sendable(export: Export) -> None:
    assert json.loads(json.dumps(export.request, allow_nan=False)) == export.request
    items = objects_in(export.request["input"])
    assert list(unsound(items)) == []
    assert history_problems("openai-responses", export.request) == []
    for item in items:
        assert problems("openai-responses.item", item) == []


@given(own_conversations())
def test_what_the_provider_said_itself_comes_back_to_it(conversation: Conversation) -> None:
    export = written(conversation)
    read = FORMAT.read_history(export.request)
    assert read == expected(conversation)
    assert {change.kind for change in export.report} <= {"error_as_prefix"}
    assert_sendable(export)
    again = written(read)
    assert (again.request, list(again.report)) == (export.request, [])
    # An answer and the same items sent back say the same, but for who answered.
    for message in conversation.messages:
        if message.role == "assistant":
            items = objects_in(written(Conversation.of([message])).request["input"])
            said = [item for item in items if not str(item.get("type")).endswith("_output")]
            answer = FORMAT.read_response({"status": "completed", "output": [*said]})
            assert (answer.message.blocks, answer.unread) == (message.blocks, ())
