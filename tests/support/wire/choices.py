"""A choice among tools as a format writes it, without the tools that it is among."""

from dataclasses import replace

from tooltrail.records import ToolDefinition
from tooltrail.wire import Export, ToolChoice, WireFormat

F = ToolDefinition(name="f")


def written_choice(
    known: WireFormat, choice: ToolChoice, tools: tuple[ToolDefinition, ...] = (F,)
) -> Export:
    """The export of tools and choice, without the members that the tools alone have."""
    export = known.write_tools(tools, choice)
    offered = known.write_tools(tools).request
    said = {name: value for name, value in export.request.items() if name not in offered}
    return replace(export, request=said)
