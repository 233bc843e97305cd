"""The work of `tooltrail exec`: start in the store, run, finish in the store, mirror the status.

What happens to the command never depends on the record: once it has been started it runs to its
end and its status is mirrored, and a record that could not be finished stays in the store as
started, with the captured output in the spool, which is said on stderr.
"""

import shlex
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from pydantic import JsonValue

from tooltrail.artifacts import Capture, CapturedStream
from tooltrail.cli._aside import Aside
from tooltrail.cli._failures import say_error
from tooltrail.cli._location import Location
from tooltrail.cli._output import say
from tooltrail.cli._process import ChildExit, SpawnFailure, held_signals, run_child
from tooltrail.cli._streams import StreamCapture
from tooltrail.records import (
    CommandOutput,
    CompleteOutput,
    StreamRecord,
    ToolCall,
    ToolError,
    TooltrailError,
    UnavailableError,
    command_completed,
)
from tooltrail.store import Invocation, Session, Store

_UNKNOWN_STATUS = 255
"""Recorded when somebody else reaped the child, so that nobody knows how it ended."""


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


def run_recorded(
    location: Location, session_name: str | None, request: Request, *, verbose: bool
) -> int:
    """Run a command and record it; the exit code mirrors the command's.

    When the store is away, the command runs all the same and its record is set aside.

    Raises:
        TooltrailError: there is no such store or session; nothing was run.
    """
    with ExitStack() as stack:
        try:
            store = stack.enter_context(location.open())
            session = stack.enter_context(_session(store, session_name))
            invocation = session.start(request.to_call())
        except UnavailableError as error:
            say_error(error)
            return run_aside(location, request)
        output, code = run_request(request, invocation.capture, invocation.captured)
        _finish(invocation, output, verbose=verbose)
    return code


def run_aside(location: Location, request: Request) -> int:
    """Run a command whose start no store can take, and keep its record in the spool."""
    aside = Aside(location.spool_folder(), request.to_call())
    output, code = run_request(request, aside.capture, aside.captured)
    say(f"tooltrail: {aside.finish(output)}")
    return code


def run_request(
    request: Request,
    capture: Callable[[str], Capture],
    captured: Callable[[CapturedStream], StreamRecord],
) -> tuple[CompleteOutput, int]:
    """Run a command to its end.

    Args:
        request: the command.
        capture: makes the capture of a role.
        captured: takes a closed capture.

    Returns:
        What to record, and the exit code that mirrors the command's.
    """
    streams = StreamCapture(capture)
    try:
        ended = run_child(
            request.argv,
            on_chunk=streams.write,
            on_idle=streams.flush,
            cwd=request.cwd,
            timeout_s=request.timeout_s,
            grace_s=request.grace_s,
        )
    except SpawnFailure as failure:
        say(f"tooltrail: {failure.message}")
        return _not_started(request, failure), failure.exit_code
    _say_faults(ended)
    records = {role: captured(stream) for role, stream in streams.close().items()}
    return _ended(request, ended, records), ended.mirrored


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
        with held_signals():
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


def _say_faults(ended: ChildExit) -> None:
    if ended.recorder_error is not None:
        say(f"tooltrail: recording stopped early: {ended.recorder_error}")
    if ended.tee_error is not None:
        say(f"tooltrail: output could not be passed on: {ended.tee_error.strerror}")


def _ended(
    request: Request, ended: ChildExit, streams: Mapping[str, StreamRecord]
) -> CompleteOutput:
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
