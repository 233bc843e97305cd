"""The canonical conversation as the input of a Responses request.

All items of an answer stand in their order, then all outputs in that of the calls, and nothing in
between: servers that pair by neighbourhood take that as well as those that pair by id. The id of an
item goes back to the provider that gave it alone; a foreign one is refused by its beginning.
"""

from collections.abc import Iterator

from pydantic import JsonValue

from tooltrail.records import (
    ContentBlock,
    Conversation,
    MediaBlock,
    Message,
    MessageBlock,
    ProviderBlock,
    ReasoningBlock,
    ResultBlock,
    TextBlock,
)
from tooltrail.wire._descriptions import describe_block
from tooltrail.wire._steps import Answered, Answers, Said, steps
from tooltrail.wire._writing import ERROR_PREFIX, Writing
from tooltrail.wire.exports import DEFAULT_EXPORT_POLICY, Export, ExportPolicy
from tooltrail.wire.media_uris import uri_of_media
from tooltrail.wire.members import JsonObject, object_in
from tooltrail.wire.openai_responses.items import BUILT_IN, OUTPUTS
from tooltrail.wire.openai_responses.limits import CAPABILITIES, NAME

_FILE = "file:"


def write_history(
    conversation: Conversation, policy: ExportPolicy = DEFAULT_EXPORT_POLICY
) -> Export:
    """`{"input": […]}`.

    Raises:
        ExportRefusedError: something would be changed, and the policy is strict.
    """
    writing = Writing(NAME, CAPABILITIES, policy)
    items: list[JsonValue] = []
    for step in steps(writing, conversation):
        if isinstance(step, Answers):
            items.extend(_answer(writing, step.message, step.blocks(), step.where))
            items.extend(_output(writing, step.message, one) for one in step.answered)
        elif step.message.role == "assistant":
            items.extend(_answer(writing, step.message, iter(step.message.blocks), step.where))
        else:
            items.append(_said(writing, step))
    return writing.export({"input": items})


def is_result(item: JsonObject) -> bool:
    """Whether an item is the output of a tool."""
    return item.get("type") in OUTPUTS


def _said(writing: Writing, step: Said) -> JsonObject:
    message, where = step.message, step.where
    if all(isinstance(block, TextBlock) and not block.extras for block in message.blocks):
        texts = [block.text for block in message.blocks if isinstance(block, TextBlock)]
        if len(texts) <= 1:
            return {"role": message.role, "content": writing.clean.text("".join(texts), where)}
    parts: list[JsonValue] = []
    for block in message.blocks:
        parts.extend(_input_part(writing, block, where))
    return {"role": message.role, "content": parts}


def _input_part(writing: Writing, block: MessageBlock, where: str) -> Iterator[JsonValue]:
    match block:
        case TextBlock():
            writing.note_extras(block, where)
            yield {"type": "input_text", "text": writing.clean.text(block.text, where)}
        case MediaBlock() if native := _media(block):
            yield native
        case ProviderBlock() | ReasoningBlock():
            writing.dropped_block(block, where)
        case _:
            writing.note("block_described", where, describe_block(block))
            yield {"type": "input_text", "text": describe_block(block)}


def _media(block: MediaBlock) -> JsonObject | None:
    """The part of a block; None where the format has none for it."""
    uri = uri_of_media(block)
    if uri is None or block.kind == "audio":
        return None
    is_file = block.data is None and uri.startswith(_FILE)
    if block.kind == "image":
        where: JsonObject = {"file_id": uri.removeprefix(_FILE)} if is_file else {"image_url": uri}
        return {"type": "input_image", "detail": "auto", **where}
    if is_file:
        return {"type": "input_file", "file_id": uri.removeprefix(_FILE)}
    if block.data is None:
        return {"type": "input_file", "file_url": uri}
    return {"type": "input_file", "filename": block.name or "document", "file_data": uri}


def _answer(
    writing: Writing, message: Message, blocks: Iterator[MessageBlock | Answered], where: str
) -> Iterator[JsonValue]:
    for block in blocks:
        match block:
            case Answered():
                yield _call(writing, message, block)
            case TextBlock():
                yield _text(writing, message, block, where)
            case ReasoningBlock() if writing.replays(message) and "type" in block.extras:
                yield dict(block.extras)
            case ProviderBlock() if writing.replays(message):
                yield block.native
            case ReasoningBlock() | ProviderBlock():
                writing.dropped_block(block, where)
            case _:
                writing.note("block_described", where, describe_block(block))
                yield {"role": "assistant", "content": describe_block(block)}


def _text(writing: Writing, message: Message, block: TextBlock, where: str) -> JsonObject:
    text = writing.clean.text(block.text, where)
    item = object_in(block.extras.get("item"))
    if not block.is_refusal and not item:
        writing.note_extras(block, where)
        return {"role": "assistant", "content": text}
    if not writing.replays(message):
        writing.note_extras(block, where)
        if block.is_refusal:
            writing.note("block_described", where, "the refusal is a text like any other")
        return {"role": "assistant", "content": text}
    extras = {name: value for name, value in block.extras.items() if name != "item"}
    part: JsonObject = (
        {"type": "refusal", "refusal": text}
        if block.is_refusal
        else {"annotations": [], **extras, "type": "output_text", "text": text}
    )
    return {
        "status": "completed",
        **item,
        "type": "message",
        "role": "assistant",
        "content": [part],
    }


def _is_replayed(writing: Writing, message: Message, answered: Answered) -> bool:
    """Whether a call of a tool that the provider made goes back to it as such."""
    kind = answered.call.extras.get("type")
    if not isinstance(kind, str) or kind not in BUILT_IN or not writing.replays(message):
        return False
    # What a search for tools found is a list of tools, which no text can stand for.
    return kind != "tool_search_call" or "tools" in answered.result.extras


def _call(writing: Writing, message: Message, answered: Answered) -> JsonObject:
    call, where = answered.call, answered.where
    kind = call.extras.get("type")
    if isinstance(kind, str) and _is_replayed(writing, message, answered):
        arguments = writing.clean.value(call.arguments, where)
        return {**call.extras, "call_id": answered.wire_id, BUILT_IN[kind].arguments: arguments}
    native: JsonObject = {
        "type": "function_call",
        "call_id": answered.wire_id,
        "name": answered.wire_name,
    }
    native["arguments"] = writing.arguments_text(call, where)
    if call.kind == "custom":
        native["type"] = "custom_tool_call"
        native["input"] = native.pop("arguments")
    if call.namespace is not None:
        native.update(writing.extras(message, {"namespace": call.namespace}, where))
    if call.kind == "builtin":
        writing.note("provider_data_dropped", where, "a built-in tool is a function here")
        return native
    return {**writing.extras(message, call.extras, where), **native}


def _output(writing: Writing, message: Message, answered: Answered) -> JsonObject:
    call, result, where = answered.call, answered.result, answered.where
    kind = call.extras.get("type")
    if isinstance(kind, str) and _is_replayed(writing, message, answered):
        return _built_in_output(writing, kind, answered)
    native_type = "custom_tool_call_output" if call.kind == "custom" else "function_call_output"
    output: JsonValue
    if any(isinstance(block, MediaBlock) and _media(block) for block in result.content):
        output = list(_output_parts(writing, result, where))
    else:
        output = writing.result_text(result, where)
    return {"type": native_type, "call_id": answered.wire_id, "output": output}


def _output_parts(writing: Writing, result: ResultBlock, where: str) -> Iterator[JsonValue]:
    if result.is_error:
        writing.note("error_as_prefix", where, f"a text {ERROR_PREFIX.strip()!r} stands first")
        yield {"type": "input_text", "text": ERROR_PREFIX.strip()}
    for block in result.content:
        yield from _output_part(writing, block, where)
    if result.has_structured:
        writing.note("structured_dropped", where, "the structured value beside the content")


def _output_part(writing: Writing, block: ContentBlock, where: str) -> Iterator[JsonValue]:
    native = _media(block) if isinstance(block, MediaBlock) else None
    if native is not None:
        yield native
    elif text := writing.content_text((block,), where):
        yield {"type": "input_text", "text": text}


def _built_in_output(writing: Writing, kind: str, answered: Answered) -> JsonObject:
    """The output of a tool that the provider made, in the shape that it asks for."""
    result, where = answered.result, answered.where
    tool, told = BUILT_IN[kind], dict(answered.result.extras)
    if told.get("type") == tool.output:
        return {**told, tool.call_id: answered.wire_id}
    text = writing.result_text(result, where, prefix=False)
    native: JsonObject = {"type": tool.output, tool.call_id: answered.wire_id, "output": text}
    if kind == "shell_call":
        outcome: JsonObject = {"type": "exit", "exit_code": 1 if result.is_error else 0}
        if result.status == "timeout":
            outcome = {"type": "timeout"}
        native["output"] = [{"stdout": text, "stderr": "", "outcome": outcome}]
    elif kind == "apply_patch_call":
        native["status"] = "failed" if result.is_error else "completed"
    return native
