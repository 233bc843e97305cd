"""The canonical conversation as the messages of a Chat Completions request.

Results are plain text, for a list of parts is split by some servers and loses its id. Text and
calls of one turn collapse into one message, the text first. What the model thought, and what else
a provider said, goes back to the provider that said it alone.
"""

from collections.abc import Iterator, Sequence

from pydantic import JsonValue

from tooltrail.records import (
    Conversation,
    MediaBlock,
    Message,
    MessageBlock,
    ProviderBlock,
    ReasoningBlock,
    TextBlock,
)
from tooltrail.wire._steps import Answered, Answers, Said, steps
from tooltrail.wire._writing import Writing
from tooltrail.wire.members import JsonObject, object_in, text_in
from tooltrail.wire.openai_chat.parts import is_part, with_extras, write_media
from tooltrail.wire.openai_chat.reading import CALL, MESSAGE, REASONING

_RESULT = frozenset({"role", "content", "tool_call_id", "name"})
_SAID_BY = ("content", "refusal", "audio")
"""Members of which a message without calls needs one."""

_PLACES = (*REASONING, "content", "refusal", "tool_calls")
"""The order in which the members of a message are read."""


def write_history(writing: Writing, conversation: Conversation) -> JsonObject:
    """`{"messages": […]}`."""
    messages: list[JsonValue] = []
    for step in steps(writing, conversation):
        if isinstance(step, Answers):
            messages.append(_write_answers(writing, step))
            messages.extend(_write_result(writing, step, answered) for answered in step.answered)
        elif said := _write_said(writing, step):
            messages.append(said)
    return {"messages": messages}


def is_result(item: JsonObject) -> bool:
    """Whether a message brings the result of a tool."""
    return item.get("role") in {"tool", "function"}


def _write_said(writing: Writing, step: Said) -> JsonObject | None:
    """The message; None for one of the assistant in which nothing is said."""
    message, where = step.message, step.where
    if message.role == "assistant":
        native = _assistant(writing, message, message.blocks, where)
        if any(native.get(member) for member in _SAID_BY):
            return native
        writing.note("message_empty", where, "nothing is said in it; left out")
        return None
    native = {"role": message.role, "content": _content(writing, message, message.blocks, where)}
    extras = message.origin.extras if message.origin else {}
    return with_extras(writing, message, native, extras, where, known=MESSAGE)


def _write_answers(writing: Writing, step: Answers) -> JsonObject:
    blocks = list(step.blocks())
    calls: list[JsonValue] = [
        _write_call(writing, step.message, block) for block in blocks if isinstance(block, Answered)
    ]
    native = _assistant(writing, step.message, blocks, step.where)
    return {**native, "content": native["content"] or None, "tool_calls": calls}


def _write_call(writing: Writing, message: Message, answered: Answered) -> JsonObject:
    call, where = answered.call, answered.where
    arguments = writing.arguments_text(call, where)
    if call.namespace is not None:
        writing.note("provider_data_dropped", where, f"namespace {call.namespace}")
    if call.kind in {"builtin", "mcp"}:
        writing.note("provider_data_dropped", where, f"a {call.kind} call is a function call here")
    native: JsonObject = {
        "id": answered.wire_id,
        "type": "function",
        "function": {"name": answered.wire_name, "arguments": arguments},
    }
    if call.kind == "custom":
        native["type"] = "custom"
        native["custom"] = {"name": answered.wire_name, "input": arguments}
        del native["function"]
    return with_extras(writing, message, native, call.extras, where, known=CALL)


def _write_result(writing: Writing, step: Answers, answered: Answered) -> JsonObject:
    result, where = answered.result, answered.where
    native: JsonObject = {
        "role": "tool",
        "tool_call_id": answered.wire_id,
        "content": writing.result_text(result, where),
    }
    return with_extras(writing, step.message, native, result.extras, where, known=_RESULT)


def _assistant(
    writing: Writing, message: Message, blocks: Sequence[MessageBlock | Answered], where: str
) -> JsonObject:
    """The message without its calls, which have their place among the blocks."""
    members: dict[str, list[str]] = {}
    spoken: list[MessageBlock] = []
    places: list[int] = []
    for block in blocks:
        if isinstance(block, Answered):
            member: str | None = "tool_calls"
        elif isinstance(block, ReasoningBlock):
            member = _take_thoughts(writing, message, block, members, where)
        elif isinstance(block, TextBlock) and block.is_refusal:
            member = _take_refusal(writing, block, members, where)
        else:
            spoken.append(block)
            is_silent = isinstance(block, TextBlock) and not block.text
            member = None if is_silent else "content"
        if member is not None:
            places.append(_PLACES.index(member))
    if places != sorted(places):
        note = "what was thought stands first, then text, a refusal, and the calls"
        writing.note("order_changed", where, note)
    native: JsonObject = {"role": "assistant", "content": _spoken(writing, message, spoken, where)}
    for name, texts in members.items():
        native[name] = writing.joined(texts, where)
    extras = message.origin.extras if message.origin else {}
    if writing.replays(message):
        extras = _taken_back(writing, extras, where)
    return with_extras(writing, message, native, extras, where, known=MESSAGE)


def _take_thoughts(
    writing: Writing,
    message: Message,
    block: ReasoningBlock,
    members: dict[str, list[str]],
    where: str,
) -> str | None:
    """The member in which reasoning goes back to who said it; None where it does not."""
    member = block.extras.get("member")
    if not (isinstance(member, str) and member in REASONING and block.text):
        member = None
    if member is None or not writing.replays(message):
        writing.dropped_block(block, where)
        return None
    writing.note_dropped(block.extras.keys() - {"member"}, where)
    members.setdefault(member, []).append(block.text)
    return member


def _take_refusal(
    writing: Writing, block: TextBlock, members: dict[str, list[str]], where: str
) -> str | None:
    writing.note_extras(block, where)
    if not block.text:
        writing.note("block_dropped", where, "a refusal without words")
        return None
    members.setdefault("refusal", []).append(writing.clean.text(block.text, where))
    return "refusal"


def _taken_back(writing: Writing, extras: JsonObject, where: str) -> JsonObject:
    """What a request takes of what an answer said: of sound nothing but its id."""
    if "audio" not in extras:
        return extras
    others = {name: value for name, value in extras.items() if name != "audio"}
    audio = object_in(extras["audio"])
    audio_id = text_in(audio.get("id"))
    kept: JsonObject = {} if audio_id is None else {"id": audio_id}
    if audio != kept or not kept:
        unsaid = ", ".join(sorted(audio.keys() - kept.keys()))
        writing.note("provider_data_dropped", where, f"audio: {unsaid}" if unsaid else "audio")
    return {**others, "audio": kept} if kept else others


def _spoken(
    writing: Writing, message: Message, blocks: Sequence[MessageBlock], where: str
) -> JsonValue:
    """What an assistant says: a text, unless its provider said parts of its own with it."""
    own = [block for block in blocks if _own_part(writing, message, block)]
    return _content(writing, message, blocks, where) if own else _text(writing, blocks, where)


def _text(writing: Writing, blocks: Sequence[MessageBlock], where: str) -> str:
    texts: list[str] = []
    for block in blocks:
        if isinstance(block, TextBlock):
            texts.append(writing.clean.text(block.text, where))
            writing.note_text(block, where)
        elif isinstance(block, ProviderBlock):
            writing.dropped_block(block, where)
        else:
            texts.append(writing.described(block, where))
            writing.note_extras(block, where)
    return writing.joined(texts, where)


def _content(
    writing: Writing, message: Message, blocks: Sequence[MessageBlock], where: str
) -> JsonValue:
    """One text as a text, anything more as parts."""
    parts = list(_parts(writing, message, blocks, where))
    # A list without parts is refused; a text without characters is not.
    is_text = not parts or (len(parts) == 1 and parts[0].keys() == {"type", "text"})
    return [*parts] if not is_text else parts[0]["text"] if parts else ""


def _parts(
    writing: Writing, message: Message, blocks: Sequence[MessageBlock], where: str
) -> Iterator[JsonObject]:
    for block in blocks:
        part = _own_part(writing, message, block)
        if part is not None:
            writing.note_extras(block, where)
        elif isinstance(block, MediaBlock) and message.role == "user":
            part = write_media(writing, message, block, where)
        elif isinstance(block, TextBlock):
            part = _text_part(writing, message, block, where)
            if part is None:
                if len(blocks) > 1:
                    writing.note("block_dropped", where, "a text without characters")
                continue
        elif isinstance(block, ReasoningBlock | ProviderBlock):
            writing.dropped_block(block, where)
            continue
        if part is None:
            members: JsonObject = {"type": "text", "text": _text(writing, [block], where)}
            part = members
        yield part


def _own_part(writing: Writing, message: Message, block: MessageBlock) -> JsonObject | None:
    """A part that its provider alone understands, if it goes back to it."""
    if not isinstance(block, ProviderBlock) or not writing.replays(message):
        return None
    native = object_in(block.native)
    return native if text_in(native.get("type")) and not is_part(native) else None


def _text_part(
    writing: Writing, message: Message, block: TextBlock, where: str
) -> JsonObject | None:
    """The part of a text; None for one in which nothing is said."""
    writing.note_refusal(block, where)
    native: JsonObject = {"type": "text", "text": writing.clean.text(block.text, where)}
    part = with_extras(writing, message, native, block.extras, where)
    return part if block.text or len(part) > len(native) else None
