"""Reads and writes the outputs of calls, which are items that the caller sends.

Only the shell and `apply_patch` have a native status. Otherwise a prefix of the text marks a
failure; without the prefix the status is unknown.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress

from pydantic import JsonValue

from tooltrail.records import (
    ContentBlock,
    InvalidRecordError,
    MediaBlock,
    ProviderBlock,
    ResultBlock,
    ResultStatus,
    TextBlock,
    read_json,
)
from tooltrail.wire._reading import result_of_text
from tooltrail.wire._steps import Answered
from tooltrail.wire._writing import Writing
from tooltrail.wire.members import (
    JsonObject,
    are_objects,
    list_in,
    object_in,
    objects_in,
    others,
    raw_arguments,
    spelled,
    text_in,
)
from tooltrail.wire.openai_responses.calls import ACTIONS, BUILTINS, other_members
from tooltrail.wire.openai_responses.parts import read_part, write_part

NOT_TAKEN = frozenset({"created_by", "status"})
"""Members that the provider sends with a call but refuses in a request: with any status other than
`completed`, it refuses the complete history."""

_ENTRY = {"stdout", "stderr", "outcome"}


def read_output(item: JsonObject, local_shells: Mapping[str | None, str | None]) -> ResultBlock:
    """Read the result in an item of `OUTPUT_TYPES`.

    The output of a local shell may name its call by the id of the call's item; `local_shells` maps
    each such id to the `call_id`.
    """
    kind = str(item.get("type"))
    read, known = _READERS[kind]
    call_id = text_in(item.get("call_id"))
    if kind == "local_shell_call_output":
        named = text_in(item.get("id"))
        call_id = local_shells.get(named) or named
    update = {"call_id": call_id, "extras": other_members(item, *known)}
    return read(item).model_copy(update=update)


def _read_function(item: JsonObject) -> ResultBlock:
    output = item.get("output")
    content = _texts(output)
    if isinstance(output, list):
        content = tuple(map(read_part, output))
    elif not isinstance(output, str | None):
        content = (ProviderBlock(native=output),)
    return result_of_text(None, text_in(item.get("name")), content)


def _texts(output: JsonValue) -> tuple[ContentBlock, ...]:
    """The text of an output as content; no content if it is empty or not a text."""
    return (TextBlock(text=output),) if isinstance(output, str) and output else ()


def write_output(writing: Writing, result: ResultBlock, where: str, *, replays: bool) -> JsonValue:
    """Write a result as one text, or as parts if it contains more than a plain text."""
    is_plain = all(isinstance(block, TextBlock) and not block.extras for block in result.content)
    if len(result.content) < 2 and is_plain:
        return writing.result_text(result, where)
    writing.note_status(result, where)
    # The text with the prefix of a failure comes first.
    blocks = [*result.content]
    first = blocks[0]
    if isinstance(first, TextBlock):
        text = writing.prefixed(first.text, result, where)
        blocks[0] = first.model_copy(update={"text": text})
    elif text := writing.prefixed("", result, where):
        blocks.insert(0, TextBlock(text=text))
    if result.has_structured:
        writing.note("structured_dropped", where, "the structured shown beside the content")
    return [
        write_part(writing, block, where, replays=replays)
        or {"type": "input_text", "text": writing.block_text(block, where)}
        for block in blocks
    ]


def write_builtin(writing: Writing, answered: Answered) -> tuple[JsonObject, JsonObject] | None:
    """Write a call of a provider-defined tool and its output as items; None if not possible."""
    call, where = answered.call, answered.where
    kind, action = f"{call.tool_name}_call", call.arguments
    is_known = call.kind == "builtin" and kind in _WRITERS and answered.wire_id is not None
    if not is_known or call.parse_error or not isinstance(action, dict):
        return None
    members = _WRITERS[kind](writing, answered)
    if members is None:
        return None
    is_list = kind == "computer_call" and action.keys() == {ACTIONS}
    native: JsonObject = {"type": kind, "call_id": answered.wire_id, "status": "completed"}
    native |= action if is_list else {BUILTINS[kind]: action}
    if call.namespace is not None:
        writing.note("provider_data_dropped", where, f"namespace {call.namespace[:60]!a}")
    id_member = "id" if kind == "local_shell_call" else "call_id"
    output: JsonObject = {"type": f"{kind}_output", id_member: answered.wire_id, **members}
    asked = writing.with_extras(native, call.extras, where, known=NOT_TAKEN)
    return asked, {**answered.result.extras, **output}


def _read_shell(item: JsonObject) -> ResultBlock:
    """Read the text that all commands wrote; the structured value has each command's outcome."""
    entries = objects_in(item.get("output"))
    pieces = [entry.get(name) for entry in entries for name in ("stdout", "stderr")]
    return ResultBlock(
        status=_shell_status(entries),
        content=_texts("\n".join(one for one in pieces if isinstance(one, str) and one)),
        structured=item.get("output"),
        has_structured=True,
    )


def _shell_status(entries: list[JsonObject]) -> ResultStatus:
    outcomes = [object_in(entry.get("outcome")) for entry in entries]
    if any(outcome.get("type") == "timeout" for outcome in outcomes):
        return "timeout"
    codes = [outcome.get("exit_code") for outcome in outcomes]
    if not codes or any(not isinstance(code, int) for code in codes):
        return "unknown"
    return "error" if any(codes) else "ok"


def _write_shell(writing: Writing, answered: Answered) -> JsonObject:
    """Write the entry of each command if they are known; else one entry with the text."""
    result, where = answered.result, answered.where
    limit = object_in(answered.call.arguments).get("max_output_length")
    native: JsonObject = {"max_output_length": limit} if isinstance(limit, int) else {}
    if _has_entries(result):
        return {**native, "output": result.structured}
    outcome: JsonObject = {"type": "timeout"}
    if result.status != "timeout":
        writing.note_status(result, where)
        outcome = {"type": "exit", "exit_code": int(result.is_error)}
    text = _plain_text(writing, result, where)
    return {**native, "output": [{"stdout": text, "stderr": "", "outcome": outcome}]}


def _has_entries(result: ResultBlock) -> bool:
    """Whether the structured value is the output of a shell and matches the status and text."""
    entries = list_in(result.structured)
    if entries != result.structured or any(object_in(one).keys() != _ENTRY for one in entries):
        return False
    again = _read_shell({"output": result.structured})
    return (again.status, again.content) == (result.status, result.content)


def _plain_text(writing: Writing, result: ResultBlock, where: str) -> str:
    """The text of a result, without a prefix, for items that have a native status."""
    if not result.content and not result.has_structured:
        return ""
    return writing.result_text(result, where, prefix=False, has_status=True)


def _read_patch(item: JsonObject) -> ResultBlock:
    known: dict[str, ResultStatus] = {"completed": "ok", "failed": "error"}
    status = known.get(str(item.get("status")), "unknown")
    return ResultBlock(status=status, content=_texts(item.get("output")))


def _write_patch(writing: Writing, answered: Answered) -> JsonObject:
    result, where = answered.result, answered.where
    writing.note_status(result, where)
    native: JsonObject = {"status": "failed" if result.is_error else "completed"}
    text = _plain_text(writing, result, where)
    return {**native, "output": text} if text else native


def _read_local_shell(item: JsonObject) -> ResultBlock:
    """Read the output of a local shell, which is JSON; a sole member `stdout` becomes the text."""
    text = raw_arguments(item.get("output"))
    with suppress(InvalidRecordError):
        value = object_in(read_json(text))
        if value.keys() == {"stdout"} and isinstance(value["stdout"], str):
            text = value["stdout"]
    return result_of_text(None, None, _texts(text))


def _write_local_shell(writing: Writing, answered: Answered) -> JsonObject:
    return {"output": spelled({"stdout": writing.result_text(answered.result, answered.where)})}


def _read_screenshot(item: JsonObject) -> ResultBlock:
    block = read_part({**object_in(item.get("output")), "type": "input_image"})
    if not isinstance(block, MediaBlock):
        block = ProviderBlock(native=item.get("output"))
    return ResultBlock(status="unknown", content=(block,))


def _write_screenshot(writing: Writing, answered: Answered) -> JsonObject | None:
    """Write the screenshot of a computer call; None for any other content."""
    result = answered.result
    match result.content:
        case (MediaBlock(kind="image") as image,) if not (result.has_structured or result.is_error):
            part = write_part(writing, image, answered.where, replays=True)
            place = others(part or {}, frozenset({"type", "detail"}))
            return {"output": {"type": "computer_screenshot", **place}} if part else None
        case _:
            return None


def _read_found_tools(item: JsonObject) -> ResultBlock:
    return ResultBlock(structured=item.get("tools"), has_structured=True)


def _write_found_tools(_: Writing, answered: Answered) -> JsonObject | None:
    result = answered.result
    is_found = isinstance(result.structured, list) and are_objects(result.structured)
    if result.content or result.is_error or not is_found:
        return None
    status = result.extras.get("status", "completed")
    found: JsonObject = {"execution": "client", "status": status, "tools": result.structured}
    return {"type": "tool_search_output", **found}


_READERS: Mapping[str, tuple[Callable[[JsonObject], ResultBlock], tuple[str, ...]]] = {
    "function_call_output": (_read_function, ("name", "output")),
    "custom_tool_call_output": (_read_function, ("name", "output")),
    "local_shell_call_output": (_read_local_shell, ("id", "output")),
    "shell_call_output": (_read_shell, ("output",)),
    "apply_patch_call_output": (_read_patch, ("output", "status")),
    "computer_call_output": (_read_screenshot, ("output",)),
    "tool_search_output": (_read_found_tools, ("tools", "execution")),
}
"""For each type of item: the function that reads its content, and the members that it reads."""

OUTPUT_TYPES = _READERS.keys()
"""The types of items with which the caller answers calls."""

_WRITERS: Mapping[str, Callable[[Writing, Answered], JsonObject | None]] = {
    "local_shell_call": _write_local_shell,
    "shell_call": _write_shell,
    "apply_patch_call": _write_patch,
    "computer_call": _write_screenshot,
    "tool_search_call": _write_found_tools,
}
"""The functions that write the members of a call's output; they return None if they cannot."""
