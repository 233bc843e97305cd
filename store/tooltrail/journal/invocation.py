"""One running tool call: captures of its output, and its end."""

import time
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from itertools import count
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Final
from uuid import UUID

from tooltrail.artifacts import (
    ArtifactNamer,
    Capture,
    CapturedStream,
    CaptureLimits,
    check_path,
    digest_of_path,
)
from tooltrail.journal.clock import new_id, now
from tooltrail.journal.environment import environment_json
from tooltrail.journal.log import Acknowledge, Entry
from tooltrail.records import (
    CanonicalResult,
    CompleteOutput,
    Family,
    InvalidRecordError,
    InvocationFinishedError,
    InvocationState,
    Policy,
    Projection,
    Receipt,
    StreamRecord,
    ToolCall,
    UnavailableError,
    project,
    render,
)
from tooltrail.records.counted_streams import INLINE_BYTES, MOST_ROLE_CHARS
from tooltrail.records.digests import Digest, digest_of
from tooltrail.records.errors import check_type
from tooltrail.records.facts import (
    ArtifactFact,
    CallEnded,
    CallStarted,
    OmissionFact,
    Shown,
    StreamFact,
)
from tooltrail.records.failures import error_of_interruption
from tooltrail.records.frozen import Frozen

if TYPE_CHECKING:
    from tooltrail.journal.recorder import Recorder

_NS_PER_MS: Final = 1_000_000
_MOST_PREFIX_CHARS: Final = MOST_ROLE_CHARS - 20
"""Most characters of a role before `.captured` and a number."""

SEEN: Final = "seen"
"""Renderer name of a receipt that another program made and the model saw."""


class Finished(Frozen):
    """A call whose end is acknowledged.

    Attributes:
        call: the call that the model asked for.
        state: final state of the invocation.
        canonical: the canonical result, the bounded envelope of five fields.
        receipt: the text to show to the model.
        acknowledged: which failures the record survives; see `Acknowledge`.
    """

    invocation_id: UUID
    call: ToolCall
    state: InvocationState
    canonical: CanonicalResult
    receipt: Receipt
    acknowledged: Acknowledge


class Invocation:
    """One running tool call. Made by `Session.start`.

    Several threads may use captures; only one may call `finish`.

    Attributes:
        call: the call that the model asked for.
        tool_name: recorded name of the tool; see `ToolCall.full_name`.
        family: family of the result.
        policy: budgets of the call.
        started_at: when the call started, aware.
        spool: the folder for output that is being captured.
    """

    def __init__(
        self,
        recorder: "Recorder",
        session: UUID,
        call: ToolCall,
        family: Family,
        policy: Policy,
        *,
        invocation_id: UUID,
        started_at: datetime,
        folder: str = "",
    ) -> None:
        """Prepare. `folder` of the spool is for output; by default its name is the id."""
        self.id = invocation_id
        self.call = call
        self.tool_name = call.full_name
        self.family = family
        self.policy = policy
        self.started_at = started_at
        self.spool = recorder.spool / (folder or str(invocation_id))
        self._recorder = recorder
        self._session = session
        self._begun_ns = time.monotonic_ns()
        self._captures: dict[str, Capture] = {}
        self._captured: dict[Digest, CapturedStream] = {}
        self._is_finished = False

    def capture(self, role: str) -> Capture:
        """A writer for one stream of any length, in constant memory.

        Pass the result of its `close` to `captured`. The end of the call closes all captures. A
        stream that the output does not name is recorded too: a failure has it as partial output,
        a success beside its result. `Capture.discard` prevents that.

        Raises:
            InvocationFinishedError: the call is finished already.
            InvalidRecordError: the role cannot be a file name, or has a capture already.
        """
        self._refuse_finished()
        check_type("role", role, str)
        check_path(f"{role}.zst")
        if role in self._captures:
            raise InvalidRecordError(f"stream {role!r} of call {self.id} has a capture already")
        self._captures[role] = Capture(
            role,
            self.spool / f"{role}.zst",
            edge_bytes=self.policy.edge_bytes,
            limits=CaptureLimits(
                self.policy.stream_bytes_of(self.tool_name), self._recorder.free_bytes
            ),
        )
        return self._captures[role]

    def captured(self, stream: CapturedStream) -> StreamRecord:
        """Register a closed capture, and return its record for the complete output."""
        check_type("stream", stream, CapturedStream)
        self._captured[stream.record.digest] = stream
        return stream.record

    def finish(self, output: CompleteOutput, *, seen: str | None = None) -> Finished:
        """Record the end of the call; acknowledged when this returns.

        Args:
            output: everything that the tool produced.
            seen: the text that the model saw, if another program made it. By default the receipt
                is rendered.

        Raises:
            InvocationFinishedError: the call is finished already.
            InvalidRecordError: the output belongs to another tool or does not fit its family, or a
                stream has neither content nor a spool file.
            UnavailableError: the spool cannot be written; or with `strict` the database cannot be
                reached.
        """
        with self._finishing():
            entries, finished = self.end_facts(output, seen)
            return finished.replaced(acknowledged=self._recorder.append(entries))

    async def afinish(self, output: CompleteOutput, *, seen: str | None = None) -> Finished:
        """Like `finish`, without blocking the event loop.

        If the task is cancelled while it waits, the end is recorded all the same: the call is
        finished.
        """
        with self._finishing():
            level, finished = await self._recorder.append_async(
                partial(self.end_facts, output, seen)
            )
            return finished.replaced(acknowledged=level)

    def interrupt(self, reason: str, partial_output: Sequence[StreamRecord] = ()) -> Finished:
        """Record that the call was interrupted, and its output so far; raises like `finish`.

        `reason` is one sentence. `partial_output` has further streams; the captured ones are added.
        """
        return self.finish(self._interrupted(reason, partial_output))

    async def ainterrupt(
        self, reason: str, partial_output: Sequence[StreamRecord] = ()
    ) -> Finished:
        """Like `interrupt`, without blocking the event loop."""
        return await self.afinish(self._interrupted(reason, partial_output))

    def _interrupted(self, reason: str, partial_output: Sequence[StreamRecord]) -> CompleteOutput:
        check_type("reason", reason, str)
        check_type("partial_output", partial_output, Sequence)
        for stream in partial_output:
            check_type("a stream", stream, StreamRecord)
        error = error_of_interruption(reason)
        return CompleteOutput.failure(self.call.tool_name, error, partial_output)

    def start_entry(self, owner: str | None) -> Entry:
        """The fact that the call started.

        `owner` is the name of the owner lock of the process; None for a call that ended already.
        Raises `InvalidRecordError` if the policy's numbers for the tool do not fit its family.
        """
        call, environment = self.call, environment_json()
        self.policy.budget_of(self.family, self.tool_name)
        fact = CallStarted(
            session=self._session,
            id=self.id,
            at=self.started_at,
            tool_name=self.tool_name,
            family=self.family.name,
            arguments=digest_of(call.arguments_bytes),
            policy=self.policy.digest,
            environment=digest_of(environment),
            call_id=call.call_id,
            title=call.title,
            message=call.message_id,
            position=call.position,
            owner=owner,
        )
        return Entry(fact, [call.arguments_bytes], [self.policy.to_json(), environment])

    def end_entry(
        self, output: CompleteOutput, *, at: datetime, duration_ms: int | None, seen: str | None
    ) -> tuple[Entry, Finished]:
        """The fact that the call ended, and the finished call, which is not acknowledged yet.

        Raises the errors of `finish`.
        """
        check_type("output", output, CompleteOutput)
        check_type("seen", seen, str, NoneType)
        output = self._renamed(output)
        named = output.streams
        unnamed = self._unnamed_streams(named) if self._captures else ()
        streams = (*named, *unnamed)
        if unnamed and output.error is not None:
            partial_output = (*output.partial_output, *unnamed)
            output = output.model_copy(update={"partial_output": partial_output})
        namer, state = ArtifactNamer(), output.final_state
        family = self._recorder.families.of_output(output, self.family)
        projection = project(output, family, self.policy, namer)
        receipt = (
            render(projection.canonical, family, self.policy)
            if seen is None
            # A receipt is valid Unicode: a lone surrogate becomes an escape.
            else Receipt(
                seen.encode("utf-8", "backslashreplace").decode(), SEEN, 0, self.policy.digest
            )
        )
        shared = {one.digest for one in streams}
        hidden = [one for digest, one in namer.named.items() if digest not in shared]
        published = {digest_of_path(one.reference.path) for one in projection.artifacts}
        facts, bodies, files = self._place_streams((*streams, *hidden), published)
        ours, others = tuple(facts[: len(streams)]), tuple(facts[len(streams) :])
        document, canonical = output.to_json(), projection.canonical.to_json()
        shown = shown_of(projection, digest_of(canonical), receipt, others)
        if unnamed and output.error is None and seen is None:
            unseen = (omission for one in unnamed for omission in _unseen(one))
            shown = shown.replaced(omissions=(*shown.omissions, *unseen))
        known = {} if output.result is None else output.result.facts()._asdict()
        fact = CallEnded(
            session=self._session,
            id=self.id,
            at=at,
            state=state,
            output=digest_of(document),
            streams=ours,
            shown=shown,
            duration_ms=duration_ms,
            error_kind=None if output.error is None else output.error.kind,
            **known,
        )
        bodies = [document, canonical, receipt.to_bytes(), *bodies]
        finished = Finished(self.id, self.call, state, projection.canonical, receipt, "process")
        return Entry(fact, bodies, files=files), finished

    def _renamed(self, output: CompleteOutput) -> CompleteOutput:
        """The output with the recorded name of the tool."""
        if output.tool_name == self.tool_name:
            return output
        if output.tool_name != self.call.tool_name:
            raise InvalidRecordError(
                f"the call is of {self.tool_name!r}, not of {output.tool_name!r}"
            )
        return output.model_copy(update={"tool_name": self.tool_name})

    def _unnamed_streams(self, named: Sequence[StreamRecord]) -> tuple[StreamRecord, ...]:
        """Close all captures, and return the streams with bytes that the output does not name.

        A stream whose role has other content in the output gets the role `<role>.captured`.
        """
        captures = dict(self._captures)
        kept = [one for one in captures.values() if not one.is_discarded]
        digests = {one.role: one.digest for one in named}
        others = {(one.digest, one.produced_size) for one in named if one.role not in captures}
        left = list[StreamRecord]()
        for one in [self.captured(capture.close()) for capture in kept]:
            is_named = digests.get(one.role) == one.digest
            if is_named or (one.digest, one.produced_size) in others or not one.produced_size:
                continue
            role = one.role
            if role in digests:
                names = (f"{role[:_MOST_PREFIX_CHARS]}.captured{n or ''}" for n in count())
                role = next(name for name in names if name not in captures and name not in digests)
                digests[role] = one.digest
            left.append(one.model_copy(update={"role": role}))
        return tuple(left)

    def _refuse_finished(self) -> None:
        if self._is_finished:
            raise InvocationFinishedError(f"call {self.id} is finished already")

    @contextmanager
    def _finishing(self) -> Generator[None]:
        """Allow one end. If the end cannot be recorded, the call may be finished again."""
        self._refuse_finished()
        self._is_finished = True
        try:
            yield
        except Exception:  # not a cancellation: the end is on its way to the journal
            self._is_finished = False
            raise

    def end_facts(
        self, output: CompleteOutput, seen: str | None = None
    ) -> tuple[list[Entry], Finished]:
        """The facts that `finish` appends; raises its errors about the output."""
        # If the clock was set back, the end must still not be before the start.
        at = max(now(), self.started_at)
        duration_ms = (time.monotonic_ns() - self._begun_ns) // _NS_PER_MS
        try:
            entry, finished = self.end_entry(output, at=at, duration_ms=duration_ms, seen=seen)
        except BaseException:  # also a cancelled task and Ctrl-C: nothing is on its way yet
            self._is_finished = False
            raise
        return [entry], finished

    def _place_streams(
        self, streams: Sequence[StreamRecord], published: Collection[Digest]
    ) -> tuple[list[StreamFact], list[bytes], list[Path]]:
        """Put each stream into a body of the fact or into a file in a folder of the spool.

        Returns the facts of all streams, these bodies, and these files. A captured artifact stays a
        file: a nearly full disk may still have room for a short fact. Raises the errors of
        `finish`.
        """
        facts, bodies, files = list[StreamFact](), list[bytes](), list[Path]()
        for stream in streams:
            spooled, known, content = None, self._captured.get(stream.digest), stream.content
            if content is not None and digest_of(content) != stream.digest:
                raise InvalidRecordError(
                    f"stream {stream.role!r} has content that does not match its digest"
                )
            staged = None if known is None else known.staged
            is_file = staged is not None and stream.digest in published
            if is_file or content is None or stream.size > INLINE_BYTES:
                path = staged or self._write_file(stream)
                files.append(path)
                spooled = str(path.relative_to(self._recorder.spool))
            else:
                bodies.append(content)
            facts.append(StreamFact.of(stream, spooled))
        return facts, bodies, files

    def _write_file(self, stream: StreamRecord) -> Path:
        """Write the content of a stream into a file of the spool, as if it had been captured."""
        if stream.content is None:
            raise InvalidRecordError(
                f"stream {stream.role!r} has no content and was not captured by this call"
            )
        # Not every role can be a file name, and a capture may have the role and other content.
        path = self.spool / f"{new_id()}.zst"
        with Capture(stream.role, path, edge_bytes=0) as capture:
            capture.write(stream.content)
        written = capture.close()
        if written.staged is None or written.record.digest != stream.digest:
            reason = written.record.loss_reason or "it was cut"
            raise UnavailableError(
                f"stream {stream.role!r} cannot be kept in {self.spool}: {reason}"
            )
        self._captured[stream.digest] = written
        return written.staged


def _unseen(stream: StreamRecord) -> Iterator[OmissionFact]:
    """The omissions of a stream that was captured beside the result of a success."""
    reason = "captured beside the result"
    for unit, size in (("bytes", stream.size), ("lines", stream.line_count)):
        if size:
            yield OmissionFact("projection", stream.role, unit, size, 0, reason)


def shown_of(
    projection: Projection, canonical: Digest, receipt: Receipt, hidden: tuple[StreamFact, ...]
) -> Shown:
    """The part of the end fact that describes the result and the receipt."""
    return Shown(
        canonical=canonical,
        receipt=digest_of(receipt.to_bytes()),
        renderer=receipt.renderer_name,
        renderer_version=receipt.renderer_version,
        omissions=tuple(
            OmissionFact(**one.model_dump()) for one in (*projection.omissions, *receipt.omissions)
        ),
        artifacts=tuple(
            ArtifactFact(role=one.role, digest=digest_of_path(one.reference.path))
            for one in projection.artifacts
        ),
        hidden=hidden,
    )
