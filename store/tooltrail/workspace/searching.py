"""`fs:search`: find the lines of files that match a pattern."""

import os
from typing import Any

from tooltrail.agents.definitions import PATH, define
from tooltrail.agents.searching import PATTERN, run_search
from tooltrail.records import SearchOutput
from tooltrail.workspace._folder import WorkspaceFolder, split_path

_WORKER = "tooltrail.workspace._search_worker"

SEARCH = define(
    "fs:search",
    "Search the files of the workspace for lines that match a pattern. Binary files and the folder "
    "`.git` are skipped. Results are lines `PATH:LINE:TEXT`.",
    ["pattern"],
    **PATTERN,
    path={**PATH, "description": "File or folder to search; the workspace itself if absent."},
    glob={"type": "string", "minLength": 1, "description": "Only files named like `*.py`."},
)


async def search_files(workspace: WorkspaceFolder, arguments: dict[str, Any]) -> SearchOutput:
    """The lines that match a pattern, in the files of a folder."""
    split_path(arguments.get("path", "."))  # refuses a path that leads out before a process starts
    request = {**arguments, "root": os.fsdecode(workspace.root)}
    return await run_search(request, worker=_WORKER)
