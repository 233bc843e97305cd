"""Lines that a pattern fits, searched in a process of its own.

A pattern that a model wrote may take time without end, and Python does not give up the interpreter
while it looks: neither a timeout nor a cancellation would come.
"""

import json
import os
import sys
from typing import IO, Any

from pydantic import JsonValue

from tooltrail.agents.processes import run_process
from tooltrail.records import SearchOutput, StreamRecord

TIMEOUT_MS = 60_000
"""Milliseconds that one search may take."""

_WORKER = "tooltrail.agents.line_search"

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


async def run_search(
    request: dict[str, Any], *, worker: str = _WORKER, stdin: IO[bytes] | None = None
) -> SearchOutput:
    """The lines that a pattern fits, in what comes from a pipe or in what the worker finds.

    Args:
        request: the pattern, as `PATTERN` describes, and what else the worker takes.
        worker: the module that runs; it calls `line_search.main`.
        stdin: what the worker reads; nothing by default.

    Raises:
        TimeoutError: the search took too long.
        ValueError: the pattern is none, or what is to be searched cannot be read.
    """
    ended = await run_process(
        # -P: nothing is imported from where this was started, which may be the folder itself.
        [sys.executable, "-P", "-m", worker, json.dumps(request)],
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
