"""The work of `tooltrail exec`: start in the store, run, finish in the store, mirror the status.

What happens to the command never depends on the record: once it has been started it runs to its
end and its status is mirrored, and a record that could not be finished stays in the store as
started, with the captured output in the spool, which is said on stderr.
"""

import shlex
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from pydantic import JsonValue

from tooltrail.cli._failures import say_error
from tooltrail.cli._location import Location
from tooltrail.cli._output import say
from tooltrail.cli._process import ChildExit, SpawnFailure, StreamName, run_child
from tooltrail.records import (
    CommandOutput,
    CompleteOutput,
    StreamRecord,
    ToolCall,
    ToolError,
    TooltrailError,
    command_completed,
)
from tooltrail.store import Invocation, Session, Store

_TICK_MS = 100
"""Chunks of one stream within this time are one line of the order."""

_UNKNOWN_STATUS = 255
"""Recorded when somebody else reaped the child, so that nobody knows how it ended."""

_FD = {"stdout": 1, "stderr": 2}


@dataclass(frozen=True, slots=True)
class Request:
    """What to run, and under which name to record it.

    Attributes:
        argv: the command and its arguments.
        cwd: the folder to run in, ours when None.
        timeout_s: seconds it may run.
        grace_s: seconds between SIGTERM and SIGKILL at the timeout.
        tool_name: to record.
        call_id: to record.
    """

    argv: tuple[str, ...]
    cwd: str | None
    timeout_s: float | None
    grace_s: float
    tool_name: str
    call_id: str | None

    @property
    def command_line(self) -> str:
        """The command as a shell would spell it."""
        return shlex.join(self.argv)

    @property
    def timeout_ms(self) -> int | None:
        """The timeout as it is recorded."""
        return None if self.timeout_s is None else round(self.timeout_s * 1000)

    def to_call(self) -> ToolCall:
        """The tool call that is recorded."""
        arguments: dict[str, JsonValue] = {"argv": list(self.argv)}
        if self.cwd is not None:
            arguments["cwd"] = self.cwd
        if self.timeout_ms is not None:
            arguments["timeout_ms"] = self.timeout_ms
        call = ToolCall.of(self.tool_name, arguments, call_id=self.call_id)
        return call.model_copy(update={"title": self.command_line})


class StreamCapture:
    """Both streams of one invocation, and the order in which their chunks came."""

    def __init__(self, invocation: Invocation) -> None:
        self._invocation = invocation
        self._streams = {name: invocation.capture(name) for name in _FD}
        self._order = invocation.capture("order")
        self._began = time.monotonic()
        self._last: tuple[StreamName, int, int] | None = None

    def write(self, name: StreamName, chunk: bytes | memoryview) -> None:
        """Take a chunk in; see `ChunkHandler`."""
        self._streams[name].write(chunk)
        at = int((time.monotonic() - self._began) * 1000)
        last = self._last
        if last is not None and last[0] == name and at - last[2] < _TICK_MS:
            self._last = (name, last[1] + len(chunk), last[2])
        else:
            self._write_order()
            self._last = (name, len(chunk), at)

    def flush(self) -> None:
        """Make what came so far readable from the spool."""
        for capture in self._streams.values():
            capture.flush()

    def close(self) -> dict[str, StreamRecord]:
        """End all streams; their records by role."""
        self._write_order()
        captures = {**self._streams, "order": self._order}
        return {
            name: self._invocation.captured(capture.close()) for name, capture in captures.items()
        }

    def _write_order(self) -> None:
        if self._last is not None:
            name, size, at = self._last
            self._order.write(f"{_FD[name]} {size} {at}\n".encode())


def run_recorded(
    location: Location, session_name: str | None, request: Request, *, verbose: bool
) -> int:
    """Run a command and record it; the exit code mirrors the command's.

    Raises:
        TooltrailError: the start could not be recorded, so nothing was run.
    """
    with location.open() as store, _session(store, session_name) as session:
        invocation = session.start(request.to_call())
        capture = StreamCapture(invocation)
        try:
            ended = run_child(
                request.argv,
                on_chunk=capture.write,
                on_idle=capture.flush,
                cwd=request.cwd,
                timeout_s=request.timeout_s,
                grace_s=request.grace_s,
            )
        except SpawnFailure as failure:
            say(f"tooltrail: {failure.message}")
            output, code = _not_started(request, failure), failure.exit_code
        else:
            output, code = _ended(request, ended, capture), ended.mirrored
        _finish(invocation, output, verbose=verbose)
    return code


@contextmanager
def _session(store: Store, name: str | None) -> Generator[Session]:
    """The session that was named, else one of our own that is closed at the end."""
    if name is not None:
        yield store.join_session(store.reader.session(name).id)
        return
    session = store.open_session()
    yield session
    try:
        session.close()
    except TooltrailError as error:
        say_error(error)


def _finish(invocation: Invocation, output: CompleteOutput, *, verbose: bool) -> None:
    try:
        invocation.finish(output)
    except TooltrailError as error:
        say_error(error)
        say(
            f"tooltrail: invocation {invocation.id} stays in the store as started; "
            f"its output is kept in {invocation.spool}"
        )
    else:
        if verbose:
            say(f"tooltrail: recorded {invocation.id}")


def _ended(request: Request, ended: ChildExit, capture: StreamCapture) -> CompleteOutput:
    streams = capture.close()
    if ended.recorder_error is not None:
        say(f"tooltrail: recording stopped early: {ended.recorder_error}")
    if ended.tee_error is not None:
        say(f"tooltrail: output could not be passed on: {ended.tee_error.strerror}")
    exit_status = ended.exit_status
    if exit_status is None and ended.signal is None:
        exit_status = _UNKNOWN_STATUS
    result = CommandOutput(
        command=request.command_line,
        cwd=request.cwd,
        exit_status=exit_status,
        signal=ended.signal,
        timed_out=ended.timed_out,
        timeout_ms=request.timeout_ms if ended.timed_out else None,
        stdout=streams["stdout"],
        stderr=streams["stderr"],
        order=streams["order"],
    )
    return command_completed(request.tool_name, result)


def _not_started(request: Request, failure: SpawnFailure) -> CompleteOutput:
    details: dict[str, JsonValue] = {"argv": list(request.argv), "cwd": request.cwd}
    error = ToolError(kind=failure.kind, message=failure.message, details=details)
    return CompleteOutput.failure(request.tool_name, error)
