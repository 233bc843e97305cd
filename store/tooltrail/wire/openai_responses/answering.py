"""A call and its output as two items."""

from pydantic import JsonValue

from tooltrail.records import ContentBlock, MediaBlock, ProviderBlock, ResultBlock, TextBlock
from tooltrail.wire._steps import Answered
from tooltrail.wire._writing import Writing
from tooltrail.wire.members import JsonObject
from tooltrail.wire.openai_responses.builtin import Pair, write_builtin
from tooltrail.wire.openai_responses.limits import CAPABILITIES
from tooltrail.wire.openai_responses.parts import with_extras, write_part

_NOT_TAKEN = {"created_by", "status"}
"""What the provider says of a call and does not take back: that it is completed is not kept, and
with any other status the whole history is refused. What was cut off has its result here."""

_ID_PREFIXES = {"function_call": "fc", "custom_tool_call": "ctc"}
"""What the id of an item begins with; the provider refuses others, and does without any."""


def write_answered(writing: Writing, answered: Answered, *, replays: bool) -> Pair:
    """The item of a call and that of its output."""
    if replays and (pair := write_builtin(writing, answered)):
        return pair
    kind = "custom_tool_call" if answered.call.kind == "custom" else "function_call"
    head: JsonObject = {"type": kind, "call_id": answered.wire_id, "name": answered.wire_name}
    arguments = writing.arguments_text(answered.call, answered.where)
    head["input" if kind == "custom_tool_call" else "arguments"] = arguments
    output: JsonObject = {
        "type": f"{kind}_output",
        "call_id": answered.wire_id,
        "output": _output(writing, answered.result, answered.where, replays=replays),
    }
    extras = answered.result.extras
    whole = with_extras(writing, output, extras, answered.where, replays=replays)
    return _with_besides(writing, answered, head, kind, replays=replays), whole


def _with_besides(
    writing: Writing, answered: Answered, head: JsonObject, kind: str, *, replays: bool
) -> JsonObject:
    """A call with what it says besides: its namespace, and what its provider said of it."""
    call, where = answered.call, answered.where
    if call.kind in {"builtin", "mcp"}:
        writing.note("provider_data_dropped", where, f"a {call.kind} call is a function call here")
        # What was said of it is said of an item of another type.
        replays = False
    if call.namespace is not None:
        if call.kind != "mcp" and CAPABILITIES.tool_name.fullmatch(call.namespace):
            head["namespace"] = call.namespace
        else:
            writing.note("provider_data_dropped", where, f"namespace {call.namespace[:60]!a}")
    taken = {name: call.extras[name] for name in call.extras if name not in _NOT_TAKEN}
    if not str(taken.get("id", "")).startswith(_ID_PREFIXES[kind]):
        taken.pop("id", None)
    if replays:
        writing.note_dropped(call.extras.keys() - taken.keys(), where)
    extras = taken if replays else call.extras
    return with_extras(writing, head, extras, where, replays=replays)


def _output(writing: Writing, result: ResultBlock, where: str, *, replays: bool) -> JsonValue:
    """The text of a result, or its parts where one text is not all of it."""
    is_plain = all(isinstance(block, TextBlock) and not block.extras for block in result.content)
    if len(result.content) < 2 and is_plain:
        return writing.result_text(result, where)
    blocks: list[ContentBlock] = [*result.content]
    parts: list[JsonValue] = []
    if result.is_error:
        # The text that says so is in front of everything.
        first = blocks.pop(0) if isinstance(blocks[0], TextBlock) else TextBlock(text="")
        plain = first.model_copy(update={"extras": {}})
        shown = result.model_copy(update={"content": (plain,), "has_structured": False})
        prefixed = writing.result_text(shown, where)
        blocks.insert(0, TextBlock(text=prefixed, extras=first.extras))
    elif isinstance(blocks[0], TextBlock):
        writing.prefixed(blocks[0].text, result, where)
    if result.has_structured:
        writing.note("structured_dropped", where, "the structured shown beside the content")
    parts.extend(_part(writing, block, where, replays=replays) for block in blocks)
    return parts


def _part(writing: Writing, block: ContentBlock, where: str, *, replays: bool) -> JsonObject:
    if isinstance(block, TextBlock) and block.is_refusal:
        writing.note("block_described", where, "a refusal is a plain text here")
    if isinstance(block, TextBlock | MediaBlock | ProviderBlock):
        part = write_part(writing, block, where, replays=replays)
        if part is not None:
            return part
    text = writing.clean.text(writing.described(block, where), where)
    writing.note_extras(block, where)
    return {"type": "input_text", "text": text}
