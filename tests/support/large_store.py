"""A store of many invocations of every kind, imported in bulk."""

from collections.abc import Iterator
from pathlib import Path

from tests.support.ended import made
from tests.support.outputs import returned
from tests.support.recording import fail_tool, run_command, run_tool

from tooltrail.records import CompleteOutput, ToolCall, ToolError
from tooltrail.store import EndedCall, create_store

SESSION = 100
"""The number of invocations of a session."""

RARE_AGENT, RARE_TOOL, RARE_STATUS = "archivist", "Rare", 42
"""Values that only the oldest records have: a search from the newest scans all others."""

_AGENTS = ("coder", "planner", None)


def make_large_store(database: Path, count: int) -> None:
    """Make a store in a file with at least `count` invocations; the newest session has one."""
    with create_store(database) as store:
        with store.open_session(agent=RARE_AGENT) as session:
            run_command(session, b"line\n", exit_status=RARE_STATUS)
            run_tool(session, "rare", tool=RARE_TOOL)
            fail_tool(session, "permission_denied")
        for first in range(0, count, SESSION):
            agent = _AGENTS[first // SESSION % len(_AGENTS)]
            with store.open_session(agent=agent) as session:
                for _ in session.record_many(_calls(first)):
                    pass
        run_command(store.open_session(agent="coder"), b"the newest\n" * 10_000)
        store.ingest()


def _calls(first: int) -> Iterator[EndedCall]:
    for number in range(first, first + SESSION):
        yield EndedCall(*_call(number))


def _call(number: int) -> tuple[ToolCall, CompleteOutput]:
    line = b"tests/test_%08d.py::test_case PASSED\n" % number
    if number % 20 == 7:
        return ToolCall(tool_name="Read"), returned("Read", line.decode() * 4)
    if number % 40 == 8:
        error = ToolError(kind="tool_execution_failed", message="it did not work")
        return ToolCall(tool_name="Read"), CompleteOutput.failure("Read", error)
    if number % 10 == 9:
        return ToolCall.of("Bash", {"command": "make"}), made(line, line, 1)
    return ToolCall.of("Bash", {"command": "make"}), made(line * 8)
