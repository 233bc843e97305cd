"""Runs one child to its end with the parts of this package."""

import fcntl
import os
import selectors
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from tooltrail.cli._process.jobs import Job, is_in_foreground, open_terminal
from tooltrail.cli._process.loop import Agenda, Loop
from tooltrail.cli._process.outcome import (
    CANNOT_RUN,
    ChildExit,
    ChunkHandler,
    SpawnFailure,
)
from tooltrail.cli._process.outlet import STANDARD_FDS, open_outlets
from tooltrail.cli._process.pump import Pump
from tooltrail.cli._process.relay import SignalRelay
from tooltrail.cli._process.spawn import failure_of, spawn

if TYPE_CHECKING:
    from tooltrail.cli._process.pseudo_terminal import PseudoTerminal


def run_child(
    argv: Sequence[str],
    *,
    on_chunk: ChunkHandler,
    on_idle: Callable[[], None],
    cwd: str | None = None,
    timeout_s: float | None = None,
    grace_s: float = 5.0,
    has_terminal: bool = False,
    inherited: int = -1,
) -> ChildExit:
    """Run a command like a shell, pass its output to `on_chunk`, and print it unchanged.

    Each chunk goes to `on_chunk` first and then to our own standard output or error. The call
    returns when the child has ended **and** both of its streams are at their end, like `cmd | cat`:
    a background process that keeps a stream open keeps the call waiting. The call does not wait for
    it after the time limit, or after a signal that arrives when the child has ended.

    The signals of `relay.ENDING_SIGNALS` are forwarded to the process group of the child and do not
    end this process. If the reader of our own output closes the pipe, the pipe of the child is
    closed. Bytes are written directly to descriptors 1 and 2: flush `sys.stdout` first. For the
    main thread only.

    Args:
        argv: command and arguments; no shell is involved.
        on_chunk: receives the name of a stream and bytes of it. An exception is returned in
            `recorder_error` and ends the recording, not the child.
        on_idle: called about once a second while the child runs.
        cwd: working folder of the child; None for ours.
        timeout_s: seconds after which the group gets SIGTERM.
        grace_s: seconds after that SIGTERM until the group gets SIGKILL.
        has_terminal: whether the child gets a pseudo-terminal. All its output is then `stdout`.
        inherited: descriptor that the child keeps open until it ends; -1 for none.

    Raises:
        SpawnFailure: the command could not be started.
    """
    outlets = open_outlets()
    with ExitStack() as stack:
        try:
            relay = stack.enter_context(SignalRelay())
            selector = stack.enter_context(selectors.DefaultSelector())
            agenda = Agenda(time.monotonic(), timeout_s, grace_s)
            pump = Pump(selector, outlets, on_chunk)
            stack.callback(pump.close)
            pty = stack.enter_context(_pseudo_terminal(argv[0], selector)) if has_terminal else None
            with _inherited(inherited):
                child, sources = spawn(argv, cwd, pty)
        except OSError as error:  # the system has no descriptor left
            raise failure_of(error, argv, cwd) from error
        stack.callback(child.destroy)
        pump.start(sources)
        job = pty.job(child) if pty else Job(child, stack.enter_context(open_terminal()))
        stack.callback(job.finish)
        relay.attach(child)
        job.start()
        loop = Loop(child, pump, job, relay, selector=selector, agenda=agenda, on_idle=on_idle)
        return loop.run()


def is_on_terminal() -> bool:
    """Whether our output goes to a terminal, and we are in its foreground."""
    return all(map(is_in_foreground, STANDARD_FDS.values()))


@contextmanager
def _pseudo_terminal(program: str, selector: selectors.BaseSelector) -> "Generator[PseudoTerminal]":
    """Open a terminal for the child, and close it at the end of the block."""
    from tooltrail.cli._process import pseudo_terminal  # noqa: PLC0415  few commands have one

    try:
        pty = pseudo_terminal.PseudoTerminal(selector)
    except OSError as error:
        message = f"no terminal can be opened for {program!r}: {error.strerror}"
        raise SpawnFailure("command_spawn_failed", CANNOT_RUN, message) from error
    try:
        yield pty
    finally:
        pty.close()


@contextmanager
def _inherited(fd: int) -> Generator[None]:
    """Let a child that is started in the block inherit a descriptor."""
    if fd < 0:
        yield
        return
    # Shell scripts may use the numbers below 10.
    copy = fcntl.fcntl(fd, fcntl.F_DUPFD, 10)
    try:
        yield
    finally:
        os.close(copy)
