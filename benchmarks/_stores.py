"""Stores of very many calls, recorded the ordinary way and made once in a run."""

import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Final

from tooltrail.records import (
    CommandOutput,
    CompleteOutput,
    ErrorKind,
    FamilyOutput,
    GenericOutput,
    StreamRecord,
    ToolCall,
    ToolError,
)
from tooltrail.store import EndedCall, create_store

FEW: Final = 10_000
MANY, MANY_IN_FULL = 50_000, 1_000_000
BEGINNING: Final = datetime(2025, 1, 1, tzinfo=UTC)
LONG_SESSION: Final = 10_000
"""Calls of the longest session, which is the newest one of a store of many."""

RARE_AGENT, RARE_TOOL, RARE_STATUS = "archivist", "Rare", 42
"""Of the oldest calls alone, so that a search from the newest passes all others."""

_SESSION: Final = 100
"""Calls of every other session."""

_AGENTS: Final = ("coder", "planner", None)
_FOLDERS: list[tempfile.TemporaryDirectory[str]] = []


@cache
def stored_calls(count: int) -> Path:
    """The database of a store with so many calls; removed when the program ends."""
    _FOLDERS.append(tempfile.TemporaryDirectory(prefix="tooltrail-bench-"))
    database = Path(_FOLDERS[-1].name) / "tooltrail.db"
    with create_store(database, acknowledge="process") as store:
        for number, (first, last) in enumerate(_sessions(count)):
            agent = _AGENTS[number % len(_AGENTS)] if number else RARE_AGENT
            at = BEGINNING + timedelta(seconds=first)
            with store.open_session(agent=agent, at=at) as session:
                for _ in session.record_many(map(_call, range(first, last))):
                    pass
            if number % _SESSION == 0:
                store.ingest()
    return database


def _sessions(count: int) -> Iterator[tuple[int, int]]:
    """The numbers of the first call of each session and of the first one behind it."""
    short = count - (LONG_SESSION if count >= 2 * LONG_SESSION else _SESSION)
    yield from ((first, first + _SESSION) for first in range(0, short, _SESSION))
    yield short, count


def _call(number: int) -> EndedCall:
    """Most are commands that succeeded with a short output."""
    line = f"tests/store/test_{number:08}.py::test_case PASSED\n"
    if number == 0:
        return _ended(number, RARE_TOOL, GenericOutput.of(line))
    if number == 1:
        return _ended(number, "Bash", _command(line, RARE_STATUS))
    if number % 200 == 7:
        return _ended(number, "Bash", _command(line * 1_000, 0))
    if number % 40 == 7:
        return _ended(
            number, "Lookup", ToolError(kind=ErrorKind.TOOL_EXECUTION_FAILED, message=line)
        )
    if number % 20 == 7:
        return _ended(number, "Bash", _command(line, 1))
    if number % 10 == 7:
        return _ended(number, "Lookup", GenericOutput.of(line * 4))
    return _ended(number, "Bash", _command(line * 8, 0))


def _command(text: str, status: int) -> CommandOutput:
    return CommandOutput(
        command="pytest",
        exit_status=status,
        stdout=StreamRecord.from_bytes("stdout", text.encode()),
        stderr=StreamRecord.from_bytes("stderr", b""),
    )


def _ended(number: int, tool: str, result: FamilyOutput | ToolError) -> EndedCall:
    at = BEGINNING + timedelta(seconds=number)
    if isinstance(result, ToolError):
        output = CompleteOutput.failure(tool, result)
    else:
        output = CompleteOutput.success(tool, result)
    return EndedCall(ToolCall.of(tool, {"n": number}), output, started_at=at, finished_at=at)
