"""One running tool call: captures of its output, and its end."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final
from uuid import UUID

from tooltrail.artifacts import (
    ArtifactNamer,
    Capture,
    CapturedStream,
    CaptureLimits,
    check_path,
    digest_of_path,
)
from tooltrail.journal.clock import now
from tooltrail.journal.environment import environment_json
from tooltrail.journal.log import Acknowledge, Entry
from tooltrail.journal.making import Ended, place_streams, shown_of, under_full_name
from tooltrail.journal.recorder import Recorder
from tooltrail.records import (
    CanonicalResult,
    CompleteOutput,
    Family,
    InvalidRecordError,
    InvocationFinishedError,
    InvocationState,
    Policy,
    Receipt,
    StreamRecord,
    ToolCall,
    project,
    render,
)
from tooltrail.records.digests import Digest, digest_of
from tooltrail.records.facts import CallEnded, CallStarted
from tooltrail.records.failures import error_of_interruption

_NS_PER_MS: Final = 1_000_000
_SEEN: Final = "seen"
"""Renderer of a receipt that another program made, and that the model really saw."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A call whose end is acknowledged.

    Attributes:
        invocation_id: of the invocation.
        call: what the model asked for.
        state: final state of the invocation.
        canonical: the canonical result.
        receipt: what to show to the model.
        acknowledged: what the record survives; see `Acknowledge`.
    """

    invocation_id: UUID
    call: ToolCall
    state: InvocationState
    canonical: CanonicalResult
    receipt: Receipt
    acknowledged: Acknowledge


class Invocation:
    """One running tool call. Made by `Session.start`.

    Captures may be used by different threads; `finish` by one.

    Attributes:
        id: of the invocation.
        call: what the model asked for.
        family: of the result.
        policy: the budgets.
        started_at: when it started, aware.
    """

    def __init__(
        self,
        recorder: Recorder,
        session: UUID,
        call: ToolCall,
        family: Family,
        policy: Policy,
        *,
        invocation_id: UUID,
        started_at: datetime,
    ) -> None:
        self.id = invocation_id
        self.call = call
        self.family = family
        self.policy = policy
        self.started_at = started_at
        self._recorder = recorder
        self._session = session
        self._begun_ns = time.monotonic_ns()
        self._captured: dict[Digest, CapturedStream] = {}
        self._roles: set[str] = set()
        self._is_finished = False

    @property
    def spool(self) -> Path:
        """The folder of the output while it is captured."""
        return self._recorder.spool / str(self.id)

    def capture(self, role: str) -> Capture:
        """A writer for one stream of any length, at constant memory.

        Hand what its `close` gives to `captured`.

        Raises:
            InvalidRecordError: the role cannot name a file, or has a capture already.
        """
        check_path(f"{role}.zst")
        if role in self._roles:
            raise InvalidRecordError(f"stream {role!r} of call {self.id} has a capture already")
        self._roles.add(role)
        applied = self.policy.applied_to(self.call.full_name)
        return Capture(
            role,
            self.spool / f"{role}.zst",
            edge_bytes=self.policy.edge_bytes,
            limits=CaptureLimits(applied.stream_bytes, self._recorder.free_bytes),
        )

    def captured(self, stream: CapturedStream) -> StreamRecord:
        """The record of a closed capture, for the complete output."""
        self._captured[stream.record.digest] = stream
        return stream.record

    def finish(self, output: CompleteOutput, *, seen: str | None = None) -> Finished:
        """Record the end of the call; acknowledged when this returns.

        Args:
            output: everything that the tool produced.
            seen: the text that the model was really shown, where another program made it. By
                default the receipt is rendered.

        Raises:
            InvocationFinishedError: the call was finished before.
            InvalidRecordError: the output is of another tool or not of its family, or the bytes of
                a stream are not at hand.
            UnavailableError: the spool cannot be written; or with `strict` the database cannot be
                reached.
        """
        ended = self._made(output, seen)
        level = self._recorder.append([ended.entry])
        return self.finished(output, ended, level)

    async def afinish(self, output: CompleteOutput, *, seen: str | None = None) -> Finished:
        """Like `finish`, without blocking the event loop."""

        def make() -> tuple[list[Entry], Ended]:
            ended = self._made(output, seen)
            return [ended.entry], ended

        level, ended = await self._recorder.append_async(make)
        return self.finished(output, ended, level)

    def interrupt(self, reason: str, partial_output: Sequence[StreamRecord] = ()) -> Finished:
        """Record that the call was interrupted, and what it printed until then.

        Args:
            reason: why, in one sentence.
            partial_output: what was captured, each role once.

        Raises:
            InvocationFinishedError, UnavailableError: see `finish`.
        """
        return self.finish(self._interrupted(reason, partial_output))

    async def ainterrupt(
        self, reason: str, partial_output: Sequence[StreamRecord] = ()
    ) -> Finished:
        """Like `interrupt`, without blocking the event loop."""
        return await self.afinish(self._interrupted(reason, partial_output))

    def _interrupted(self, reason: str, partial_output: Sequence[StreamRecord]) -> CompleteOutput:
        error = error_of_interruption(reason)
        return CompleteOutput.failure(self.call.tool_name, error, partial_output)

    def start_entry(self, owner: str | None) -> Entry:
        """The fact that the call starts.

        Args:
            owner: name of the owner lock of its program; None for a call that ended already.

        Raises:
            InvalidRecordError: the policy's numbers for the tool do not fit its family.
        """
        call, environment = self.call, environment_json()
        self.policy.budget_of(self.family, call.full_name)
        fact = CallStarted(
            session=self._session,
            id=self.id,
            at=self.started_at,
            tool_name=call.full_name,
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
    ) -> Ended:
        """The fact that the call ended, with the canonical result and the receipt.

        Raises:
            InvalidRecordError: the output is of another tool or not of its family, or a stream's
                bytes are not at hand.
            UnavailableError: the spool cannot be written.
        """
        output = under_full_name(self.call, output)
        namer, streams = ArtifactNamer(), output.streams
        family = self._recorder.families.of_output(output, self.family)
        projection = project(output, family, self.policy, namer)
        receipt = (
            render(projection.canonical, family, self.policy)
            if seen is None
            else Receipt(seen, _SEEN, 0, self.policy.digest)
        )
        shared = {one.digest for one in streams}
        hidden = [one for digest, one in namer.named.items() if digest not in shared]
        published = {digest_of_path(one.reference.path) for one in projection.artifacts}
        placed = place_streams((*streams, *hidden), self._captured, published, self.spool)
        document, canonical = output.to_json(), projection.canonical.to_json()
        known = None if output.result is None else output.result.facts()
        fact = CallEnded(
            session=self._session,
            id=self.id,
            at=at,
            state=output.final_state,
            output=digest_of(document),
            streams=placed.facts[: len(streams)],
            shown=shown_of(projection, digest_of(canonical), receipt, placed.facts[len(streams) :]),
            duration_ms=duration_ms,
            error_kind=None if output.error is None else output.error.kind,
            exit_status=None if known is None else known.exit_status,
            signal=None if known is None else known.signal,
            timed_out=None if known is None else known.timed_out,
        )
        bodies = [document, canonical, receipt.to_bytes(), *placed.bodies]
        return Ended(Entry(fact, bodies, files=placed.files), projection.canonical, receipt)

    def finished(self, output: CompleteOutput, ended: Ended, level: Acknowledge) -> Finished:
        """The call, whose end is acknowledged so far."""
        self._is_finished = True
        return Finished(
            self.id, self.call, output.final_state, ended.canonical, ended.receipt, level
        )

    def _made(self, output: CompleteOutput, seen: str | None) -> Ended:
        if self._is_finished:
            raise InvocationFinishedError(f"call {self.id} is finished already")
        # A clock that was set back must not give an end before the start.
        at = max(now(), self.started_at)
        duration_ms = (time.monotonic_ns() - self._begun_ns) // _NS_PER_MS
        return self.end_entry(output, at=at, duration_ms=duration_ms, seen=seen)
