"""Runs a program with a time limit, and ends everything that the program started.

The program has a process group of its own. The group is killed when the program ends. A thread
watches the program, because asyncio reports the end of a process differently in each version of
Python when other processes hold its pipes.
"""

import asyncio
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import IO, Protocol

_POLL_S = 0.01
"""Seconds between two checks of a process that prints nothing."""

_DRAIN_S = 1.0
"""Seconds to wait for processes that left the group and still hold a pipe."""

_READ_SIZE = 1 << 16


class Writer(Protocol):
    """Takes the bytes that a program prints."""

    def write(self, data: bytes, /) -> object:
        """Take the next bytes."""
        ...


@dataclass(frozen=True, slots=True)
class Ended:
    """A program that ended.

    Attributes:
        status: as `subprocess` spells it: negative for a signal.
        timed_out: whether the program was killed at its time limit.
    """

    status: int
    timed_out: bool


async def run_process(
    command: Sequence[str],
    *,
    cwd: Path | None,
    environment: Mapping[str, str],
    timeout_ms: int,
    stdout: Writer,
    stderr: Writer,
    stdin: IO[bytes] | None = None,
) -> Ended:
    """Run a program. When this returns or is cancelled, it has ended, and its output is written.

    Args:
        command: the program and its arguments.
        cwd: its working folder; None for the current folder.
        environment: its environment variables.
        timeout_ms: its time limit in milliseconds.
        stdout: takes its output, in another thread.
        stderr: takes its errors, in another thread.
        stdin: its standard input; empty by default.

    Raises:
        OSError: the program cannot be started.
        ValueError: the command has a NUL.
    """
    stop = Event()

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command,
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL if stdin is None else stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )

    outputs = (stdout, stderr)
    work = asyncio.ensure_future(asyncio.to_thread(_run, start, outputs, timeout_ms, stop))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        stop.set()
        while not work.done():  # at most `_DRAIN_S`
            with suppress(asyncio.CancelledError):
                await asyncio.wait([work])
        work.exception()
        raise


def _run(
    start: Callable[[], subprocess.Popen[bytes]],
    outputs: Sequence[Writer],
    timeout_ms: int,
    stop: Event,
) -> Ended:
    if stop.is_set():
        raise InterruptedError("cancelled before it was started")
    # The wait for a thread does not count.
    deadline = time.monotonic() + timeout_ms / 1000
    process = start()
    with process, selectors.DefaultSelector() as pipes:
        try:
            for pipe, output in zip((process.stdout, process.stderr), outputs, strict=True):
                assert pipe is not None
                pipes.register(pipe, selectors.EVENT_READ, output)
            timed_out = not _watch(process, pipes, deadline, stop)
        finally:
            # Before `wait`, no other process group can have this number.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        _drain(pipes)
        status = process.wait()
    return Ended(status, timed_out and not stop.is_set())


def _watch(
    process: subprocess.Popen[bytes], pipes: selectors.BaseSelector, deadline: float, stop: Event
) -> bool:
    """Read until the process has ended; False if it was still running at its deadline."""
    while not _has_ended(process):
        if stop.is_set() or time.monotonic() >= deadline:
            return False
        _read(pipes, _POLL_S)
    return True


def _drain(pipes: selectors.BaseSelector) -> None:
    """Read to the end of the pipes, for `_DRAIN_S` seconds at most."""
    deadline = time.monotonic() + _DRAIN_S
    while pipes.get_map() and time.monotonic() < deadline:
        _read(pipes, _POLL_S)


def _read(pipes: selectors.BaseSelector, timeout_s: float) -> None:
    if not pipes.get_map():
        time.sleep(timeout_s)  # a selector without files returns at once on some systems
    for key, _ in pipes.select(timeout_s):
        data = os.read(key.fd, _READ_SIZE)
        if data:
            key.data.write(data)
        else:
            pipes.unregister(key.fileobj)


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    if not hasattr(os, "waitid"):
        return process.poll() is not None
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
