"""`fs:search`: the lines of files that a pattern fits.

It runs in a process of its own. A pattern that a model wrote may take time without end, and Python
does not give up the interpreter while it looks: neither a timeout nor a cancellation would come.
"""

import json
import os
import sys
from typing import IO, Any

from pydantic import JsonValue

from tooltrail.agents.workspace._definitions import PATH, define
from tooltrail.agents.workspace._folder import WorkspaceFolder, split_path
from tooltrail.agents.workspace._processes import run_process
from tooltrail.records import SearchOutput, StreamRecord

TIMEOUT_MS = 60_000
"""Milliseconds that one search may take."""

_WORKER = "tooltrail.agents.workspace._search_worker"

PATTERN: dict[str, dict[str, JsonValue]] = {
    "pattern": {
        "type": "string",
        "minLength": 1,
        "description": "A regular expression of Python.",
    },
    "literal": {
        "type": "boolean",
        "description": "Take the pattern as it is, and for no expression.",
    },
    "ignore_case": {"type": "boolean", "description": "Take capital letters for small ones."},
    "max_matches": {
        "type": "integer",
        "minimum": 1,
        "maximum": 10_000,
        "description": "Lines that are given back, 200 if absent; more are counted.",
    },
}
"""Arguments of every search."""

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
    return await run_search({**arguments, "root": os.fsdecode(workspace.root)})


async def run_search(request: dict[str, Any], stdin: IO[bytes] | None = None) -> SearchOutput:
    """The lines that a pattern fits, in the files of a request or in what comes from a pipe.

    Raises:
        TimeoutError: the search took too long.
        ValueError: the pattern is none, or what is to be searched cannot be read.
    """
    ended = await run_process(
        # -P: nothing is imported from where this was started, which may be the folder itself.
        [sys.executable, "-P", "-m", _WORKER, json.dumps(request)],
        cwd=None,
        environment=os.environ,
        timeout_ms=TIMEOUT_MS,
        stdin=stdin,
    )
    if ended.timed_out:
        raise TimeoutError(f"the search took longer than {TIMEOUT_MS // 1000} seconds")
    if ended.status != 0:
        raise ValueError(bytes(ended.stderr.kept).decode(errors="replace").strip())
    head, _, matches = bytes(ended.stdout.kept).partition(b"\n")
    counts = json.loads(head)
    return SearchOutput(
        match_count=counts["match_count"],
        returned=counts["returned"],
        matches=StreamRecord.from_bytes("matches", matches),
    )
