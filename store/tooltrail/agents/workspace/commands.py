"""Commands of an agent: run by the shell in one folder, ended with everything that they started."""

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

from tooltrail.records import CommandOutput, StreamRecord

_AFTER_KILL_S = 2.0
"""How long output is waited for when all of a command's processes were killed."""


class CommandTool:
    """The handler that runs commands.

    Attributes:
        root: the folder that they run in.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    async def run(self, arguments: dict[str, Any]) -> CommandOutput:
        """Run a command to its end, or to the end of its time, and give all that it printed.

        Its standard input is empty. When it ends, or this is cancelled, all processes of its group
        are killed: nothing goes on behind the back of the agent. Output is held in memory.
        """
        command: str = arguments["command"]
        timeout_ms: int | None = arguments.get("timeout_ms")
        process = await asyncio.create_subprocess_exec(
            "/bin/sh",
            "-c",
            command,
            cwd=self.root,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        reading = asyncio.ensure_future(_read_all(process))
        timed_out = False
        try:
            async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
                await asyncio.shield(reading)
        except TimeoutError:
            timed_out = True
        finally:
            _kill_group(process.pid)
            stdout, stderr = await _rest(reading)
            await process.wait()
        status = process.returncode
        return CommandOutput(
            command=command,
            cwd=str(self.root),
            exit_status=status if status is not None and status >= 0 else None,
            signal=-status if status is not None and status < 0 else None,
            timed_out=timed_out,
            timeout_ms=timeout_ms,
            stdout=StreamRecord.from_bytes("stdout", stdout),
            stderr=StreamRecord.from_bytes("stderr", stderr),
        )


async def _read_all(process: asyncio.subprocess.Process) -> tuple[bytearray, bytearray]:
    assert process.stdout is not None
    assert process.stderr is not None
    outputs = bytearray(), bytearray()
    readers = zip((process.stdout, process.stderr), outputs, strict=True)
    await asyncio.gather(*(_read(reader, output) for reader, output in readers))
    await process.wait()
    return outputs


async def _read(reader: asyncio.StreamReader, output: bytearray) -> None:
    while piece := await reader.read(1 << 16):
        output += piece


async def _rest(reading: "asyncio.Future[tuple[bytearray, bytearray]]") -> tuple[bytes, bytes]:
    """All that was printed; of what a process prints that left the group, what came in time."""
    try:
        async with asyncio.timeout(_AFTER_KILL_S):
            stdout, stderr = await asyncio.shield(reading)
    except TimeoutError:
        reading.cancel()
        with suppress(asyncio.CancelledError):
            await reading
        return b"", b""
    return bytes(stdout), bytes(stderr)


def _kill_group(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
