"""Cancellation and timeouts of handlers that are awaited, with real tasks."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn

import pytest
from tests.records.failing import (
    CALL,
    Records,
    awaited,
    details_of,
    error_of,
    giving,
    refusing,
    sleep,
)
from tests.support.outputs import returned

from tooltrail.records import CompleteOutput, ToolCall, ainvoke


def test_a_cancelled_task_is_recorded_before_it_is_over() -> None:
    async def main() -> None:
        records = Records()
        task = asyncio.create_task(ainvoke(sleep, CALL, records))
        await asyncio.sleep(0)
        task.cancel("the user left")
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelled()
        assert records[0].final_state == "cancelled"
        details = details_of(records.error)
        assert details["reason"] == "the user left"
        assert details["exception"] == "asyncio.exceptions.CancelledError"
        assert details["traceback"][-1].endswith(" sleep")

    asyncio.run(main())


def test_a_task_that_is_cancelled_before_it_begins_did_not_run() -> None:
    async def main() -> None:
        records = Records()
        task = asyncio.create_task(ainvoke(sleep, CALL, records))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert records == []

    asyncio.run(main())


def test_a_failing_task_of_a_group_cancels_its_tools_and_all_are_recorded() -> None:
    async def fail() -> NoReturn:
        await asyncio.sleep(0)
        raise RuntimeError("the agent is broken")

    async def fan_out(records: Records) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(ainvoke(sleep, CALL, records))
            group.create_task(fail())

    async def main() -> None:
        records = Records()
        with pytest.raises(ExceptionGroup) as caught:
            await fan_out(records)
        assert [str(error) for error in caught.value.exceptions] == ["the agent is broken"]
        assert [error_of(output).kind for output in records] == ["cancelled"] * 3

    asyncio.run(main())


def test_a_failing_tool_does_not_cancel_the_group_that_it_runs_in() -> None:
    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            failing = group.create_task(ainvoke(awaited(refusing(OSError())), CALL, Records()))
            working = group.create_task(ainvoke(awaited(giving("done")), CALL, Records()))
        assert failing.result().status == "error"
        assert working.result() == returned("Tool", "done")

    asyncio.run(main())


def test_the_caller_s_own_timeout_stays_the_caller_s() -> None:
    async def main() -> None:
        records = Records()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await ainvoke(sleep, CALL, records, timeout_ms=3_600_000)
        assert records.error.kind == "cancelled"

    asyncio.run(main())


def timed(
    handler: Callable[[dict[str, Any]], Awaitable[object]], timeout_ms: int = 20
) -> CompleteOutput:
    """What a handler comes to within its time; the task goes on uncancelled."""

    async def main() -> CompleteOutput:
        records = Records()
        output = await ainvoke(handler, CALL, records, timeout_ms=timeout_ms)
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        await asyncio.sleep(0)
        assert records == [output]
        return output

    return asyncio.run(main())


def test_a_handler_that_is_not_done_in_time_timed_out() -> None:
    error = error_of(timed(sleep))
    assert error.kind == "tool_timed_out"
    assert error.message == "the tool timed out after 0.02 s"
    assert error.details == {"timeout_ms": 20}


def test_a_handler_that_is_done_in_time_is_not_stopped() -> None:
    async def handler(_: object) -> str:
        await asyncio.sleep(0)
        return "all of it"

    assert timed(handler, 60_000) == returned("Tool", "all of it")


def test_a_timeout_of_the_handler_s_own_is_its_own_failure() -> None:
    async def handler(_: object) -> None:
        async with asyncio.timeout(0):
            await asyncio.sleep(3600)

    error = error_of(timed(handler, 60_000))
    assert error.kind == "tool_execution_failed"
    assert error.message == "TimeoutError"


def test_what_a_handler_raises_when_it_is_stopped_is_part_of_the_timeout() -> None:
    async def handler(_: object) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            raise RuntimeError("while cleaning up")

    error = error_of(timed(handler))
    assert error.kind == "tool_timed_out"
    details = details_of(error)
    assert details["timeout_ms"] == 20
    assert details["raised"] == "RuntimeError: while cleaning up"
    assert details["traceback"][-1].endswith(" handler")
    *_, cause = details["related"]  # since Python 3.13, the TimeoutError stands before it
    assert cause["raised"] == "asyncio.exceptions.CancelledError"
    assert any(line.endswith(" sleep") for line in cause["traceback"])


def test_a_handler_that_ends_the_program_when_it_is_stopped_does_not() -> None:
    async def handler(_: object) -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            raise SystemExit(1) from None

    assert error_of(timed(handler)).message.startswith("the tool tried to end the program")


def test_a_handler_that_returns_a_value_when_it_is_stopped_is_done() -> None:
    async def handler(_: object) -> str:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            return "half of it"
        return "all of it"

    assert timed(handler) == returned("Tool", "half of it")


def test_a_cancellation_together_with_the_timeout_goes_on() -> None:
    async def main() -> None:
        records = Records()
        waiting = asyncio.Event()

        async def handler(_: object) -> None:
            try:
                await asyncio.sleep(3600)
            finally:
                waiting.set()
                await asyncio.sleep(3600)

        task = asyncio.create_task(ainvoke(handler, CALL, records, timeout_ms=1))
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert records.error.kind == "cancelled"

    asyncio.run(main())


def test_a_cancellation_that_cannot_be_recorded_is_one_all_the_same() -> None:
    async def main() -> None:
        task = asyncio.create_task(ainvoke(sleep, CALL, refusing(OSError("disk"))))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    asyncio.run(main())


@pytest.mark.parametrize("timeout_ms", [0, -1, 10**21, 1.5, "20"])
def test_an_impossible_time_limit_is_refused_before_the_handler_runs(timeout_ms: Any) -> None:
    async def handler(_: object) -> str:
        raise AssertionError("it was called")

    call = ToolCall(tool_name="Tool")
    with pytest.raises(ValueError, match="timeout_ms must be "):
        asyncio.run(ainvoke(handler, call, lambda output: output, timeout_ms=timeout_ms))
