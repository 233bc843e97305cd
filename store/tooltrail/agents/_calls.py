"""Runs the tool calls of one answer, and records each start and each end.

Calls without side effects run concurrently. A call with side effects runs alone, in the order of
the answer, so that two writes never overlap. Each recorded start gets a recorded end, even when the
run is cancelled.
"""

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar, cast

from tooltrail.agents.runs import Observer
from tooltrail.agents.tools import AgentTool, running_call
from tooltrail.journal.invocation import Finished, Invocation
from tooltrail.journal.session import Session
from tooltrail.records import (
    CompleteOutput,
    ToolCall,
    ToolError,
    ainvoke,
    error_of_cancellation,
    error_of_refusal,
    error_of_unexposed_tool,
    error_of_unknown_tool,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Toolbox:
    """The tools of a leg, by the names that the model sees.

    Attributes:
        offered: the tools that the model may call.
        withheld: names of existing tools that this agent may not call.
    """

    offered: Mapping[str, AgentTool]
    withheld: frozenset[str] = frozenset()

    def refusal_of(self, name: str) -> ToolError | None:
        """The error for a call of a tool that is not offered; None if the tool is offered."""
        if name in self.offered:
            return None
        if name in self.withheld:
            return error_of_unexposed_tool(name)
        return error_of_unknown_tool(name, self.offered)


@dataclass(slots=True)
class Batch:
    """Runs the calls of one answer. Use an instance once.

    Attributes:
        finished: the recorded ends, by the position of the call.
    """

    session: Session
    toolbox: Toolbox
    timeout_ms: int
    observer: Observer
    finished: dict[int, Finished] = field(init=False, default_factory=dict[int, Finished])
    _open: dict[int, tuple[ToolCall, Invocation]] = field(
        init=False, default_factory=dict[int, tuple[ToolCall, Invocation]]
    )
    _refusal: ToolError | None = field(init=False, default=None)

    async def run(self, calls: Sequence[ToolCall]) -> list[Finished]:
        """Run calls, and return their recorded ends in the order of the calls.

        Raises:
            UnavailableError: an end could not be recorded; all others were.
            CancelledError: the run was cancelled; calls that had started are recorded as cancelled.
        """
        try:
            for number, call in enumerate(calls):
                await self._start(number, call)
            for group in self._groups(calls):
                ran = await asyncio.gather(*map(self._run, group), return_exceptions=True)
                for error in filter(None, ran):
                    raise error
        finally:
            await self._end_open_calls()
        return [self.finished[number] for number in range(len(calls))]

    async def refuse(self, calls: Sequence[ToolCall], reason: str) -> list[Finished]:
        """Record calls that are refused, with the reason."""
        self._refusal = error_of_refusal(refused_by="run_agent", reason=reason)
        return await self.run(calls)

    def _groups(self, calls: Sequence[ToolCall]) -> list[list[int]]:
        """The positions of the calls, in groups that run one after another."""
        groups: list[list[int]] = [[]]
        for number, call in enumerate(calls):
            tool = self.toolbox.offered.get(call.tool_name)
            if tool is not None and tool.has_side_effects:
                groups += [[number], []]
            else:
                groups[-1].append(number)
        return groups

    async def _start(self, number: int, call: ToolCall) -> None:
        tool = self.toolbox.offered.get(call.tool_name)
        family = None if tool is None else tool.family

        async def start() -> None:
            self._open[number] = (call, await self.session.astart(call, family=family))

        await to_end(start())

    async def _run(self, number: int) -> None:
        call, invocation = self._open[number]
        outputs: list[CompleteOutput] = []
        refused = self._refusal or self.toolbox.refusal_of(call.tool_name)
        try:
            if refused is not None:
                outputs.append(CompleteOutput.failure(call.tool_name, refused))
                return
            tool = self.toolbox.offered[call.tool_name]
            running_call.set(invocation if tool.captures_output else None)
            await ainvoke(
                _awaited(tool),
                call,
                outputs.append,
                parse=tool.parse,
                timeout_ms=self.timeout_ms,
            )
        finally:
            if outputs:
                await self._finish(number, outputs[0])

    async def _finish(self, number: int, output: CompleteOutput) -> None:
        _, invocation = self._open[number]

        async def finish() -> None:
            self.finished[number] = await invocation.afinish(output)
            del self._open[number]

        await to_end(finish())
        self.observer(self.finished[number])

    async def _end_open_calls(self) -> None:
        """End calls that were started but did not run, as cancelled.

        Raises:
            BaseException: the first error of an end; all other ends were tried.
        """
        failure: BaseException | None = None
        for number, (call, _) in list(self._open.items()):
            output = CompleteOutput.failure(call.tool_name, error_of_cancellation())
            try:
                await self._finish(number, output)
            except BaseException as error:  # noqa: BLE001  raised below, after all ends
                failure = failure or error
        if failure is not None:
            raise failure


def _awaited(tool: AgentTool) -> Callable[[Any], Awaitable[object]]:
    """The handler as a coroutine function. An ordinary function runs in a thread of its own."""
    if tool.is_awaited:
        return cast("Callable[[Any], Awaitable[object]]", tool.handler)

    async def handle(arguments: Any) -> object:
        value = await _in_thread(partial(tool.handler, arguments))
        return await value if inspect.isawaitable(value) else value

    return handle


async def to_end(recording: Awaitable[T]) -> T:
    """Wait for a recording to end, even if the waiting task is cancelled.

    A cancellation is raised after the recording has ended.

    Raises:
        CancelledError: the waiting task was cancelled; the recording is done.
    """
    doing = asyncio.ensure_future(recording)
    cancelled: asyncio.CancelledError | None = None
    while not doing.done():
        try:
            await asyncio.shield(doing)
        except asyncio.CancelledError as error:
            if doing.cancelled():
                raise
            cancelled = error
        except Exception:  # noqa: BLE001  `result` raises it below
            break
    if cancelled is not None:
        if doing.exception() is not None:
            cancelled.add_note(f"not recorded: {doing.exception()}")
        raise cancelled
    return doing.result()


async def _in_thread(task: Callable[[], T]) -> T:
    """Call a function in a thread of its own, and return its result.

    A function that hangs cannot be stopped, but the task that waits for it can. A thread of
    `asyncio.to_thread` would keep the loop and the program from ending; this thread does not.
    """
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            done.set_result(context.run(task))
        except BaseException as error:  # noqa: BLE001  raised in the waiting task
            done.set_exception(_raisable(error))

    threading.Thread(target=work, name="tooltrail-tool", daemon=True).start()
    return await asyncio.wrap_future(done)


def _raisable(error: BaseException) -> BaseException:
    """The error in a form that a future accepts; futures refuse `StopIteration`."""
    if isinstance(error, StopIteration):
        return RuntimeError(f"the function raised {error!r}")
    return error
