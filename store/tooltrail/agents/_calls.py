"""The calls of one answer: recorded before they run, run side by side, recorded when they end.

Calls that only read run side by side. One with side effects runs alone, in its place among the
others, so that two writes of one answer never meet. Whatever happens, each call that was started is
ended in the record: also when the run is cancelled in the middle.
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
from tooltrail.agents.tools import AgentTool
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
    """The tools of a leg by the names that the model knows.

    Attributes:
        offered: those that it may call.
        withheld: names of tools that exist, and that this agent may not call.
    """

    offered: Mapping[str, AgentTool]
    withheld: frozenset[str] = frozenset()

    def refusal_of(self, name: str) -> ToolError | None:
        """Why a tool of this name cannot be called; None if it can."""
        if name in self.offered:
            return None
        if name in self.withheld:
            return error_of_unexposed_tool(name)
        return error_of_unknown_tool(name, self.offered)


@dataclass(slots=True)
class Batch:
    """Runs the calls of one answer. For one use.

    Attributes:
        finished: what is recorded of those that have ended, by their number.
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
        """Run calls, and give what came of each, in their order.

        Raises:
            UnavailableError: something could not be recorded; all else was.
            CancelledError: the run was; what had begun is recorded as cancelled.
        """
        try:
            for number, call in enumerate(calls):
                await self._start(number, call)
            for group in self._groups(calls):
                ran = await asyncio.gather(*map(self._run, group), return_exceptions=True)
                for error in filter(None, ran):
                    raise error
        finally:
            await self._end_what_is_open()
        return [self.finished[number] for number in range(len(calls))]

    async def refuse(self, calls: Sequence[ToolCall], reason: str) -> list[Finished]:
        """Record calls that do not run, and why."""
        self._refusal = error_of_refusal(refused_by="run_agent", reason=reason)
        return await self.run(calls)

    def _groups(self, calls: Sequence[ToolCall]) -> list[list[int]]:
        """The numbers of calls that run side by side, in the order of the groups."""
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
        call, _ = self._open[number]
        outputs: list[CompleteOutput] = []
        refused = self._refusal or self.toolbox.refusal_of(call.tool_name)
        try:
            if refused is not None:
                outputs.append(CompleteOutput.failure(call.tool_name, refused))
                return
            tool = self.toolbox.offered[call.tool_name]
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

    async def _end_what_is_open(self) -> None:
        """Record calls that were started and did not come to their turn: all, whatever happens.

        Raises:
            BaseException: the first that came up meanwhile.
        """
        failure: BaseException | None = None
        for number, (call, _) in list(self._open.items()):
            output = CompleteOutput.failure(call.tool_name, error_of_cancellation())
            try:
                await self._finish(number, output)
            except BaseException as error:  # noqa: BLE001  it is raised when all are ended
                failure = failure or error
        if failure is not None:
            raise failure


def _awaited(tool: AgentTool) -> Callable[[Any], Awaitable[object]]:
    """The handler as something to be awaited: an ordinary function runs in a thread of its own."""
    if tool.is_awaited:
        return cast("Callable[[Any], Awaitable[object]]", tool.handler)

    async def handle(arguments: Any) -> object:
        value = await _in_thread(partial(tool.handler, arguments))
        return await value if inspect.isawaitable(value) else value

    return handle


async def to_end(recording: Awaitable[T]) -> T:
    """Wait until something is recorded.

    A cancellation meanwhile goes on afterwards: what is begun in the record is known here.

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
        except Exception:  # noqa: BLE001  it is raised below, where nothing is left behind
            break
    if cancelled is not None:
        if doing.exception() is not None:
            cancelled.add_note(f"not recorded: {doing.exception()}")
        raise cancelled
    return doing.result()


async def _in_thread(task: Callable[[], T]) -> T:
    """Call a function in a thread of its own, and give what it gives.

    A function that hangs cannot be stopped. Its waiter can be, and the thread keeps neither the
    loop nor the program from their end, as one of `asyncio.to_thread` would.
    """
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            done.set_result(context.run(task))
        except BaseException as error:  # noqa: BLE001  it is raised where it is waited for
            done.set_exception(_raisable(error))

    threading.Thread(target=work, name="tooltrail-tool", daemon=True).start()
    return await asyncio.wrap_future(done)


def _raisable(error: BaseException) -> BaseException:
    """The error as a future can hold it, which takes no `StopIteration`."""
    if isinstance(error, StopIteration):
        return RuntimeError(f"the function raised {error!r}")
    return error
