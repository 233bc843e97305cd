"""Writes the canonical conversation as the input of an OpenAI Responses request.

The items of one turn keep their order, and all outputs follow in the order of the calls; the
strictest servers require this. Ids of items, reasoning and calls that the provider ran are written
only for that provider; without its id a message of the assistant is plain text. Calls of OpenAI's
own tools become function calls if their own items cannot be written.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

from tooltrail.records import (
    Conversation,
    MediaBlock,
    MessageBlock,
    ProviderBlock,
    ReasoningBlock,
    TextBlock,
)
from tooltrail.wire._steps import Answered, Step, steps
from tooltrail.wire._writing import Writing
from tooltrail.wire.members import JsonObject, list_in, object_in, text_in
from tooltrail.wire.openai_responses.asking import FROM_INSTRUCTIONS
from tooltrail.wire.openai_responses.calls import HOSTED
from tooltrail.wire.openai_responses.outputs import (
    NOT_TAKEN,
    OUTPUT_TYPES,
    write_builtin,
    write_output,
)
from tooltrail.wire.openai_responses.parts import write_part
from tooltrail.wire.openai_responses.reading import ITEM, thoughts_in

_NAMES_ANOTHER = frozenset({"item_reference", "local_shell_call_output"})
"""The types of items whose `id` is the id of another item."""

_STEM_LENGTH = 56
"""Number of characters of an id that are kept before a number; the limit of an id is 64."""

_ID_PREFIXES = {"function_call": "fc", "custom_tool_call": "ctc"}
"""The required prefixes of item ids; the provider refuses other ids, but accepts a missing one."""


def write_history(writing: Writing, conversation: Conversation) -> JsonObject:
    """Write `{"input": […]}`.

    System messages are items of the input, except instructions, which are written as
    `instructions`.
    """
    instructions: JsonObject = {}
    items: list[JsonObject] = []
    follows_turn = False
    for step in steps(writing, conversation):
        is_turn = step.message.role == "assistant"
        writing.note_message_extras(step.message, step.where)
        origin, is_first = step.message.origin, not (items or instructions)
        if is_first and origin is not None and origin.extras == FROM_INSTRUCTIONS:
            instructions["instructions"] = writing.content_text(step.message.blocks, step.where)
            continue
        written = _write_turn(writing, step) if is_turn else [*_write_said(writing, step)]
        if not written:
            writing.note_empty(step.where)
            continue
        if is_turn and follows_turn:
            note = "nothing tells the items of this turn from those of the one before"
            writing.note("order_changed", step.where, note)
        follows_turn = is_turn and not step.answered
        items.extend(written)
    return {**instructions, "input": [*_with_ids_of_their_own(writing, items)]}


def _with_ids_of_their_own(writing: Writing, items: list[JsonObject]) -> Iterator[JsonObject]:
    """The items with unique ids: a session may contain the same answer twice."""
    used: set[str] = set()
    for item in items:
        own = item.get("id")
        if isinstance(own, str) and text_in(item.get("type")) not in _NAMES_ANOTHER:
            stem, numbers = own[:_STEM_LENGTH], count(2)
            while own in used:
                own = f"{stem}_{next(numbers)}"
            if own != item["id"]:
                writing.note("id_renamed", "input", f"the item {stem!a} is {own!a} here")
            used.add(own)
        yield item if own == item.get("id") else {**item, "id": own}


def is_result(item: JsonObject) -> bool:
    """Whether an item is the output of a tool."""
    return item.get("type") in OUTPUT_TYPES


def _write_said(writing: Writing, step: Step) -> Iterator[JsonObject]:
    """Write a message of the user, the system or the developer."""
    message, parts = step.message, list[JsonObject]()
    for block in message.blocks:
        about, own = _item_of(block)
        if about:
            note = "what its item said beside the content"
            writing.note("provider_data_dropped", step.where, note)
        is_shown = not isinstance(own, MediaBlock) or message.role == "user"
        replays = writing.replays(message)
        part = write_part(writing, own, step.where, replays=replays) if is_shown else None
        if part is None and isinstance(own, ProviderBlock | ReasoningBlock):
            writing.dropped_block(own, step.where)
        else:
            parts.append(
                part or {"type": "input_text", "text": writing.block_text(own, step.where)}
            )
        if isinstance(own, ProviderBlock):
            writing.note_extras(own, step.where)
    if len(parts) == 1 and parts[0].keys() == {"type", "text"}:
        yield {"role": message.role, "content": parts[0]["text"]}
    elif parts:
        yield {"role": message.role, "content": [*parts]}


def _item_of(block: MessageBlock) -> tuple[JsonObject, MessageBlock]:
    """The other members of a block's item, and the block without them."""
    about = block.extras.get(ITEM)
    if not isinstance(about, dict):
        return {}, block
    extras = {name: value for name, value in block.extras.items() if name != ITEM}
    return about, block.model_copy(update={"extras": extras})


def _write_turn(writing: Writing, step: Step) -> list[JsonObject]:
    """Write a turn of the assistant as items, then all outputs in the order of the calls."""
    turn = _Turn(writing, step.where, replays=writing.replays(step.message))
    outputs: list[JsonObject] = []
    for block in step.blocks():
        if isinstance(block, Answered):
            call, output = _write_answered(writing, block, replays=turn.replays)
            turn.add(call)
            outputs.append(output)
        else:
            turn.take(block)
    return [*turn.items, *outputs]


def _write_answered(
    writing: Writing, answered: Answered, *, replays: bool
) -> tuple[JsonObject, JsonObject]:
    """Write a call and its output as one item each."""
    if replays and (pair := write_builtin(writing, answered)):
        return pair
    call, result, where = answered.call, answered.result, answered.where
    kind = "custom_tool_call" if call.kind == "custom" else "function_call"
    head: JsonObject = {"type": kind, "call_id": answered.wire_id, "name": answered.wire_name}
    head["input" if call.kind == "custom" else "arguments"] = writing.arguments_text(call, where)
    is_own = replays or writing.replays(answered.source)
    output: JsonObject = {
        "type": f"{kind}_output",
        "call_id": answered.wire_id,
        "output": write_output(writing, result, where, replays=is_own),
    }
    native = writing.with_extras(output, result.extras, where, replays=is_own)
    if writing.has_server_field(call, replays=replays):
        head["namespace"] = call.namespace
    if call.kind in {"builtin", "mcp"}:
        writing.note("provider_data_dropped", where, f"a {call.kind} call is a function call here")
        # The extras belong to an item of another type.
        replays = False
    is_own = str(call.extras.get("id", "")).startswith(_ID_PREFIXES[kind])
    refused = NOT_TAKEN if is_own else NOT_TAKEN | {"id"}
    return writing.with_extras(head, call.extras, where, replays=replays, known=refused), native


@dataclass(slots=True)
class _Turn:
    """The items written so far for one message of the assistant.

    Attributes:
        items: the items; the last one may get more parts.
        about: the other members of the last item if it may get more parts; else None.
    """

    writing: Writing
    where: str
    replays: bool
    items: list[JsonObject] = field(default_factory=list[JsonObject])
    about: JsonObject | None = None

    def add(self, item: JsonObject) -> None:
        """Add a complete item."""
        self.items.append(item)
        self.about = None

    def take(self, block: MessageBlock) -> None:
        """Write one block that is not a call."""
        about, own = _item_of(block)
        if isinstance(own, TextBlock):
            self._take_text(own, about)
        elif isinstance(own, ProviderBlock):
            # This extra distinguishes a part of a message from an item.
            self._take_provided(own, about, is_part=ITEM in block.extras)
        elif isinstance(own, ReasoningBlock):
            self._take_reasoning(own)
        else:
            text = self.writing.block_text(own, self.where)
            self.add({"role": "assistant", "content": text})

    def _take_text(self, block: TextBlock, about: JsonObject) -> None:
        text, extras = self.writing.clean.text(block.text, self.where), block.extras
        if self.replays and text_in(about.get("id")):
            name = "refusal" if block.is_refusal else "text"
            kind = "refusal" if block.is_refusal else "output_text"
            part = self.writing.with_extras({"type": kind, name: text}, extras, self.where)
            self._collect(about, part if block.is_refusal else {"annotations": [], **part})
            return
        self.writing.note_refusal(block, self.where)
        is_phased = self.replays and about.keys() == {"phase"}
        self.writing.note_dropped(
            [*extras, *([ITEM] if about and not is_phased else [])], self.where
        )
        self.add({"role": "assistant", "content": text, **(about if is_phased else {})})

    def _collect(self, about: JsonObject, part: JsonObject) -> None:
        """Add a part to the last item if that has these other members; else to a new item."""
        if self.about != about:
            native: JsonObject = {"type": "message", "role": "assistant", "status": "completed"}
            self.add({**native, **about, "content": []})
            self.about = about
        list_in(self.items[-1]["content"]).append(part)

    def _take_provided(self, block: ProviderBlock, about: JsonObject, *, is_part: bool) -> None:
        native = object_in(block.native)
        is_hosted = text_in(native.get("type")) in HOSTED
        lacks_id = is_hosted and not native.get("id")  # such as Codex keeps them
        if not (self.replays and native) or lacks_id:
            self.about = None
            self.writing.dropped_block(block, self.where)
            return
        self.writing.note_extras(block, self.where)
        if text_in(about.get("id")):
            self._collect(about, native)
        else:
            self.add({"role": "assistant", "content": [native], **about} if is_part else native)

    def _take_reasoning(self, block: ReasoningBlock) -> None:
        self.about = None
        # With or without an id, the item is written unchanged.
        if self.replays and isinstance(block.extras.get("summary"), list):
            self.writing.note_thoughts(block, thoughts_in(block.extras), self.where)
            self.add({"type": "reasoning", **block.extras})
        else:
            self.writing.dropped_block(block, self.where)
