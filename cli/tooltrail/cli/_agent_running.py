"""An agent run from the command line: its progress for people, its end for scripts."""

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
from tooltrail.cli._output import Record, counted, duration_of, print_array, printable, say, write
from tooltrail.records import LegEnded, LegStarted
from tooltrail.store import Finished

T = TypeVar("T")

_LINE_CHARS = 160
"""Of what is said of one event."""


def run_until_signal(work: Coroutine[Any, Any, T]) -> T | None:
    """What the work gives; None when a signal ended it, of which the record tells.

    SIGINT and SIGTERM cancel the work, which records that; a second one ends the program.
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
    """Tell people on stderr what happens, a line for each event."""
    match event:
        case ChunkCame():
            return
        case LegStarted() | LegEnded():
            line = event.sentence
        case AnswerCame():
            _say_answer(event)
            return
        case QuestionFailed():
            line = f"no answer: {event.reason}; asked again in {duration_of(event.pause_ms)}"
        case Finished():
            line = f"{event.call.tool_name}: {event.canonical.summary_text}"
    _say_line(line)


def _say_answer(event: AnswerCame) -> None:
    calls = ", ".join(call.tool_name for call in event.message.calls)
    if event.message.text.strip() or not calls:
        _say_line(f"says: {event.message.text}")
    if calls:
        _say_line(f"asks for {calls}")


def _say_line(line: str) -> None:
    spelled = printable(" ".join(line.split()))
    say(spelled if len(spelled) <= _LINE_CHARS else f"{spelled[: _LINE_CHARS - 1]}…")


def say_outcome(run: AgentRun) -> None:
    """Tell people on stderr how a run came out, and where it is recorded."""
    last = run.legs[-1].ended
    legs = counted(len(run.legs), "leg")
    say(f"{last.outcome} after {legs}; see: tooltrail transcript {run.legs[-1].session_id}")


def print_run(run: AgentRun, *, as_json: bool) -> None:
    """Print the result on stdout: as JSON, or the text of an agent without a schema; or all.

    Args:
        run: that has ended; of one without a result nothing but all can be printed.
        as_json: whether to print all of it.
    """
    if as_json:
        print_array([run_record(run)])
    elif run.outcome == "answered":
        write(f"{run.value}\n")
    elif run.is_success:
        write(json.dumps(run.value, ensure_ascii=False, indent=2) + "\n")


def run_record(run: AgentRun) -> Record:
    """A run as a record for programs."""
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
