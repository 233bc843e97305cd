"""Running one child to its end: where the parts of this package are put together."""

import selectors
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial

from tooltrail.cli._process.clock import Agenda
from tooltrail.cli._process.jobs import Job
from tooltrail.cli._process.loop import Loop
from tooltrail.cli._process.outcome import ChildExit, ChunkHandler
from tooltrail.cli._process.outlet import open_outlets
from tooltrail.cli._process.pump import Pump
from tooltrail.cli._process.recorder import Recorder
from tooltrail.cli._process.relay import SignalRelay
from tooltrail.cli._process.spawn import spawn
from tooltrail.cli._process.terminal import open_terminal


def run_child(
    argv: Sequence[str],
    *,
    on_chunk: ChunkHandler,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    timeout_s: float | None = None,
    grace_s: float = 5.0,
    on_started: Callable[[int], None] | None = None,
    on_idle: Callable[[], None] | None = None,
) -> ChildExit:
    """Run a command as the shell would, hand its output to `on_chunk`, and pass it on untouched.

    Each chunk goes to `on_chunk` first and then to our own standard output or error. The call
    returns when the child has ended **and** both of its streams are at their end, as `cmd | cat`
    would: a background process that keeps a stream open keeps the call waiting. It does not wait
    so when the time limit strikes, or when a signal arrives after the child itself has ended.

    SIGINT, SIGTERM, SIGHUP and SIGQUIT are forwarded to the child's process group and do not end
    this process; nothing is forwarded unless this is the main thread. When the reader of our own
    output goes away, the child's pipe is closed and it meets that itself. Bytes are written
    straight to descriptors 1 and 2: flush `sys.stdout` before.

    Args:
        argv: the command and its arguments; no shell is involved.
        on_chunk: takes the name of a stream and bytes of it. An exception from it is given back
            in `recorder_error` and ends the recording, not the child.
        cwd: the child's working folder; ours when None.
        env: the child's whole environment; ours when None.
        timeout_s: seconds after which the group gets SIGTERM.
        grace_s: seconds after that SIGTERM until the group gets SIGKILL.
        on_started: is told the process id, once.
        on_idle: called about once a second while the child runs.

    Raises:
        SpawnFailure: the command could not be started.
    """
    outlets = open_outlets()
    with ExitStack() as stack:
        relay = stack.enter_context(SignalRelay())
        selector = stack.enter_context(selectors.DefaultSelector())
        recorder = Recorder(on_chunk, on_idle)
        agenda = Agenda(time.monotonic(), timeout_s, grace_s)
        pump = Pump(selector, outlets, recorder)
        stack.callback(pump.close)
        spawned = spawn(argv, cwd, env)
        child = spawned.child
        stack.callback(child.destroy)
        pump.start({"stdout": spawned.stdout, "stderr": spawned.stderr})
        job = Job(child, stack.enter_context(open_terminal()))
        stack.callback(job.finish)
        relay.attach(child)
        job.start()
        if on_started is not None:
            recorder.guard(partial(on_started, child.pid))
        loop = Loop(
            child=child,
            pump=pump,
            job=job,
            relay=relay,
            selector=selector,
            recorder=recorder,
            agenda=agenda,
        )
        loop.run()
        return loop.outcome()
