"""How a tool that comes with Tooltrail is described to a model."""

from pydantic import JsonValue

from tooltrail.records import ToolDefinition

PATH: dict[str, JsonValue] = {
    "type": "string",
    "minLength": 1,
    "description": "Path relative to the workspace, without `..`.",
}
"""The argument that names a file or folder."""

LINES: dict[str, dict[str, JsonValue]] = {
    "start_line": {"type": "integer", "minimum": 1, "description": "First line, from 1."},
    "end_line": {"type": "integer", "minimum": 1, "description": "Last line, included."},
}
"""Arguments of a tool that reads a range of lines."""


def define(
    name: str, description: str, required: list[str], **properties: dict[str, JsonValue]
) -> ToolDefinition:
    """Define a tool with these properties as its only arguments."""
    parameters: dict[str, JsonValue] = {
        "type": "object",
        "properties": {**properties},
        "required": [*required],
        "additionalProperties": False,
    }
    return ToolDefinition(name=name, description=description, parameters=parameters)
