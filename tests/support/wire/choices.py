"""A tool choice as a format writes it, without the tools."""

from dataclasses import replace

from pydantic import JsonValue

from tooltrail.records import ToolDefinition
from tooltrail.wire import Export, ToolChoice, WireFormat

F = ToolDefinition(name="f")


def written_choice(
    known: WireFormat, choice: ToolChoice, tools: tuple[ToolDefinition, ...] = (F,)
) -> Export:
    """The export of tools and choice, without the members that come from the tools alone."""
    export = known.write_tools(tools, choice)
    offered = known.write_tools(tools).request
    said = {
        name: _besides(value, offered.get(name))
        for name, value in export.request.items()
        if value != offered.get(name)
    }
    return replace(export, request=said)


def _besides(value: JsonValue, offered: JsonValue) -> JsonValue:
    """The part of a member that comes from the choice, if the member has the tools, too."""
    if not isinstance(value, dict) or not isinstance(offered, dict):
        return value
    return {name: one for name, one in value.items() if name not in offered}
