"""A choice among tools as a format writes it, without the tools that it is among."""

from dataclasses import replace

from pydantic import JsonValue

from tooltrail.records import ToolDefinition
from tooltrail.wire import Export, ToolChoice, WireFormat

F = ToolDefinition(name="f")


def written_choice(
    known: WireFormat, choice: ToolChoice, tools: tuple[ToolDefinition, ...] = (F,)
) -> Export:
    """The export of tools and choice, without the members that the tools alone have."""
    export = known.write_tools(tools, choice)
    offered = known.write_tools(tools).request
    said = {
        name: _besides(value, offered.get(name))
        for name, value in export.request.items()
        if value != offered.get(name)
    }
    return replace(export, request=said)


def _besides(value: JsonValue, offered: JsonValue) -> JsonValue:
    """What a member says of the choice, where the tools are in the member, too."""
    if not isinstance(value, dict) or not isinstance(offered, dict):
        return value
    return {name: one for name, one in value.items() if name not in offered}
