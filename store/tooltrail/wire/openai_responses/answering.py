"""A call and its output as two items.

Calls of the tools that OpenAI made go back as the items that they came in, where they came in this
format and the items can be made of them; else they are function calls, as those of other providers'
own tools are.
"""

from collections.abc import Callable, Mapping

from pydantic import JsonValue

from tooltrail.records import ContentBlock, MediaBlock, ProviderBlock, ResultBlock, TextBlock
from tooltrail.wire._steps import Answered
from tooltrail.wire._writing import Writing
from tooltrail.wire.members import JsonObject, object_in, objects_in
from tooltrail.wire.openai_responses.calls import ACTIONS, BUILTIN_MEMBERS
from tooltrail.wire.openai_responses.outputs import local_shell_output, read_output
from tooltrail.wire.openai_responses.parts import cleaned, write_part

Pair = tuple[JsonObject, JsonObject]
"""The item of a call and that of its output."""

_REQUIRED: Mapping[str, frozenset[str]] = {
    "local_shell_call": frozenset({"id"}),
    "computer_call": frozenset({"id", "pending_safety_checks"}),
}
"""What an item must have besides the action."""

_ENTRY = {"stdout", "stderr", "outcome"}

_NOT_TAKEN = {"created_by", "status"}
"""Members that the provider sends with a call and refuses in a request: with any status but
`completed`, it refuses the whole history."""

_ID_PREFIXES = {"function_call": "fc", "custom_tool_call": "ctc"}
"""What the id of an item begins with; the provider refuses others, and does without any."""


def write_answered(writing: Writing, answered: Answered, *, replays: bool) -> Pair:
    """The item of a call and that of its output."""
    if replays and (pair := _write_builtin(writing, answered)):
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
    whole = writing.with_extras(output, extras, answered.where, replays=replays)
    return _with_besides(writing, answered, head, kind, replays=replays), whole


def _with_besides(
    writing: Writing, answered: Answered, head: JsonObject, kind: str, *, replays: bool
) -> JsonObject:
    """A call with what it says besides: its namespace, and what its provider said of it."""
    call, where = answered.call, answered.where
    if writing.has_server_field(call, replays=replays):
        head["namespace"] = call.namespace
    if call.kind in {"builtin", "mcp"}:
        writing.note("provider_data_dropped", where, f"a {call.kind} call is a function call here")
        # What was said of it is said of an item of another type.
        replays = False
    taken = {name: call.extras[name] for name in call.extras if name not in _NOT_TAKEN}
    if not str(taken.get("id", "")).startswith(_ID_PREFIXES[kind]):
        taken.pop("id", None)
    if replays:
        writing.note_dropped(call.extras.keys() - taken.keys(), where)
    extras = taken if replays else call.extras
    return writing.with_extras(head, extras, where, replays=replays)


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
    if isinstance(block, TextBlock):
        writing.note_refusal(block, where)
    if isinstance(block, TextBlock | MediaBlock | ProviderBlock):
        part = write_part(writing, block, where, replays=replays)
        if part is not None:
            return part
    text = writing.clean.text(writing.described(block, where), where)
    writing.note_extras(block, where)
    return {"type": "input_text", "text": text}


def _write_builtin(writing: Writing, answered: Answered) -> Pair | None:
    """The items of a call of this format's own tools; None where it has no such items."""
    kind = f"{answered.call.tool_name}_call"
    call = _write_call(writing, answered, kind)
    if call is None:
        return None
    output = _OUTPUTS[kind](writing, answered)
    if output is None:
        return None
    if (namespace := answered.call.namespace) is not None:
        writing.note("provider_data_dropped", answered.where, f"namespace {namespace[:60]!a}")
    return call, output


def _write_call(writing: Writing, answered: Answered, kind: str) -> JsonObject | None:
    call, member = answered.call, BUILTIN_MEMBERS.get(kind)
    if call.kind != "builtin" or member is None or call.parse_error or answered.wire_id is None:
        return None
    action = call.arguments
    if not isinstance(action, dict) or not _REQUIRED.get(kind, frozenset()) <= call.extras.keys():
        return None
    if kind == "computer_call" and action.keys() == {ACTIONS}:
        members: JsonObject = {**action}
    else:
        members = {member: action}
    native: JsonObject = {**call.extras, **members, "status": "completed"}
    # A call that goes back with any other status makes the whole history refused.
    unsaid = [name for name in ("created_by", "status") if call.extras.get(name) is not None]
    native.pop("created_by", None)
    if unsaid:
        writing.note("provider_data_dropped", answered.where, ", ".join(unsaid))
    return {
        **cleaned(writing, native, answered.where),
        "type": kind,
        "call_id": answered.wire_id,
    }


def _extras(writing: Writing, answered: Answered) -> JsonObject:
    return cleaned(writing, answered.result.extras, answered.where)


def _shell_output(writing: Writing, answered: Answered) -> JsonObject:
    """How each command ended, if it is known; else one entry that has the text."""
    result, where = answered.result, answered.where
    native: JsonObject = {"type": "shell_call_output", "call_id": answered.wire_id}
    limit = object_in(answered.call.arguments).get("max_output_length")
    if isinstance(limit, int):
        native["max_output_length"] = limit
    native.update(_extras(writing, answered))
    if _has_entries(result):
        return {**native, "output": writing.clean.value(result.structured, where)}
    outcome: JsonObject = {"type": "exit", "exit_code": 1 if result.is_error else 0}
    if result.status == "timeout":
        outcome = {"type": "timeout"}
    elif result.is_error and result.status != "error":
        writing.note("status_flattened", where, f"{result.status} is an error here")
    text = _plain_text(writing, result, where)
    return {**native, "output": [{"stdout": text, "stderr": "", "outcome": outcome}]}


def _has_entries(result: ResultBlock) -> bool:
    """Whether the structured value is what the shell gave, and says the same as the text."""
    if not result.has_structured or not isinstance(result.structured, list):
        return False
    if not all(entry.keys() == _ENTRY for entry in objects_in(result.structured)):
        return False
    native: JsonObject = {"type": "shell_call_output", "output": result.structured}
    again = read_output(native, {})
    return (again.status, again.content) == (result.status, result.content)


def _plain_text(writing: Writing, result: ResultBlock, where: str) -> str:
    """The text of a result that says in another way whether it failed."""
    if result.status not in {"ok", "error"}:
        result = result.model_copy(update={"status": "error" if result.is_error else "ok"})
    if not result.content and not result.has_structured:
        return ""
    return writing.result_text(result, where, prefix=False)


def _patch_output(writing: Writing, answered: Answered) -> JsonObject:
    result, where = answered.result, answered.where
    if result.is_error and result.status != "error":
        writing.note("status_flattened", where, f"{result.status} is a failure here")
    native: JsonObject = {
        "type": "apply_patch_call_output",
        "call_id": answered.wire_id,
        **_extras(writing, answered),
        "status": "failed" if result.is_error else "completed",
    }
    if text := _plain_text(writing, result, where):
        native["output"] = text
    return native


def _local_shell_output(writing: Writing, answered: Answered) -> JsonObject:
    text = writing.result_text(answered.result, answered.where)
    return {
        **_extras(writing, answered),
        "type": "local_shell_call_output",
        "id": answered.wire_id,
        "output": local_shell_output(text),
    }


def _screenshot(writing: Writing, answered: Answered) -> JsonObject | None:
    """A computer answers with a picture of its screen, and with nothing else."""
    result, where = answered.result, answered.where
    block = result.content[0] if len(result.content) == 1 else None
    if not isinstance(block, MediaBlock) or result.is_error or result.has_structured:
        return None
    part = write_part(writing, block, where, replays=True)
    if block.kind != "image" or part is None:
        return None
    shot: JsonObject = {name: part[name] for name in ("image_url", "file_id") if name in part}
    return {
        "type": "computer_call_output",
        "call_id": answered.wire_id,
        **_extras(writing, answered),
        "output": {"type": "computer_screenshot", **shot},
    }


def _found_tools(writing: Writing, answered: Answered) -> JsonObject | None:
    result = answered.result
    tools = result.structured
    if not isinstance(tools, list) or len(objects_in(tools)) < len(tools) or result.content:
        return None
    if result.is_error:
        return None
    found: list[JsonValue] = [cleaned(writing, tool, answered.where) for tool in objects_in(tools)]
    return {
        "type": "tool_search_output",
        "call_id": answered.wire_id,
        "status": "completed",
        **_extras(writing, answered),
        "execution": "client",
        "tools": found,
    }


_OUTPUTS: Mapping[str, Callable[[Writing, Answered], JsonObject | None]] = {
    "local_shell_call": _local_shell_output,
    "shell_call": _shell_output,
    "apply_patch_call": _patch_output,
    "computer_call": _screenshot,
    "tool_search_call": _found_tools,
}
