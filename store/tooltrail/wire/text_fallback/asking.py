"""The tools of a text-only request, described in a system message.

No server enforces a choice that is only described, so the choice is not written but reported.
"""

import re
from collections.abc import Iterable

from pydantic import JsonValue

from tooltrail.records import InvalidRecordError, ToolDefinition, read_json
from tooltrail.wire._clean_text import compact
from tooltrail.wire._identifiers import split_name
from tooltrail.wire._tools import read_openai_tool, write_head
from tooltrail.wire._writing import Writing
from tooltrail.wire.members import JsonObject, object_in, objects_in, text_in
from tooltrail.wire.text_fallback.family import TextCall, TextFamily
from tooltrail.wire.text_fallback.markup import body_without, tags

_TAG = "tools"
_MARKS = tags(_TAG)
_OFFERED = re.compile(rf"^<{_TAG}>\n({body_without(_TAG)})^</{_TAG}>$", re.MULTILINE)
_HEAD = "You can call these tools; each line is one of them, as JSON."
_HOW = "To call one, write lines of your own like these, outside of any code block:"


def write_tools(
    family: TextFamily, writing: Writing, tools: Iterable[ToolDefinition]
) -> JsonObject:
    """Write `{"messages": […]}` with one message, which must come before all others."""
    lines = [_line(writing, tool, where) for where, tool in writing.offered(tools)]
    if not lines:
        return {}
    example = family.write_calls([TextCall("NAME", None, '{"PARAMETER": "VALUE"}')])
    parts = [_HEAD, f"<{_TAG}>", *lines, f"</{_TAG}>", _HOW, example]
    return {"messages": [{"role": "system", "content": "\n".join(parts)}]}


def _line(writing: Writing, tool: ToolDefinition, where: str) -> str:
    native = write_head(writing, tool, where)
    if tool.kind == "custom":
        if tool.grammar is not None:
            native["format"] = tool.grammar
    elif tool.parameters is not None:
        native["parameters"] = tool.parameters
    if tool.strict is not None:
        writing.note("schema_reduced", where, "nothing enforces what is only described")
    writing.note_dropped(tool.extras, where)
    members: JsonValue = {"type": tool.kind, tool.kind: native}
    return _MARKS.respell(compact(writing.clean.value(members, where)))


def read_tools(request: JsonObject) -> tuple[ToolDefinition, ...]:
    """Read the tools that the system messages of a request offer."""
    return tuple(
        tool
        for message in objects_in(request.get("messages"))
        if message.get("role") == "system"
        for lines in _OFFERED.findall(text_in(message.get("content")) or "")
        for line in lines.split("\n")
        if (tool := _read_tool(line)) is not None
    )


def _read_tool(line: str) -> ToolDefinition | None:
    try:
        native = object_in(read_json(line))
    except InvalidRecordError:
        return None
    is_custom = isinstance(native.get("custom"), dict)
    members = object_in(native.get("custom" if is_custom else "function", native))
    if text_in(members.get("name")) is None:
        return None
    tool = read_openai_tool(members, is_custom=is_custom)
    server, name = split_name(tool.name)
    return tool.model_copy(update={"namespace": server, "name": name})
