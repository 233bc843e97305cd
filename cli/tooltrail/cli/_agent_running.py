"""Runs an agent from the command line: progress on stderr, result on stdout."""

import asyncio
import json
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

from tooltrail.agents import (
    AgentRun,
    AnswerCame,
    ChunkCame,
    QuestionFailed,
    RunEvent,
)
from tooltrail.cli._output import (
    Record,
    counted,
    duration_of,
    print_array,
    printable,
    say,
    write_recorded,
)
from tooltrail.records import LegEnded, LegStarted
from tooltrail.store import Finished

T = TypeVar("T")

_LINE_CHARS = 160
"""Maximum characters of the line that reports an event."""


def run_until_signal(work: Coroutine[Any, Any, T]) -> T | None:
    """Run the coroutine and return its result; None if a signal cancelled it.

    SIGINT and SIGTERM cancel the work, and `work` records that. A second one ends the program.
    """

    async def watched() -> T | None:
        task = asyncio.ensure_future(work)
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, _cancel_once, loop, task)
        try:
            return await task
        except asyncio.CancelledError:
            return None
        finally:
            for number in _SIGNALS:
                loop.remove_signal_handler(number)

    return asyncio.run(watched())


_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def _cancel_once(loop: asyncio.AbstractEventLoop, task: "asyncio.Future[Any]") -> None:
    for number in _SIGNALS:
        loop.remove_signal_handler(number)
        signal.signal(number, signal.SIG_DFL)
    task.cancel()


def say_event(event: RunEvent) -> None:
    """Print one line for each event on stderr."""
    match event:
        case ChunkCame():
            return
        case LegStarted() | LegEnded():
            line = event.sentence
        case AnswerCame():
            _say_answer(event)
            return
        case QuestionFailed():
            line = f"request failed: {event.reason}; retry in {duration_of(event.pause_ms)}"
        case Finished():
            line = f"{event.call.tool_name}: {event.canonical.summary_text}"
    _say_line(line)


def _say_answer(event: AnswerCame) -> None:
    calls = ", ".join(call.tool_name for call in event.message.calls)
    if event.message.text.strip() or not calls:
        _say_line(f"says: {event.message.text}")
    if calls:
        _say_line(f"calls {calls}")


def _say_line(line: str) -> None:
    spelled = printable(" ".join(line.split()))
    say(spelled if len(spelled) <= _LINE_CHARS else f"{spelled[: _LINE_CHARS - 1]}…")


def say_outcome(run: AgentRun) -> None:
    """Print the outcome of a run on stderr, and the command that shows its record."""
    last = run.legs[-1].ended
    legs = counted(len(run.legs), "leg")
    say(f"{last.outcome} after {legs}; see `tooltrail transcript {run.legs[-1].session_id}`")


def print_run(run: AgentRun, *, as_json: bool) -> None:
    """Print the result on stdout, or with `as_json` the complete record of the run."""
    if as_json:
        print_array([run_record(run)])
    elif run.outcome == "answered":
        write_recorded(f"{run.value}\n")
    elif run.is_success:
        write_recorded(json.dumps(run.value, ensure_ascii=False, indent=2) + "\n")


def run_record(run: AgentRun) -> Record:
    """The JSON record of a run."""
    return {
        "run_id": run.run_id,
        "outcome": run.outcome,
        "value": run.value,
        "legs": [
            {
                "session_id": str(leg.session_id),
                **leg.started.model_dump(exclude={"kind", "run_id"}),
                **leg.ended.model_dump(exclude={"kind"}),
            }
            for leg in run.legs
        ],
    }
