"""`shell:run` on real processes: those that hang, leave others behind, or print without end."""

import asyncio
import json
import os
import threading
import time
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast
from uuid import UUID

import pytest
from tests.support.agents.calling import error_of, result_of, text_of
from tests.support.waiting import until

from tooltrail.agents import AgentTool, running_call
from tooltrail.records import CommandOutput, ErrorKind, ToolCall, ainvoke
from tooltrail.store import Store
from tooltrail.workspace import workspace_tools
from tooltrail.workspace.commands import MAX_KEPT


def shell(root: Path) -> AgentTool:
    return workspace_tools(root, allow_commands=True)["shell:run"]


def run(root: Path, command: str, **arguments: int) -> CommandOutput:
    return result_of(CommandOutput, shell(root), command=command, **arguments)


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def begun(tool: AgentTool, command: str) -> asyncio.Task[object]:
    result = tool.handler({"command": command})
    assert isinstance(result, Coroutine)
    return asyncio.create_task(cast("Coroutine[None, None, object]", result))


def pid_in(file: Path) -> int:
    until(lambda: file.exists() and file.read_text().endswith("\n"))
    return int(file.read_text())


def test_a_command_is_run_in_the_folder_and_told_whole(tmp_path: Path) -> None:
    output = run(tmp_path, "pwd; echo bad >&2; printf 'no end'; exit 3")
    assert (output.exit_status, output.signal, output.timed_out) == (3, None, False)
    assert (output.command, output.cwd) == (
        "pwd; echo bad >&2; printf 'no end'; exit 3",
        str(tmp_path.resolve()),
    )
    assert text_of(output.stdout) == f"{tmp_path.resolve()}\nno end"
    assert text_of(output.stderr) == "bad\n"
    assert output.stdout is not None
    assert output.stdout.produced_line_count == 2
    assert shell(tmp_path).has_side_effects


def test_there_is_nothing_to_read_for_it(tmp_path: Path) -> None:
    assert run(tmp_path, "cat; echo done").exit_status == 0


def test_a_command_that_ends_itself_by_a_signal_is_told_so(tmp_path: Path) -> None:
    output = run(tmp_path, "echo before; kill -SEGV $$")
    assert (output.exit_status, output.signal, output.timed_out) == (None, 11, False)
    assert text_of(output.stdout) == "before\n"


def test_a_command_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    command = (
        "sleep 600 & echo $! > pid; trap '' TERM INT HUP; echo begun; while :; do sleep 1; done"
    )
    output = run(tmp_path, command, timeout_ms=6_000)
    assert (output.exit_status, output.signal) == (None, 9)
    assert (output.timed_out, output.timeout_ms) == (True, 6_000)
    assert text_of(output.stdout) == "begun\n"
    until(lambda: not is_running(pid_in(tmp_path / "pid")))


def test_what_a_command_leaves_behind_is_ended_with_it(tmp_path: Path) -> None:
    output = run(tmp_path, "sleep 600 & echo $! > pid; echo done", timeout_ms=60_000)
    assert (output.exit_status, output.timed_out) == (0, False)
    assert text_of(output.stdout) == "done\n"
    until(lambda: not is_running(pid_in(tmp_path / "pid")))


def test_who_leaves_the_group_and_holds_the_pipe_is_not_waited_for(tmp_path: Path) -> None:
    leave = "setsid sh -c 'echo $$ > pid; exec sleep 600' &"
    wait = "while [ ! -s pid ]; do sleep 0.01; done"
    output = run(tmp_path, f"{leave} {wait}; echo done", timeout_ms=60_000)
    pid = pid_in(tmp_path / "pid")
    try:
        assert text_of(output.stdout) == "done\n"
        assert is_running(pid)
    finally:
        os.kill(pid, 9)


def test_what_is_printed_beyond_the_bound_is_counted(tmp_path: Path) -> None:
    size = MAX_KEPT + 12_345
    output = run(tmp_path, f"yes | head -c {size}; echo short >&2")
    assert output.stdout is not None
    assert (output.stdout.size, output.stdout.produced_size) == (MAX_KEPT, size)
    assert output.stdout.loss_reason == "more than 16 MiB"
    # `yes` prints lines of two bytes, and the size is odd.
    assert output.stdout.produced_line_count == (size + 1) // 2
    assert text_of(output.stderr) == "short\n"


def test_a_command_that_prints_without_end_is_ended_in_time(tmp_path: Path) -> None:
    output = run(tmp_path, "yes", timeout_ms=1_500)
    assert output.timed_out
    assert output.stdout is not None
    assert output.stdout.produced_size > 0


def test_a_cancelled_command_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    async def main() -> None:
        task = begun(shell(tmp_path), "sleep 600 & echo $! > child; echo $$ > parent; wait")
        await asyncio.to_thread(pid_in, tmp_path / "parent")
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()  # whoever gives up twice is not faster
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not is_running(pid_in(tmp_path / "parent"))

    asyncio.run(main())
    until(lambda: not is_running(pid_in(tmp_path / "child")))


def test_a_cancelled_command_of_a_tool_loop_keeps_its_output(tmp_path: Path, store: Store) -> None:
    tool = shell(tmp_path)
    command = {"command": "echo so far; echo err >&2; echo $$ > pid; sleep 600"}
    call = ToolCall(tool_name=tool.name, arguments_raw=json.dumps(command))

    async def main() -> UUID:
        invocation = await session.astart(call)
        running_call.set(invocation)
        task = asyncio.create_task(ainvoke(tool.handler, call, invocation.finish, parse=tool.parse))
        await asyncio.to_thread(pid_in, tmp_path / "pid")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return invocation.id

    with store.open_session() as session:
        name = asyncio.run(main())
        detail = store.reader.invocation(name)
    assert detail.summary.state == "cancelled"
    read = {one.role: store.reader.open_stream(one).read() for one in detail.streams}
    assert read == {"stdout": b"so far\n", "stderr": b"err\n"}


def test_commands_of_a_tool_loop_run_at_the_same_time(tmp_path: Path, store: Store) -> None:
    tool = shell(tmp_path)

    async def loop(word: str) -> UUID:
        command = {"command": f"echo {word}"}
        call = ToolCall(tool_name=tool.name, arguments_raw=json.dumps(command))
        invocation = await session.astart(call)
        running_call.set(invocation)
        await ainvoke(tool.handler, call, invocation.finish, parse=tool.parse)
        return invocation.id

    async def main() -> tuple[UUID, UUID]:
        return await asyncio.gather(loop("one"), loop("two"))

    with store.open_session() as session:
        details = [store.reader.invocation(name) for name in asyncio.run(main())]
    stored = [store.reader.open_stream(one.streams[0]).read() for one in details]
    assert stored == [b"one\n", b"two\n"]


def test_a_command_that_was_given_up_before_it_began_does_not_run(tmp_path: Path) -> None:
    async def main() -> None:
        release = threading.Event()
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        busy = loop.run_in_executor(None, release.wait)
        task = begun(shell(tmp_path), "touch ran")
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        release.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        await busy

    asyncio.run(main())
    assert list(tmp_path.iterdir()) == []


def test_the_time_before_a_command_can_be_started_is_not_its_own(tmp_path: Path) -> None:
    async def main() -> object:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        busy = loop.run_in_executor(None, time.sleep, 2.1)
        result = shell(tmp_path).handler({"command": "sleep 0.2", "timeout_ms": 2_000})
        assert isinstance(result, Coroutine)
        output = await cast("Coroutine[None, None, object]", result)
        await busy
        return output

    output = asyncio.run(main())
    assert isinstance(output, CommandOutput)
    assert (output.exit_status, output.timed_out) == (0, False)


def test_the_timeout_of_a_call_ends_the_command_too(tmp_path: Path) -> None:
    tool = shell(tmp_path)
    call = ToolCall(tool_name=tool.name, arguments_raw='{"command": "echo $$ > pid; sleep 600"}')
    output = asyncio.run(
        ainvoke(tool.handler, call, lambda output: output, parse=tool.parse, timeout_ms=6_000)
    )
    assert output.error is not None
    assert output.error.kind == ErrorKind.TOOL_TIMED_OUT
    assert not is_running(pid_in(tmp_path / "pid"))


def test_a_command_is_not_given_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROBE_API_KEY", "hidden")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "seen")
    output = run(tmp_path, 'echo "$PROBE_API_KEY/$GIT_AUTHOR_NAME"')
    assert text_of(output.stdout) == "/seen\n"


def test_what_cannot_be_started_is_an_error(tmp_path: Path) -> None:
    tool = shell(tmp_path)
    assert error_of(tool, command="echo \0").kind == ErrorKind.TOOL_EXECUTION_FAILED
    assert error_of(tool, command="").kind == ErrorKind.INVALID_TOOL_INPUT
    tmp_path.rmdir()
    assert error_of(tool, command="true").kind == ErrorKind.TOOL_EXECUTION_FAILED
