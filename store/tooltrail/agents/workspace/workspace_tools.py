"""Which tools there are for a folder, and what a model is told of each."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tooltrail.agents.tools import AgentTool
from tooltrail.agents.workspace.beneath import Beneath
from tooltrail.agents.workspace.commands import CommandTool
from tooltrail.agents.workspace.file_tools import FileTools
from tooltrail.records import ToolDefinition

_PATH = {"type": "string", "description": "Relative to the folder of the workspace."}
_LINE = {"type": "integer", "minimum": 1}


def workspace_tools(
    root: Path | str, *, allow_writes: bool = False, allow_commands: bool = False
) -> dict[str, AgentTool]:
    """The tools for a folder, by name.

    `fs:read`, `fs:list` and `fs:search` in any case. No file outside of the folder is touched by
    the tools for files; a command may do whatever its user may.

    Args:
        root: the folder.
        allow_writes: whether there are `fs:write` and `fs:edit`, too.
        allow_commands: whether there is `shell:run`, too.
    """
    files, folder = FileTools(Beneath(Path(root))), Path(root).resolve()
    tools = [
        _tool(
            "fs:read",
            "Read a text file, or some of its lines.",
            {"path": _PATH, "start_line": _LINE, "end_line": _LINE},
            files.read,
            required=("path",),
            family="file_read",
        ),
        _tool("fs:list", "List what is in a folder.", {"path": _PATH}, files.list_folder),
        _tool(
            "fs:search",
            "Find the lines of all files below a folder that have a text.",
            {
                "pattern": {"type": "string", "minLength": 1},
                "path": _PATH,
                "is_regex": {"type": "boolean", "description": "A regular expression of Python."},
            },
            files.search,
            required=("pattern",),
            family="search",
        ),
    ]
    if allow_writes:
        tools += _writing(files)
    if allow_commands:
        tools.append(_command(CommandTool(folder)))
    return {tool.definition.name: tool for tool in tools}


def _writing(files: FileTools) -> list[AgentTool]:
    text = {"type": "string"}
    return [
        _tool(
            "fs:write",
            "Give a file a new content, as a whole; folders that are missing are made.",
            {"path": _PATH, "content": text},
            files.write,
            required=("path", "content"),
            family="file_mutation",
            has_side_effects=True,
        ),
        _tool(
            "fs:edit",
            "Replace a text that stands in a file exactly once.",
            {"path": _PATH, "old": {**text, "minLength": 1}, "new": text},
            files.edit,
            required=("path", "old", "new"),
            family="file_mutation",
            has_side_effects=True,
        ),
    ]


def _command(commands: CommandTool) -> AgentTool:
    timeout = {"type": "integer", "minimum": 1, "description": "Milliseconds until it is killed."}
    return _tool(
        "shell:run",
        "Run a command by /bin/sh in the folder of the workspace; it gets no input.",
        {"command": {"type": "string", "minLength": 1}, "timeout_ms": timeout},
        commands.run,
        required=("command",),
        family="command",
        has_side_effects=True,
    )


def _tool(
    name: str,
    description: str,
    properties: Mapping[str, Any],
    handler: Callable[[dict[str, Any]], object],
    *,
    required: tuple[str, ...] = (),
    family: str | None = None,
    has_side_effects: bool = False,
) -> AgentTool:
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": dict(properties),
        "required": [*required],
        "additionalProperties": False,
    }
    definition = ToolDefinition(name=name, description=description, parameters=parameters)
    return AgentTool(definition, handler, has_side_effects, family)
