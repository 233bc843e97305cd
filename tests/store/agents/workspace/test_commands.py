"""Commands of an agent: all of their output, and nothing of them left behind."""

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import pytest

from tooltrail.agents import workspace_tools
from tooltrail.records import CommandOutput, StreamRecord


def run(root: Path, command: str, **more: Any) -> CommandOutput:
    async def ran() -> Any:
        tool = workspace_tools(root, allow_commands=True)["shell:run"]
        handled: Any = tool.handler(tool.parse({"command": command, **more}))
        return await handled

    output = asyncio.run(ran())
    assert isinstance(output, CommandOutput)
    return output


def printed(record: StreamRecord | None) -> bytes:
    assert record is not None
    assert record.content is not None
    return record.content


def is_gone(pid: int) -> bool:
    """Whether a process ends; one that was killed may take a moment."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
            if " Z " in Path(f"/proc/{pid}/stat").read_text():
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.01)
    return False


def test_a_command_runs_in_the_folder_without_input(tmp_path: Path) -> None:
    output = run(tmp_path, "pwd; cat; echo err >&2; exit 3")
    assert printed(output.stdout) == f"{tmp_path.resolve()}\n".encode()
    assert printed(output.stderr) == b"err\n"
    assert (output.exit_status, output.signal, output.timed_out) == (3, None, False)


def test_all_of_a_large_output_is_kept(tmp_path: Path) -> None:
    output = run(tmp_path, "head -c 3000000 /dev/zero; head -c 2000000 /dev/zero >&2")
    assert (len(printed(output.stdout)), len(printed(output.stderr))) == (3_000_000, 2_000_000)


def test_a_command_that_ends_by_a_signal_says_so(tmp_path: Path) -> None:
    output = run(tmp_path, "kill -TERM $$")
    assert (output.exit_status, output.signal) == (None, 15)


def test_a_command_whose_time_is_over_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    command = "sleep 60 & echo $! > pid; echo begun; wait"
    output = run(tmp_path, command, timeout_ms=1_000)
    assert (output.timed_out, output.timeout_ms) == (True, 1_000)
    assert printed(output.stdout) == b"begun\n"
    assert is_gone(int((tmp_path / "pid").read_text()))


def test_what_a_command_leaves_in_the_background_is_killed_when_it_ends(tmp_path: Path) -> None:
    output = run(tmp_path, "(sleep 60 >/dev/null 2>&1 & echo $! > pid); echo done")
    assert (output.exit_status, printed(output.stdout)) == (0, b"done\n")
    assert is_gone(int((tmp_path / "pid").read_text()))


def test_cancelling_kills_the_command(tmp_path: Path) -> None:
    async def cancelled() -> None:
        tool = workspace_tools(tmp_path, allow_commands=True)["shell:run"]
        running: Any = tool.handler({"command": "echo $$ > pid; exec sleep 60"})
        task = asyncio.ensure_future(running)
        end = time.monotonic() + 20
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
            assert time.monotonic() < end
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert is_gone(int((tmp_path / "pid").read_text()))
