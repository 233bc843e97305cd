"""What comes back of a conversation that was written for Ollama.

The row of the loss table: name, arguments, order, batch and ids survive; the error flag, blocks but
images, the raw text of arguments and the spelling of numbers do not.
"""

import json
import re
from collections.abc import Iterable, Iterator

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import JsonValue
from tests.support.conversations import (
    conversations,
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
    ProviderBlock,
    ReasoningBlock,
    ResultBlock,
    ResultStatus,
    TextBlock,
    ToolCall,
    read_json,
)
from tooltrail.wire import DEFAULT_EXPORT_POLICY, Export, JsonObject
from tooltrail.wire.members import objects_in
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


@given(conversations())
def test_a_conversation_comes_back_but_for_the_row_of_the_loss_table(
    conversation: Conversation,
) -> None:
    export = written(conversation)
    assert FORMAT.read_history(export.request) == expected(conversation)
    assert {change.kind for change in export.report} <= {"error_as_prefix"}


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(own_conversations())
def test_what_ollama_said_itself_comes_back_to_it(conversation: Conversation) -> None:
    export = written(conversation)
    assert FORMAT.read_history(export.request) == expected(conversation)
    assert {change.kind for change in export.report} <= {"error_as_prefix"}


@given(conversations())
def test_what_was_read_is_written_as_it_was(conversation: Conversation) -> None:
    request = written(conversation).request
    again = written(FORMAT.read_history(request))
    assert again.request == request
    assert not again.report


# From here on: whatever a record can hold.
any_texts = st.text(max_size=12) | st.sampled_from(
    ["", "\0", "\ud800", "a\ud83d", "ERROR: x", "\x1b"]
)
any_ids = st.none() | st.sampled_from(["", "a", "a", "b/ü", "\0", "x" * 80]) | any_texts
any_arguments = st.sampled_from(
    [
        "[" * 3000,
        f'{{"n":{10**40}}}',
        "",
        " ",
        "{",
        "null",
        "[1]",
        '"x"',
        '{"a":1e400}',
        '{"a":1,"a":2}',
        '{"\\ud800":"\\u0000"}',
    ]
) | json_objects.map(json.dumps)
any_media = st.builds(
    MediaBlock,
    kind=st.sampled_from(["image", "audio", "document"]),
    media_type=st.none() | st.just("image/png") | any_texts,
    data=st.none() | st.sampled_from([PNG, "", "no base64", "AAEC"]),
    uri=st.none() | any_texts,
    name=st.none() | any_texts,
)
any_statuses: st.SearchStrategy[ResultStatus] = st.sampled_from(
    ["ok", "error", "timeout", "cancelled", "interrupted", "denied", "unknown"]
)
any_extras: st.SearchStrategy[JsonObject] = st.sampled_from(
    [{}, {"a": "\ud800"}, {"function": {"index": 1}}]
)
any_native: st.SearchStrategy[JsonValue] = st.sampled_from(
    [{"type": "x"}, {"role": "control", "content": "\0"}, ["\udc00"], None]
)
any_text_blocks = st.builds(TextBlock, text=any_texts, is_refusal=st.booleans(), extras=any_extras)
any_provider_blocks = st.builds(ProviderBlock, native=any_native)
any_content = st.lists(any_text_blocks | any_media | any_provider_blocks, max_size=3).map(tuple)
any_calls = st.builds(
    CallBlock,
    call=st.builds(
        ToolCall,
        tool_name=any_texts,
        arguments_raw=any_arguments,
        call_id=any_ids,
        kind=st.sampled_from(["function", "custom", "builtin", "mcp"]),
        namespace=st.none() | any_texts,
        flags=st.sampled_from([(), ("incomplete",), ("id_synthesised",)]),
        extras=any_extras,
    ),
    key=st.none() | st.sampled_from(["k", "l"]),
)
any_results = st.builds(
    ResultBlock,
    call_id=any_ids,
    tool_name=st.none() | any_texts,
    status=any_statuses,
    content=any_content,
    structured=st.sampled_from([None, {"a": "\udfff"}, [1]]),
    has_structured=st.booleans(),
    key=st.none() | st.sampled_from(["k", "l"]),
    extras=any_extras,
)
any_thoughts = st.builds(ReasoningBlock, text=any_texts, extras=any_extras)
any_origins = st.none() | st.builds(
    Origin, wire_format=st.sampled_from(["ollama", "openai"]), extras=any_extras
)
any_said = st.builds(
    Message,
    role=st.sampled_from(["system", "developer", "user", "assistant"]),
    blocks=st.lists(
        any_text_blocks | any_media | any_provider_blocks | any_thoughts | any_calls | any_results,
        max_size=5,
    ).map(tuple),
    origin=any_origins,
)
any_answers = st.builds(
    Message, role=st.just("tool"), blocks=st.lists(any_results, min_size=1, max_size=3).map(tuple)
)
any_conversations = st.lists(any_said | any_answers, max_size=6).map(Conversation.of)


_UNSENDABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


def strings_in(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from strings_in(item)
    elif isinstance(value, dict):
        for name, member in value.items():
            yield name
            yield from strings_in(member)


def problems(messages: list[JsonObject]) -> Iterator[str]:
    """What the server would not take, or would take for something else."""
    waiting: list[tuple[JsonValue, JsonValue]] = []
    for message in messages:
        if message["role"] == "tool":
            asked = waiting.pop(0) if waiting else None
            if asked != (message["tool_name"], message.get("tool_call_id")):
                yield f"{message} answers {asked}"
        elif waiting:
            yield f"{waiting} have no results"
        if not isinstance(message["content"], str):
            yield "a content that is no text"
        for call in objects_in(message.get("tool_calls")):
            function = call["function"]
            if not isinstance(function, dict) or not isinstance(function["arguments"], dict):
                yield "arguments that are no object"
                continue
            waiting.append((function["name"], call.get("id")))
    if waiting:
        yield f"{waiting} have no results"
    yield from (
        f"{text!r} cannot be sent" for text in strings_in([*messages]) if _UNSENDABLE.search(text)
    )


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(any_conversations)
def test_whatever_a_record_holds_becomes_a_history_that_can_be_sent(
    conversation: Conversation,
) -> None:
    export = written(conversation)
    messages = objects_in(export.request["messages"])
    assert json.loads(json.dumps(export.request, allow_nan=False).encode()) == export.request
    assert list(problems(messages)) == []
    again = FORMAT.read_history(export.request)
    assert not written(again).report.of_kind("result_orphaned")


@st.composite
def nearly_normal(draw: st.DrawFn) -> Conversation:
    """A conversation in normal form of which one block, if any, is as any record may have it."""
    conversation = draw(conversations() | own_conversations())
    messages = list(conversation.messages)
    number = draw(st.integers(0, len(messages) - 1))
    message = messages[number]
    blocks = list(message.blocks)
    place = draw(st.integers(0, len(blocks) - 1))
    block = blocks[place]
    change = draw(st.sampled_from(["nothing", "block", "beside", "role", "origin", "drop"]))
    if change == "block":
        blocks[place] = draw(_odd(block))
    elif change == "beside":
        blocks.insert(place, draw(any_text_blocks | any_media | any_thoughts))
    elif change == "drop":
        del blocks[place]
    changed = message.model_copy(update={"blocks": tuple(blocks)})
    if change == "role":
        roles = ["developer", "user", "tool", "assistant", "system"]
        changed = changed.model_copy(update={"role": draw(st.sampled_from(roles))})
    if change == "origin":
        changed = changed.model_copy(update={"origin": draw(any_origins)})
    messages[number] = changed
    return Conversation.of(messages)


def _odd(block: MessageBlock) -> st.SearchStrategy[MessageBlock]:
    """The same block, one member of it as any record may have it."""

    def replaced(**members: st.SearchStrategy[object]) -> st.SearchStrategy[MessageBlock]:
        one = st.sampled_from(sorted(members)).flatmap(
            lambda name: members[name].map(lambda value: {name: value})
        )
        return one.map(lambda update: block.model_copy(update=update))

    if isinstance(block, CallBlock):
        call = block.call
        members: dict[str, st.SearchStrategy[object]] = {
            "tool_name": any_texts.map(lambda name: ToolCall(tool_name=name).tool_name),
            "arguments_raw": any_arguments,
            "kind": st.sampled_from(["custom", "builtin", "mcp"]),
            "namespace": any_texts,
            "extras": any_extras,
        }
        one = st.sampled_from(sorted(members)).flatmap(
            lambda name: members[name].map(lambda value: {name: value})
        )
        return one.map(lambda update: block.model_copy(update={"call": _copied(call, update)}))
    if isinstance(block, ResultBlock):
        return replaced(
            status=any_statuses,
            content=any_content,
            has_structured=st.just(value=True),
            extras=any_extras,
        )
    if isinstance(block, TextBlock):
        return replaced(text=any_texts, is_refusal=st.booleans(), extras=any_extras)
    return any_media


def _copied(call: ToolCall, update: dict[str, object]) -> ToolCall:
    """A copy that has read nothing of its arguments yet."""
    return ToolCall.model_validate({**call.model_dump(), **update})


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(nearly_normal())
def test_what_comes_back_otherwise_is_in_the_report(conversation: Conversation) -> None:
    export = written(conversation)
    # The row of the loss table has the prefix: what comes back with it is expected.
    if {change.kind for change in export.report} <= {"error_as_prefix"}:
        assert FORMAT.read_history(export.request) == expected(conversation)
