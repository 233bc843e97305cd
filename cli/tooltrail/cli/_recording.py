"""The record of one command: its facts in the journal, and its captured streams."""

import shlex
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar, cast
from uuid import UUID

from tooltrail.artifacts.captured import CapturedStream
from tooltrail.artifacts.short_capture import ShortCapture
from tooltrail.cli._exec_options import Request
from tooltrail.cli._output import say
from tooltrail.cli._process import ChildExit, StreamName
from tooltrail.journal.clock import new_id, now
from tooltrail.journal.environment import NOT_REDACTED, environment_json
from tooltrail.journal.frames import Cursor
from tooltrail.journal.log import Entry, JournalLog
from tooltrail.journal.owners import Owner
from tooltrail.records.canonical_json import decode, encode
from tooltrail.records.command_documents import CommandEnd, ended_document, failed_document
from tooltrail.records.default_policy_document import default_policy_json
from tooltrail.records.digests import digest_of
from tooltrail.records.errors import InvalidRecordError, UnavailableError
from tooltrail.records.facts import (
    CallEnded,
    CallStarted,
    RedactionFact,
    SessionClosed,
    SessionOpened,
    StreamFact,
)
from tooltrail.records.ids import keyed_id, parse_id
from tooltrail.redaction.rules import RuleSet

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from tooltrail.artifacts import Capture
    from tooltrail.redaction.redactor import ReplacedSecret, StreamRedactor

_ORDER = "order"
"""Role of the stream with the order in which the chunks of the others arrived."""

_TICK_MS = 100
"""Consecutive chunks of one stream within this time are one line of the stream `order`."""

_MOST_RUNS = 10_000
"""Most lines of the stream `order` that wait for bytes that redaction holds back."""

_HELD_BYTES = 16 << 10
"""Maximum bytes of a stream that is stored with its fact. A longer stream is a spool file."""

_LONG_BYTES = 1 << 20
"""Bytes of output from which on another thread redacts and captures."""

_MOST_PENDING = 4
"""Chunks that wait for that thread at most."""

_ERRORS = "surrogatepass"
T = TypeVar("T", str, str | None)
_FD: dict[StreamName, int] = {"stdout": 1, "stderr": 2}


class UsedPolicy(NamedTuple):
    """The parts of a policy that a record needs.

    Attributes:
        document: canonical JSON of the policy.
        stream_bytes: maximum bytes of one stream to keep; None for all.
    """

    document: bytes
    stream_bytes: int | None


def used_policy(request: Request) -> UsedPolicy:
    """The policy in the file of the request, or the default policy."""
    if request.policy is None:
        return UsedPolicy(default_policy_json(), None)
    from tooltrail.cli._policy import read_policy  # noqa: PLC0415  only for a policy in a file

    policy = read_policy(Path(request.policy), request.tool)
    return UsedPolicy(policy.to_json(), policy.stream_bytes_of(request.tool))


class Recording:
    """Records the facts of one command. A context manager that closes its files at the end.

    Attributes:
        id: id of the invocation.
        end_cursor: cursor behind the fact that ends the call; None until it is recorded.
    """

    def __init__(
        self, request: Request, spool: Path, policy: UsedPolicy, rules: RuleSet | None
    ) -> None:
        """Prepare the recording. Writes nothing. Secrets that `rules` find are replaced."""
        self.id = new_id()
        self.end_cursor: Cursor | None = None
        self._request = request
        self._spool = spool
        self._policy = policy
        self._rules = rules
        self._tool = self._clean_text(request.tool)
        # Cleaned first: the quotes of a shell would hide a secret.
        words = [self._clean_text(word) for word in request.argv]
        self._title = self._clean_text(shlex.join(words))
        self._cwd = self._clean_text(request.cwd)
        self._session, self._session_name = session_of(self._clean_text(request.session))
        self._has_own_session = request.session is None
        self._log = JournalLog(spool / "journal")
        self._owner = Owner(spool)
        self._files: list[Path] = []

    @property
    def owner_descriptor(self) -> int:
        """The descriptor that marks the call as running. The command must inherit it."""
        return self._owner.descriptor

    def start(self) -> None:
        """Record the start of the command. The fact is acknowledged when this returns."""
        request, at = self._request, now()
        more = NOT_REDACTED if self._rules is None else {}
        environment, _ = self._clean("environment", environment_json(more))
        arguments: dict[str, Any] = {"argv": list(request.argv)}
        if request.cwd is not None:
            arguments["cwd"] = request.cwd
        if request.timeout_ms is not None:
            arguments["timeout_ms"] = request.timeout_ms
        sent, redacted = self._clean("arguments", encode(arguments))
        started = CallStarted(
            session=self._session,
            id=self.id,
            at=at,
            tool_name=self._tool,
            family="command",
            arguments=digest_of(sent),
            policy=digest_of(self._policy.document),
            environment=digest_of(environment),
            call_id=self._clean_text(request.call_id),
            title=self._title,
            owner=self._owner.name(),
            redacted=redacted,
        )
        entries = [Entry(started, [sent], [self._policy.document, environment])]
        if self._has_own_session or self._session_name is not None:
            opened = SessionOpened(
                session=self._session,
                at=at,
                name=self._session_name,
                environment=digest_of(environment),
            )
            entries.insert(0, Entry(opened, [], [environment]))
        self._started_at = at
        self._append(entries)

    def capture(self, role: str) -> ShortCapture:
        """Return a writer for one stream."""
        most = self._policy.stream_bytes
        held = _HELD_BYTES if most is None else min(_HELD_BYTES, most)
        return ShortCapture(role, held, lambda: self._spool_capture(role))

    def _spool_capture(self, role: str) -> "Capture":
        from tooltrail.artifacts.capture import Capture  # noqa: PLC0415  loads the codec
        from tooltrail.artifacts.limits import CaptureLimits  # noqa: PLC0415

        return Capture(
            role,
            self._spool / str(self.id) / f"{role}.zst",
            edge_bytes=0,
            limits=CaptureLimits(self._policy.stream_bytes, self._request.free_bytes),
        )

    def end(self, ended: ChildExit, output: "StreamCapture") -> None:
        """Record the end and the output of the command; print a message if that fails."""
        request, captured = self._request, output.close()
        known = CommandEnd(
            command=self._title,
            cwd=self._cwd,
            exit_status=ended.exit_status,
            signal=ended.signal,
            timed_out=ended.timed_out,
            timeout_ms=request.timeout_ms if ended.timed_out else None,
        )
        streams = [self._stream_fact(one) for one in captured]
        bodies = [
            one.counted.content
            for one, stream in zip(captured, streams, strict=True)
            if stream.spooled is None and one.counted.content is not None
        ]
        self._finish(
            ended_document(self._tool, known, streams),
            bodies,
            state="success",
            streams=tuple(streams),
            duration_ms=ended.duration_ms,
            exit_status=ended.exit_status,
            signal=ended.signal,
            timed_out=ended.timed_out,
            redacted=output.redacted,
        )
        if self.end_cursor is None:
            self._spool_held(captured)
        for stream in streams:
            if stream.loss_reason is not None:
                lost = stream.produced_size - stream.size
                _say_lost(stream.role, lost, stream.loss_reason)

    def fail(self, kind: str, message: str) -> None:
        """Record that the command could not be started; print a message if that fails."""
        request = self._request
        # Cleaned before the document is made, which has words that a rule may match.
        given, found = self._clean("output", encode([message, request.cwd, *request.argv]))
        message, cwd, *argv = cast("list[Any]", decode(given))
        document = failed_document(self._tool, kind, message, argv, cwd)
        marks = [(one, document.find(f"[REDACTED:{one.rule}]".encode())) for one in found]
        redacted = tuple(one.replaced(offset=offset) for one, offset in marks if offset >= 0)
        self._finish(document, [], state="error", error_kind=kind, redacted=redacted)

    def _finish(
        self,
        document: bytes,
        bodies: Sequence[bytes],
        **members: Any,
    ) -> None:
        # The end must not be before the start if the clock was set back.
        at = max(now(), self._started_at)
        fact = CallEnded(
            session=self._session,
            id=self.id,
            at=at,
            output=digest_of(document),
            **members,
        )
        entries = [Entry(fact, [document, *bodies], files=self._files)]
        if self._has_own_session:
            entries.append(Entry(SessionClosed(session=self._session, at=at)))
        try:
            self.end_cursor = self._append(entries)
        except (UnavailableError, InvalidRecordError) as error:
            say(
                f"tooltrail: {error}; the end of invocation {self.id} is not recorded: the next"
                f" reader ends the call as interrupted, with the output in {self._spool}"
            )
            return
        if self._request.v:
            say(f"tooltrail: recorded {self.id}")

    def _clean(self, field: str, data: bytes) -> tuple[bytes, tuple[RedactionFact, ...]]:
        """A part of the record without secrets, and what was replaced. JSON stays JSON."""
        if self._rules is None or not self._rules.may_match(data):
            return data, ()
        from tooltrail.redaction.redactor import redact_json, redactions  # noqa: PLC0415  rare

        redacted = redact_json(data, self._rules)
        return redacted.data, redactions(field, redacted.found)

    def _clean_text(self, text: T) -> T:
        """A text without secrets."""
        if text is None:
            return text
        return self._clean("", text.encode("utf-8", _ERRORS))[0].decode("utf-8", _ERRORS)

    def _spool_held(self, captured: Sequence[CapturedStream]) -> None:
        """Write output that is only in memory into the spool; print how many bytes are lost."""
        for stream in captured:
            role, content = stream.counted.role, stream.counted.content
            if stream.staged is not None or not content:
                continue
            with self._spool_capture(role) as capture:
                capture.write(content)
            kept = capture.close()
            size = 0 if kept.staged is None else kept.counted.size
            if size < len(content):
                reason = kept.counted.loss_reason or "no room in the spool"
                _say_lost(role, len(content) - size, reason)

    def _append(self, entries: Sequence[Entry]) -> Cursor:
        if self._request.acknowledge == "process":
            return self._log.append(entries)[-1]
        return self._log.record(entries)[-1]

    def _stream_fact(self, captured: CapturedStream) -> StreamFact:
        known, spooled = captured.counted, None
        if captured.staged is not None and known.size > _HELD_BYTES:
            self._files.append(captured.staged)
            spooled = f"{self.id}/{captured.staged.name}"
        return StreamFact.of(known, spooled)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._log.close()
        self._owner.release()


def _say_lost(role: str, size: int, reason: str | None) -> None:
    lost = "the order of stdout and stderr" if role == _ORDER else role
    say(f"tooltrail: {lost}: {size:,} bytes not kept: {reason}")


def session_of(named: str | None) -> tuple[UUID, str | None]:
    """The id and the name of a session. The name is None for an id, or for a new session."""
    if named is None:
        return new_id(), None
    try:
        return parse_id(named), None
    except InvalidRecordError:
        return keyed_id("name", named), named


class _Stream:
    """One stream of the command, and how much of it is captured.

    Attributes:
        fd: the descriptor of the command.
        size: bytes that the command has printed.
        settled_size: bytes of these that are captured, as they are or replaced.
        redactor: replaces secrets; None before the first byte, or if nothing is replaced.
    """

    def __init__(self, fd: int, role: str, capture: ShortCapture, rules: RuleSet | None) -> None:
        self.fd, self.role, self.capture, self._rules = fd, role, capture, rules
        self.size = self.settled_size = 0
        self.redactor: StreamRedactor | None = None

    def write(self, chunk: bytes, *, is_last: bool = False) -> "Sequence[ReplacedSecret]":
        """Capture a chunk, and return the secrets that were replaced meanwhile."""
        self.size += len(chunk)
        if self._rules is None:
            self.capture.write(chunk)
            self.settled_size = self.size
            return ()
        if self.redactor is None:
            from tooltrail.redaction.redactor import StreamRedactor  # noqa: PLC0415  not for none

            self.redactor = StreamRedactor(self._rules)
        kept = self.redactor.finish(chunk) if is_last else self.redactor.feed(chunk)
        if kept:
            self.capture.write(kept)
        self.settled_size = self.redactor.read_size
        return self.redactor.secrets


class _Run:
    """Consecutive chunks of one stream: one line of the stream `order`.

    Attributes:
        start: offset of its first byte in the output of the command.
        stop: offset after its last byte.
        change: bytes by which redaction made it longer.
    """

    def __init__(self, stream: _Stream, at: int) -> None:
        self.stream = stream
        self.at = at
        self.start = self.stop = stream.size
        self.change = 0

    def replace(self, secret: "ReplacedSecret") -> None:
        """Count a secret that was replaced. What replaces it belongs to the run of its start."""
        if self.start <= secret.start < self.stop:
            self.change += secret.size
        self.change -= max(0, min(self.stop, secret.end) - max(self.start, secret.start))


class StreamCapture:
    """Captures the streams of one command, and the order in which their chunks arrived.

    Args:
        capture: creates the capture of a role.
        rules: the secrets to replace; None for none.
        has_terminal: whether the command prints to a terminal, which has one combined stream.

    Attributes:
        redacted: the secrets that were replaced, once the streams are closed.
    """

    def __init__(
        self,
        capture: Callable[[str], ShortCapture],
        rules: RuleSet | None,
        *,
        has_terminal: bool,
    ) -> None:
        self.redacted: tuple[RedactionFact, ...] = ()
        roles: dict[StreamName, str] = (
            {"stdout": "combined"} if has_terminal else {name: name for name in _FD}
        )
        self._streams = {
            name: _Stream(_FD[name], role, capture(role), rules) for name, role in roles.items()
        }
        self._has_rules = rules is not None
        self._order = capture(_ORDER)
        self._began = time.monotonic()
        self._runs: deque[_Run] = deque()
        self._received = 0
        self._pool: ThreadPoolExecutor | None = None
        self._pending: deque[Future[None]] = deque()

    def write(self, name: StreamName, chunk: bytes) -> None:
        """Capture a chunk; see `ChunkHandler`."""
        self._received += len(chunk)
        at = int((time.monotonic() - self._began) * 1000)
        if self._has_rules and self._received >= _LONG_BYTES:
            self._submit(self._capture, name, chunk, at)
        else:
            self._capture(name, chunk, at)

    def flush(self) -> None:
        """Make the output so far readable from the spool."""
        if self._pool is None:
            self._flush()
        else:
            self._submit(self._flush)

    def close(self) -> list[CapturedStream]:
        """Close all streams, and return them in the order of the record."""
        errors = [error for work in self._pending if (error := work.exception()) is not None]
        for error in errors[:1]:
            say(f"tooltrail: recording stopped early: {error}")
        if self._pool is not None:
            self._pool.shutdown()
        for stream in self._streams.values():
            if stream.redactor is not None:
                self._settle(stream, stream.write(b"", is_last=True))
                self.redacted += stream.redactor.redactions(stream.role)
        while self._runs:
            self._write_order()
        captured = [stream.capture.close() for stream in self._streams.values()]
        return captured if len(captured) == 1 else [*captured, self._order.close()]

    def _submit(self, work: Callable[..., None], *arguments: object) -> None:
        """Do work in another thread, in order: redaction takes as long as the rest of a record.

        Memory is bounded: waits if too much work is pending. Raises what earlier work raised.
        """
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  for long output

            self._pool = ThreadPoolExecutor(1)
        self._pending.append(self._pool.submit(work, *arguments))
        if len(self._pending) > _MOST_PENDING:
            self._pending.popleft().result()

    def _capture(self, name: StreamName, chunk: bytes, at: int) -> None:
        stream = self._streams[name]
        if len(self._streams) > 1:
            last = self._runs[-1] if self._runs else None
            if last is None or last.stream is not stream or at - last.at >= _TICK_MS:
                last = _Run(stream, at)
                self._runs.append(last)
            last.stop += len(chunk)
        self._settle(stream, stream.write(chunk))

    def _flush(self) -> None:
        for stream in self._streams.values():
            stream.capture.flush()

    def _settle(self, stream: _Stream, secrets: "Sequence[ReplacedSecret]") -> None:
        """Count the secrets that were replaced, and write the lines that are complete."""
        for secret in secrets:
            for run in self._runs:
                if run.stream is stream:
                    run.replace(secret)
        while len(self._runs) > 1:
            first = self._runs[0]
            is_settled = first.stop <= first.stream.settled_size
            if not is_settled and len(self._runs) < _MOST_RUNS:
                break  # secrets in bytes that are held back may be removed from this run
            self._write_order()

    def _write_order(self) -> None:
        run = self._runs.popleft()
        if size := run.stop - run.start + run.change:
            self._order.write(f"{run.stream.fd} {size} {run.at}\n".encode())
