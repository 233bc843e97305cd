"""Writes the canonical conversation as the messages of a request to Ollama.

A message has one text, one list of images and one list of calls in this order, regardless of their
original order. Each result is a separate message after its calls, in the order of the calls,
because older servers pair results by order only; `content` is written even if it is empty.
"""

from collections.abc import Iterable, Sequence

from pydantic import JsonValue

from tooltrail.records import (
    Conversation,
    MediaBlock,
    Message,
    MessageBlock,
    ProviderBlock,
    ReasoningBlock,
)
from tooltrail.wire._steps import Answered, Step, steps
from tooltrail.wire._writing import Writing
from tooltrail.wire.members import JsonObject, object_in
from tooltrail.wire.ollama.reading import MESSAGE, image_of_base64, is_image

_SAFE_INTEGER = 2**53
"""Largest exact integer; the server reads numbers as doubles and may round larger ones."""


def write_history(writing: Writing, conversation: Conversation) -> JsonObject:
    """Write `{"messages": […]}`."""
    messages: list[JsonValue] = []
    for step in steps(writing, conversation):
        if said := _write_said(writing, step):
            messages.append(said)
        messages.extend(_write_result(writing, answered) for answered in step.answered)
    return {"messages": messages}


def _write_said(writing: Writing, step: Step) -> JsonObject | None:
    """Write a message; None for an empty one of the assistant, which asks the model to continue."""
    message, where = step.message, step.where
    match message.blocks:
        # A message of a role that only some models know is written unchanged.
        case (ProviderBlock(native={"role": str()} as native),) if writing.replays(message):
            return object_in(native)
        case _:
            pass
    role = "system" if message.role == "developer" else message.role
    writing.note_role(message.role, role, where)
    said: JsonObject = {"role": role, **_spoken(writing, step)}
    if step.answered:
        said["tool_calls"] = [_write_call(writing, message, one) for one in step.answered]
    if not (said["content"] or len(said) > 2):
        writing.note_empty(where)
        if role == "assistant":
            return None
    return said


def _write_call(writing: Writing, message: Message, answered: Answered) -> JsonObject:
    call, where = answered.call, answered.where
    if call.kind != "function":
        writing.note("provider_data_dropped", where, f"the call is of the kind {call.kind}")
    arguments = writing.arguments_object(call, where)
    if count := sum(1 for _ in _unsafe_integers(arguments)):
        noun = "integer" if count == 1 else "integers"
        note = f"{count:,} {noun} beyond 2**53 here, which the server may round"
        writing.note("number_rounded", where, note)
    native: JsonObject = {} if answered.wire_id is None else {"id": answered.wire_id}
    native["function"] = {"name": answered.wire_name, "arguments": arguments}
    return writing.beside(native, message, call.extras, where)


def _unsafe_integers(value: JsonValue) -> Iterable[int]:
    if isinstance(value, dict):
        for member in value.values():
            yield from _unsafe_integers(member)
    elif isinstance(value, list):
        for item in value:
            yield from _unsafe_integers(item)
    elif isinstance(value, int) and abs(value) > _SAFE_INTEGER:
        yield value


def _write_result(writing: Writing, answered: Answered) -> JsonObject:
    result, where = answered.result, answered.where
    _note_order(writing, result.content, where)
    writing.note_extras(result, where)
    images = [block for block in result.content if is_image(block)]
    others = tuple(block for block in result.content if not is_image(block))
    rest = result.model_copy(update={"content": others})
    has_text = others or rest.has_structured or rest.is_error or not images
    given: JsonObject = {} if answered.wire_id is None else {"tool_call_id": answered.wire_id}
    return {
        "role": "tool",
        "content": writing.result_text(rest, where) if has_text else "",
        **_images(writing, images, where),
        "tool_name": answered.wire_name,
        **given,
    }


def _spoken(writing: Writing, step: Step) -> JsonObject:
    """Write a message without its calls: its content, reasoning and images."""
    message, where, blocks = step.message, step.where, [*step.blocks()]
    _note_order(writing, blocks, where)
    texts: dict[str, list[str]] = {"content": []}
    images: list[MediaBlock] = []
    for block in blocks:
        if isinstance(block, Answered):
            continue
        if isinstance(block, ReasoningBlock) and writing.replays(message):
            writing.note_extras(block, where)
            texts.setdefault("thinking", []).append(writing.clean.text(block.text, where))
        elif isinstance(block, ReasoningBlock | ProviderBlock):
            writing.dropped_block(block, where)
        elif is_image(block):
            images.append(block)
        else:
            texts["content"].append(writing.block_text(block, where))
    native: JsonObject = {name: _joined(writing, said, where) for name, said in texts.items()}
    spoken = {**native, **_images(writing, images, where)}
    return writing.with_message_extras(spoken, message, where, MESSAGE)


def _joined(writing: Writing, texts: list[str], where: str) -> str:
    spoken = [text for text in texts if text]
    if len(spoken) < len(texts):
        writing.note("message_empty", where, "an empty text is left out")
    return writing.joined(spoken, where)


def _images(writing: Writing, blocks: Sequence[MediaBlock], where: str) -> JsonObject:
    images: list[JsonValue] = []
    for block in blocks:
        image = image_of_base64(block.data or "")
        if image != block:
            members = ("media_type", "uri", "name", "extras")
            lost = [name for name in members if getattr(block, name) != getattr(image, name)]
            writing.note("provider_data_dropped", where, f"of an image: {', '.join(lost)}")
        images.append(block.data)
    return {"images": images} if images else {}


def _note_order(writing: Writing, blocks: Iterable[MessageBlock | Answered], where: str) -> None:
    places = list(map(_place, blocks))
    if places != sorted(places):
        writing.note("order_changed", where, "the text stands before images, these before calls")


def _place(block: MessageBlock | Answered) -> int:
    if isinstance(block, Answered):
        return 3
    return 0 if isinstance(block, ReasoningBlock) else 2 if is_image(block) else 1
