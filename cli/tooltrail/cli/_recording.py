"""The work of `tooltrail exec`: start in the store, run, finish in the store, mirror the status.

What happens to the command never depends on the record: once it has been started it runs to its
end and its status is mirrored, and a record that could not be finished stays in the store as
started, with the captured output in the spool, which is said on stderr; so is that nobody knows
whether it could.
"""

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from uuid import UUID

from pydantic import JsonValue

from tooltrail.artifacts import Capture, CapturedStream
from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._failures import say_error
from tooltrail.cli._location import Location
from tooltrail.cli._output import say
from tooltrail.cli._process import ChildExit, SpawnFailure, held_signals, run_child
from tooltrail.cli._streams import StreamCapture
from tooltrail.records import (
    DEFAULT_POLICY,
    AccessRefusedError,
    CommandOutput,
    CompleteOutput,
    EndUncertainError,
    NotFoundError,
    Policy,
    StartUncertainError,
    StreamRecord,
    ToolCall,
    ToolError,
    TooltrailError,
    UnavailableError,
)
from tooltrail.store import (
    Aside,
    Durability,
    Invocation,
    Store,
    StoreLimits,
    look_up_store_id,
    open_aside,
    wanted_store,
)


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
        policy: the budgets of the record, the default ones when None.
        limits: how much of the output is kept.
        durability: what the record survives.
    """

    argv: tuple[str, ...]
    cwd: str | None
    timeout_s: float | None
    grace_s: float
    tool_name: str
    call_id: str | None
    policy: Policy | None = None
    limits: StoreLimits | None = None
    durability: Durability = "full"

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

    While the store is away the command runs all the same, and its record waits in the outbox. Where
    that cannot be, since nobody knows which store it is, or which session, it is set aside.

    Raises:
        TooltrailError: there is no such store or session; nothing was run.
    """
    store_id = None
    with ExitStack() as stack:
        try:
            store = stack.enter_context(
                location.open(
                    limits=request.limits,
                    durability=request.durability,
                    on_unavailable="outbox",
                    announce=False,
                )
            )
            store_id = store.info.id
            recording = _begin(store, session_name, request)
        except UnavailableError as error:
            say_error(error)
            return run_aside(location, session_name, request, error, store_id)
        if not recording.invocation.is_recorded:
            say(f"tooltrail: {store.fallback.reason}")
        output, code = run_request(request, recording.invocation.capture, recording.captured)
        recording.finish(output, verbose=verbose)
    return code


def run_aside(
    location: Location,
    session_name: str | None,
    request: Request,
    failure: UnavailableError,
    store_id: UUID | None,
) -> int:
    """Run a command whose start no store could take, and keep its record in the spool.

    Args:
        location: of the store.
        session_name: the session that was named.
        request: the command.
        failure: why it was not started there.
        store_id: of the store, when it could be opened.
    """
    known_id = store_id or look_up_store_id(location.database)
    aside = open_aside(
        location.spool_folders(),
        request.to_call(),
        wanted=wanted_store(location.database, known_id),
        session=session_name,
        family="command",
        policy=request.policy or DEFAULT_POLICY,
        free_bytes=None if request.limits is None else request.limits.free_bytes,
        attempted=failure if isinstance(failure, StartUncertainError) else None,
    )
    output, code = run_request(request, aside.capture, lambda stream: stream.record)
    with held_signals():
        for sentence in _set_aside(aside, output):
            say(f"tooltrail: {sentence}")
    return code


def _set_aside(aside: Aside, output: CompleteOutput) -> Iterator[str]:
    """Keep the end, and say in sentences what is kept and where."""
    try:
        aside.finish(output)
    except UnavailableError as error:
        if aside.is_begun:
            yield (
                f"the end was not recorded: {error}; `tooltrail repair` records the call as"
                " interrupted, with what is kept"
            )
        else:
            yield f"nothing was recorded: {error}"
        return
    yield from _losses(output.streams)
    yield f"the record is kept in {aside.folder}; `tooltrail repair` stores it"


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
    return _ended(request, ended, records), _code_of(ended)


def _code_of(ended: ChildExit) -> int:
    """The command's own code, unless that would call an output whole that did not get through."""
    lost = ended.tee_error is not None and ended.mirrored in (ExitCode.OK, ExitCode.BROKEN_PIPE)
    return ExitCode.INCOMPLETE if lost else ended.mirrored


class _Recording:
    """The end of one invocation's record, and what is left of its output when there is none.

    Args:
        invocation: which was started.
    """

    def __init__(self, invocation: Invocation) -> None:
        self.invocation = invocation
        self._streams: list[CapturedStream] = []

    def captured(self, stream: CapturedStream) -> StreamRecord:
        """Take a closed capture; its record says what the store keeps of it."""
        record = self.invocation.captured(stream)
        self._streams.append(replace(stream, record=record))
        return record

    def finish(self, output: CompleteOutput, *, verbose: bool) -> None:
        """Finish the record, or say what became of it."""
        try:
            with held_signals():
                finished = self.invocation.finish(output)
        except EndUncertainError as error:
            say(f"tooltrail: {error}; {self._what_is_kept()}; `tooltrail repair` settles it")
            return
        except (TooltrailError, OSError) as error:
            say(
                f"tooltrail: {error}; invocation {self.invocation.id} stays in the store as "
                f"started; {self._what_is_kept()}"
            )
            return
        for sentence in _losses(stream.record for stream in self._streams):
            say(f"tooltrail: {sentence}")
        for damage in finished.damages:
            say(f"tooltrail: {damage}")
        if finished.recorded_in == "outbox":
            which = f" of {finished.invocation_id}" if verbose else ""
            say(f"tooltrail: the record{which} waits in the outbox; `tooltrail repair` stores it")
            return
        if finished.postponed:
            say(
                "tooltrail: the artifact root is unavailable, so the output waits in"
                f" {self.invocation.spool}: `tooltrail repair` stores it"
            )
        if verbose:
            say(f"tooltrail: recorded {finished.invocation_id}")

    def _what_is_kept(self) -> str:
        streams = [stream for stream in self._streams if stream.record.role != "order"]
        produced = sum(stream.record.produced_size for stream in streams)
        spooled = (s for s in streams if s.staged is not None and s.staged.exists())
        kept = sum(stream.record.size for stream in spooled)
        if not produced:
            return "it had no output"
        if not kept:
            return f"its {produced:,} bytes of output were not kept"
        without = f", without {produced - kept:,} bytes" if kept < produced else ""
        return f"its output is kept in {self.invocation.spool}{without}"


def _begin(store: Store, session_name: str | None, request: Request) -> _Recording:
    """Commit the start in the session that was named, else in one of our own."""
    call, policy = request.to_call(), request.policy
    if session_name is None:
        return _Recording(store.start_alone(call, family="command", policy=policy))
    session = store.join_session(_session_named(store, session_name))
    return _Recording(session.start(call, family="command", policy=policy))


def _session_named(store: Store, name: str) -> UUID:
    """The session of a name; one that the store does not know, or cannot tell, if named in full.

    It may wait in the outbox, which is for whoever joins it to find out.

    Raises:
        TooltrailError: there is none, or nobody can tell which it is.
    """
    try:
        return store.reader.session(name).id
    except AccessRefusedError:
        raise
    except (UnavailableError, NotFoundError):
        with suppress(ValueError):
            return UUID(name)
        raise


def _losses(streams: Iterable[StreamRecord]) -> Iterator[str]:
    """What was not kept of each stream, and why."""
    for stream in streams:
        if stream.loss_reason is not None:
            lost = stream.produced_size - stream.size
            yield f"{stream.role}: {lost:,} bytes not kept: {stream.loss_reason}"


def _say_faults(ended: ChildExit) -> None:
    if ended.recorder_error is not None:
        say(f"tooltrail: recording stopped early: {ended.recorder_error}")
    if ended.tee_error is not None:
        say(f"tooltrail: output could not be passed on: {ended.tee_error.strerror}")


def _ended(
    request: Request, ended: ChildExit, streams: Mapping[str, StreamRecord]
) -> CompleteOutput:
    # Neither a status nor a signal: somebody else reaped the child, and nobody knows.
    result = CommandOutput(
        command=request.command_line,
        cwd=request.cwd,
        exit_status=ended.exit_status,
        signal=ended.signal,
        timed_out=ended.timed_out,
        timeout_ms=request.timeout_ms if ended.timed_out else None,
        stdout=streams["stdout"],
        stderr=streams["stderr"],
        order=streams["order"],
    )
    return CompleteOutput.success(request.tool_name, result)


def _not_started(request: Request, failure: SpawnFailure) -> CompleteOutput:
    details: dict[str, JsonValue] = {"argv": list(request.argv), "cwd": request.cwd}
    error = ToolError(kind=failure.kind, message=failure.message, details=details)
    return CompleteOutput.failure(request.tool_name, error)
