"""All tools of a folder, by name."""

import os
from pathlib import Path

from tooltrail.agents.tools import AgentTool
from tooltrail.agents.workspace._folder import WorkspaceFolder
from tooltrail.agents.workspace.commands import run_tool
from tooltrail.agents.workspace.reading import list_tool, read_tool
from tooltrail.agents.workspace.searching import search_tool
from tooltrail.agents.workspace.writing import Editor
from tooltrail.records import InvalidRecordError, NotFoundError


def workspace_tools(
    root: str | os.PathLike[str], *, allow_writes: bool = False, allow_commands: bool = False
) -> dict[str, AgentTool]:
    """The tools of a folder: `fs:read`, `fs:list` and `fs:search`, and what else is allowed.

    No path that they are given leads out of the folder, not through a symbolic link either, be it
    made meanwhile. A command is not held back: it may do whatever this program may.

    Args:
        root: the folder.
        allow_writes: also `fs:write` and `fs:edit`.
        allow_commands: also `shell:run`.

    Raises:
        NotFoundError: there is no such folder.
        InvalidRecordError: it is no folder.
    """
    path = Path(root).absolute().resolve()
    if not path.exists():
        raise NotFoundError(f"there is no folder {path}")
    if not path.is_dir():
        raise InvalidRecordError(f"{path} is no folder")
    workspace = WorkspaceFolder(path)
    tools = [read_tool(workspace), list_tool(workspace), search_tool(workspace)]
    if allow_writes:
        editor = Editor(workspace)
        tools += [editor.write_tool(), editor.edit_tool()]
    if allow_commands:
        tools.append(run_tool(workspace))
    return {tool.name: tool for tool in tools}
