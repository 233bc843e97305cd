"""The canonical conversation as the messages of a Chat Completions request.

Results are plain text, for a list of parts is split by some servers and loses its id. Text and
calls of one turn collapse into one message, the text first. What the model thought goes back to
the provider that said it alone.
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
from tooltrail.wire._descriptions import describe_block
from tooltrail.wire._steps import Answered, Answers, Said, steps
from tooltrail.wire._writing import Writing
from tooltrail.wire.exports import DEFAULT_EXPORT_POLICY, Export, ExportPolicy
from tooltrail.wire.media_uris import has_bytes, uri_of_media
from tooltrail.wire.members import JsonObject
from tooltrail.wire.openai_chat.limits import CAPABILITIES, NAME

_AUDIO = {"audio/wav": "wav", "audio/mp3": "mp3", "audio/mpeg": "mp3"}


def write_history(
    conversation: Conversation, policy: ExportPolicy = DEFAULT_EXPORT_POLICY
) -> Export:
    """`{"messages": […]}`.

    Raises:
        ExportRefusedError: something would be changed, and the policy is strict.
    """
    writing = Writing(NAME, CAPABILITIES, policy)
    messages: list[JsonValue] = []
    for step in steps(writing, conversation):
        if isinstance(step, Answers):
            messages.append(_write_answers(writing, step))
            messages.extend(_write_result(writing, answered) for answered in step.answered)
        elif said := _write_said(writing, step):
            messages.append(said)
    return writing.export({"messages": messages})


def is_result(item: JsonObject) -> bool:
    """Whether a message brings the result of a tool."""
    return item.get("role") in {"tool", "function"}


def _write_said(writing: Writing, step: Said) -> JsonObject | None:
    """The message; None for one of the assistant in which nothing is said."""
    message, where = step.message, step.where
    if message.role == "assistant":
        native = _assistant(writing, message, message.blocks, where)
        if native["content"] or native.get("refusal"):
            return native
        writing.note("message_empty", where, "nothing is said in it; left out")
        return None
    content: JsonValue
    has_media = any(isinstance(one, MediaBlock) for one in message.blocks)
    if len(message.blocks) > 1 or (message.role == "user" and has_media):
        is_user = message.role == "user"
        # A list without parts is refused; a text without characters is not.
        content = list(_parts(writing, message.blocks, where, is_user=is_user)) or ""
    else:
        content = _text(writing, message.blocks, where)
    return {"role": message.role, "content": content}


def _write_answers(writing: Writing, step: Answers) -> JsonObject:
    said: list[MessageBlock] = []
    calls: list[JsonValue] = []
    for block in step.blocks():
        if isinstance(block, Answered):
            calls.append(_write_call(writing, step.message, block))
            continue
        said.append(block)
        if calls and isinstance(block, TextBlock):
            writing.note("order_changed", step.where, "text behind a call stands before it")
    native = _assistant(writing, step.message, said, step.where)
    return {**native, "content": native["content"] or None, "tool_calls": calls}


def _write_call(writing: Writing, message: Message, answered: Answered) -> JsonObject:
    call, where = answered.call, answered.where
    arguments = writing.arguments_text(call, where)
    if call.namespace is not None:
        writing.note("provider_data_dropped", where, f"namespace {call.namespace}")
    native: JsonObject = {
        "id": answered.wire_id,
        "type": "function",
        "function": {"name": answered.wire_name, "arguments": arguments},
    }
    if call.kind == "custom":
        native["type"] = "custom"
        native["custom"] = {"name": answered.wire_name, "input": arguments}
        del native["function"]
    return {**writing.extras(message, call.extras, where), **native}


def _write_result(writing: Writing, answered: Answered) -> JsonObject:
    return {
        "role": "tool",
        "tool_call_id": answered.wire_id,
        "content": writing.result_text(answered.result, answered.where),
    }


def _assistant(
    writing: Writing, message: Message, blocks: Sequence[MessageBlock], where: str
) -> JsonObject:
    native: JsonObject = {"role": "assistant", "content": None}
    members: dict[str, list[str]] = {}
    spoken: list[MessageBlock] = []
    for block in blocks:
        if isinstance(block, ReasoningBlock):
            if member := _reasoning_member(writing, message, block, where):
                members.setdefault(member, []).append(block.text)
        elif isinstance(block, TextBlock) and block.is_refusal:
            writing.note_extras(block, where)
            members.setdefault("refusal", []).append(writing.clean.text(block.text, where))
        else:
            spoken.append(block)
    for name, texts in members.items():
        native[name] = writing.joined(texts, where)
    native.update(writing.message_extras(message, where))
    native["content"] = _text(writing, spoken, where)
    return native


def _reasoning_member(
    writing: Writing, message: Message, block: ReasoningBlock, where: str
) -> str | None:
    """The member in which reasoning goes back to who said it; None where it does not."""
    member = block.extras.get("member")
    if isinstance(member, str) and writing.replays(message):
        return member
    writing.dropped_block(block, where)
    return None


def _text(writing: Writing, blocks: Sequence[MessageBlock], where: str) -> str:
    texts: list[str] = []
    for block in blocks:
        if isinstance(block, TextBlock):
            texts.append(writing.clean.text(block.text, where))
            writing.note_text(block, where)
        elif isinstance(block, ProviderBlock):
            writing.dropped_block(block, where)
        else:
            writing.note("block_described", where, describe_block(block))
            texts.append(describe_block(block))
    return writing.joined(texts, where)


def _parts(
    writing: Writing, blocks: Sequence[MessageBlock], where: str, *, is_user: bool
) -> Iterator[JsonValue]:
    for block in blocks:
        part = _media(block) if is_user and isinstance(block, MediaBlock) else None
        if part is not None:
            yield part
        elif text := _text(writing, [block], where):
            yield {"type": "text", "text": text}


def _media(block: MediaBlock) -> JsonObject | None:
    """The part of a block; None when the format has none for it."""
    if block.data is not None and not has_bytes(block):
        return None
    uri = uri_of_media(block)
    match block.kind:
        case "image" if uri is not None:
            return {"type": "image_url", "image_url": {"url": uri}}
        case "audio" if block.data is not None and block.media_type in _AUDIO:
            audio: JsonObject = {"data": block.data, "format": _AUDIO[block.media_type]}
            return {"type": "input_audio", "input_audio": audio}
        case "document" if block.data is not None:
            file: JsonObject = {"file_data": uri}
            return {"type": "file", "file": {"filename": block.name or "document", **file}}
        case "document" if block.uri is not None and block.uri.startswith("file:"):
            return {"type": "file", "file": {"file_id": block.uri.removeprefix("file:")}}
        case _:
            return None
