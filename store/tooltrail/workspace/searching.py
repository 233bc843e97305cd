"""`fs:search`: the lines of files that a pattern fits."""

import os
from typing import Any

from tooltrail.agents.definitions import define
from tooltrail.agents.searching import PATTERN, run_search
from tooltrail.records import SearchOutput
from tooltrail.workspace._definitions import PATH
from tooltrail.workspace._folder import WorkspaceFolder, split_path

_WORKER = "tooltrail.workspace._search_worker"

SEARCH = define(
    "fs:search",
    "Search the files of the workspace for lines that a pattern fits. Files that hold no text, and "
    "what is in `.git`, are passed over. Results are lines `PATH:LINE:TEXT`.",
    ["pattern"],
    **PATTERN,
    path={**PATH, "description": "File or folder to search; the whole workspace if absent."},
    glob={"type": "string", "minLength": 1, "description": "Only files named like `*.py`."},
)


async def search_files(workspace: WorkspaceFolder, arguments: dict[str, Any]) -> SearchOutput:
    """The lines of the files of a folder that a pattern fits."""
    split_path(arguments.get("path", "."))  # to refuse one that leads out before anything starts
    request = {**arguments, "root": os.fsdecode(workspace.root)}
    return await run_search(request, worker=_WORKER)
