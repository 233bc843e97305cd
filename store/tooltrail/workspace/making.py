"""The public function of this package: the tools of a folder, by name."""

import inspect
import os
from functools import partial
from pathlib import Path
from typing import Any

from tooltrail.agents.session_artifacts import NAMES, SessionArtifacts, artifact_tools
from tooltrail.agents.tools import AgentTool, Handler
from tooltrail.agents.wrong_calls import WrongCallError
from tooltrail.records import (
    InvalidRecordError,
    NotFoundError,
    ToolDefinition,
    ToolError,
    error_of_exception,
)
from tooltrail.workspace._folder import NotAFileError, WorkspaceFolder
from tooltrail.workspace.commands import RUN, run_command
from tooltrail.workspace.reading import LIST, READ, list_folder, read_file
from tooltrail.workspace.searching import SEARCH, search_files
from tooltrail.workspace.writing import EDIT, WRITE, Editor

BUILT_IN = NAMES | {tool.name for tool in (READ, LIST, SEARCH, WRITE, EDIT, RUN)}
"""The names of all tools that come with Tooltrail."""


def workspace_tools(
    root: str | os.PathLike[str],
    *,
    allow_writes: bool = False,
    allow_commands: bool = False,
    artifacts: SessionArtifacts | None = None,
) -> dict[str, AgentTool]:
    """The tools of a folder: `fs:read`, `fs:list` and `fs:search`, and the tools that you allow.

    No path leads out of the folder, and no symbolic link is followed, not even one that is created
    during the call. A command is not confined: it may do whatever this program may.

    Args:
        root: the folder.
        allow_writes: also `fs:write` and `fs:edit`.
        allow_commands: also `shell:run`.
        artifacts: also `artifact:read` and `artifact:grep` for these artifacts. `run_agent` adds
            both tools for the session of each leg by itself.

    Raises:
        NotFoundError: the folder does not exist.
        InvalidRecordError: the path does not name a folder.
    """
    path = Path(root).absolute().resolve()
    if not path.exists():
        raise NotFoundError(f"{path} does not exist")
    if not path.is_dir():
        raise InvalidRecordError(f"{path} is not a folder")
    workspace = WorkspaceFolder(path)
    tools = [
        _tool(READ, partial(read_file, workspace), "file_read"),
        _tool(LIST, partial(list_folder, workspace), "search"),
        _tool(SEARCH, partial(search_files, workspace), "search"),
    ]
    if allow_writes:
        editor = Editor(workspace)
        tools.append(_tool(WRITE, editor.write, "file_mutation"))
        tools.append(_tool(EDIT, editor.edit, "file_mutation"))
    if allow_commands:
        tools.append(_tool(RUN, partial(run_command, workspace), "command"))
    more = {} if artifacts is None else artifact_tools(artifacts)
    return {tool.name: tool for tool in tools} | more


def _tool(definition: ToolDefinition, handler: Handler, family: str) -> AgentTool:
    has_side_effects = family in {"file_mutation", "command"}
    answering = _answering(handler)
    return AgentTool(
        definition,
        answering,
        has_side_effects=has_side_effects,
        family=family,
        captures_output=family == "command",
    )


_WRONG_PATHS = (FileNotFoundError, NotADirectoryError, IsADirectoryError, NotAFileError)
_BY_CALL = (WrongCallError, PermissionError, UnicodeEncodeError, *_WRONG_PATHS)
"""Errors that a call causes by its arguments."""


def _answering(handler: Handler) -> Handler:
    """The handler, which returns an error of the call's own cause instead of raising it."""
    if inspect.iscoroutinefunction(handler):

        async def answer_later(arguments: dict[str, Any]) -> object:
            try:
                return await handler(arguments)
            except _BY_CALL as error:
                return _untraced(error)

        return answer_later

    def answer(arguments: dict[str, Any]) -> object:
        try:
            return handler(arguments)
        except _BY_CALL as error:
            return _untraced(error)

    return answer


def _untraced(error: Exception) -> ToolError:
    """The error of a call without the traceback, which is of no use to the model."""
    if isinstance(error, WrongCallError):
        # The receipt names the standard class: the model does not know our classes.
        return error_of_exception(ValueError(*error.args))
    error.__cause__ = None
    return error_of_exception(error.with_traceback(None))
