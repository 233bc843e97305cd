"""Searches for lines that match a pattern, in a process of its own.

A regular expression that a model wrote may never end. Python holds the interpreter lock while it
matches, so a timeout or a cancellation inside this process would have no effect.
"""

import asyncio
import json
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from io import BytesIO
from itertools import chain
from typing import Any

from pydantic import JsonValue

from tooltrail.agents.line_search import REFUSED
from tooltrail.agents.processes import run_process
from tooltrail.agents.wrong_calls import WrongCallError
from tooltrail.records import SearchOutput, StreamRecord

TIMEOUT_MS = 60_000
"""Time limit of one search in milliseconds."""

_WORKER = "tooltrail.agents.line_search"

PATTERN_SYNTAX = "A Python regular expression for a line without its ending, LF or CR LF."

PATTERN: dict[str, dict[str, JsonValue]] = {
    "pattern": {
        "type": "string",
        "minLength": 1,
        "description": PATTERN_SYNTAX,
    },
    "literal": {
        "type": "boolean",
        "description": "Search for the pattern as plain text.",
    },
    "ignore_case": {"type": "boolean", "description": "Ignore the case of letters."},
    "max_matches": {
        "type": "integer",
        "minimum": 1,
        "maximum": 10_000,
        "description": "Largest number of lines in the result, 200 if absent. Every match counts.",
    },
}
"""Arguments of every search."""


async def run_search(
    request: dict[str, Any], blocks: Iterable[bytes] = (), *, worker: str = _WORKER
) -> SearchOutput:
    """The lines that match a pattern, in a text or in the files of the worker.

    Args:
        request: the arguments of `PATTERN`, and those of the worker. `first_line` is the number of
            the first line of a text.
        blocks: the bytes of the text. A thread reads them, and their errors are raised.
        worker: the module that the process runs; it calls `line_search.main`.

    Raises:
        TimeoutError: the search took too long.
        WrongCallError: the pattern is not valid, or a file cannot be read.
    """
    reading, writing = os.pipe()
    # Not as an argument of the process: the system limits its length.
    given = chain([f"{json.dumps(request)}\n".encode()], blocks)
    copying = asyncio.ensure_future(asyncio.to_thread(_write, given, writing))
    stdout, stderr = BytesIO(), BytesIO()
    try:
        with os.fdopen(reading, "rb") as pipe:
            ended = await run_process(
                # -P: no module is imported from the current folder, which a model may have written.
                [sys.executable, "-P", "-m", worker],
                cwd=None,
                environment=os.environ,
                timeout_ms=TIMEOUT_MS,
                stdout=stdout,
                stderr=stderr,
                stdin=pipe,
            )
    except BaseException:
        copying.cancel()  # the thread ends because its pipe is closed
        raise
    await copying
    if ended.timed_out:
        raise TimeoutError(f"the search took longer than {TIMEOUT_MS // 1000} seconds")
    if ended.status != 0:
        problem = stderr.getvalue().decode(errors="replace").strip()
        kind = WrongCallError if ended.status == REFUSED else RuntimeError
        raise kind(problem or f"the search ended with status {ended.status}")
    head, _, matches = stdout.getvalue().partition(b"\n")
    counts = json.loads(head)
    return SearchOutput(
        match_count=counts["match_count"],
        returned=counts["returned"],
        matches=StreamRecord.from_bytes("matches", matches),
    )


def _write(blocks: Iterable[bytes], pipe: int) -> None:
    """Write bytes into a pipe until they or the search end."""
    with suppress(BrokenPipeError), os.fdopen(pipe, "wb") as target:
        target.writelines(blocks)
