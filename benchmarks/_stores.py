"""Stores with very many calls, recorded in the ordinary way and made once per run."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from benchmarks._calls import Call
from benchmarks._measure import IS_FULL, consume
from tooltrail.journal.log import Acknowledge, Entry
from tooltrail.journal.recorder import Recorder
from tooltrail.records import CompleteOutput, GenericOutput, ToolCall, ToolError
from tooltrail.records.facts import CallEnded
from tooltrail.store import EndedCall, Session, create_store

FEW = 10_000
MANY = 1_000_000 if IS_FULL else 50_000
BEGINNING = datetime(2025, 1, 1, tzinfo=UTC)
LONG_SESSION = 10_000
"""Calls of the longest session, which is the newest session of a store with many calls."""

RARE_AGENT, RARE_TOOL, RARE_STATUS = "archivist", "Rare", 42
"""Values that only the oldest calls have: a search from the newest scans all other calls."""

_SESSION = 100
"""Calls of each other session."""

_AGENTS = ("coder", "planner", None)
_folders: list[tempfile.TemporaryDirectory[str]] = []


class _UnseenRecorder(Recorder):
    """Records calls without receipts, as `exec` does; the ingester makes the receipts."""

    def append(self, entries: Sequence[Entry]) -> Acknowledge:
        unseen = [
            entry._replace(fact=entry.fact.replaced(shown=None))
            if isinstance(entry.fact, CallEnded)
            else entry
            for entry in entries
        ]
        return super().append(unseen)


@cache
def stored_calls(count: int) -> Path:
    """The database of a store with `count` calls; removed when the program ends."""
    _folders.append(tempfile.TemporaryDirectory(prefix="tooltrail-bench-"))
    database = Path(_folders[-1].name) / "tooltrail.db"
    with create_store(database) as store:
        recorder = _UnseenRecorder(
            store.spool, policy=store.policy, families=store.families, acknowledge="process"
        )
        with closing(recorder):
            for number, (first, last) in enumerate(_sessions(count)):
                agent = _AGENTS[number % len(_AGENTS)] if number else RARE_AGENT
                at = BEGINNING + timedelta(seconds=first)
                session = Session.open(recorder, agent=agent, at=at)
                consume(session.record_many(map(_call, range(first, last))))
                store.ingest()
    return database


def _sessions(count: int) -> Iterator[tuple[int, int]]:
    """For each session, the number of its first call and of the first call of the next session."""
    short = count - (LONG_SESSION if count >= 2 * LONG_SESSION else _SESSION)
    yield from ((first, first + _SESSION) for first in range(0, short, _SESSION))
    yield short, count


def _call(number: int) -> EndedCall:
    output, at = _output(number), BEGINNING + timedelta(seconds=number)
    call = ToolCall.of(output.tool_name, {"n": number})
    return EndedCall(call, output, started_at=at, finished_at=at)


def _output(number: int) -> CompleteOutput:
    """The output of a call. Most calls are commands that succeed with a short output."""
    line = f"tests/store/test_{number:08}.py::test_case PASSED\n"
    if number == 0:
        return CompleteOutput.success(RARE_TOOL, GenericOutput.of(line))
    if number % 40 == 7:
        return CompleteOutput.failure("Lookup", ToolError(kind="tool_failed", message=line))
    if number % 10 == 7:
        return CompleteOutput.success("Lookup", GenericOutput.of(line * 4))
    status = RARE_STATUS if number == 1 else int(number % 20 == 3)
    size = 1_000 if number % 200 == 3 else 8
    return Call({"command": "pytest"}, line.encode() * size, status).complete_output()
