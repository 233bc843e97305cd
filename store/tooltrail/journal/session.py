"""One conversation or agent run that takes records."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from types import TracebackType
from typing import Final, Self
from uuid import UUID

from tooltrail.journal.clock import new_id, now
from tooltrail.journal.environment import environment_json
from tooltrail.journal.invocation import Finished, Invocation
from tooltrail.journal.log import Entry
from tooltrail.journal.making import Ended, check_times, ended_entry, started_entry
from tooltrail.journal.recorder import Recorder
from tooltrail.journal.work import Acknowledge, Work
from tooltrail.records import (
    AgentVersion,
    CompleteOutput,
    Family,
    InvalidRecordError,
    LegEnded,
    LegStarted,
    Message,
    Policy,
    SessionClosedError,
    ToolCall,
    ToolDefinition,
    leg_fact_json,
)
from tooltrail.records.digests import digest_of
from tooltrail.records.facts import (
    AgentLeg,
    AgentOutcome,
    MessageAdded,
    SessionClosed,
    SessionOpened,
    ToolsOffered,
)
from tooltrail.records.ids import keyed_id

_MOST_TOGETHER: Final = 256
"""Calls of `record_many` that are appended together."""


@dataclass(frozen=True, slots=True)
class EndedCall:
    """A call that ended before it is recorded, and all that came of it.

    Attributes:
        call: what the model asked for.
        output: what the tool gave; its streams carry their content.
        family: name of the family of the result; None for the one that serves the tool.
        policy: other budgets than the recorder's.
        started_at: when it started, aware; None when nobody knows.
        finished_at: when it ended, aware; None when nobody knows.
        idempotency_key: a name under which it is recorded once, however often it is given.
        seen: the text that the model was really shown; None to render one.
    """

    call: ToolCall
    output: CompleteOutput
    family: str | None = None
    policy: Policy | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    idempotency_key: str | None = None
    seen: str | None = None


class Session:
    """One conversation that takes records. Safe to share between threads and tasks.

    Made by `open`, and closed at the end of a `with` block; or by `join`, and left open there.

    Attributes:
        recorder: appends the facts.
        id: of the session.
    """

    def __init__(self, recorder: Recorder, session_id: UUID, *, is_own: bool) -> None:
        self.recorder = recorder
        self.id = session_id
        self._is_own = is_own
        self._is_closed = False

    @classmethod
    def open(
        cls,
        recorder: Recorder,
        *,
        name: str | None = None,
        title: str | None = None,
        agent: str | None = None,
        parent: UUID | None = None,
        idempotency_key: str | None = None,
        at: datetime | None = None,
    ) -> Self:
        """Begin a conversation; acknowledged when this returns.

        Args:
            recorder: appends the facts.
            name: a name by which every process joins the same session, such as `nightly-build`.
            title: a short text for people.
            agent: name of the agent that holds the session.
            parent: the session that started this one, for a sub-agent.
            idempotency_key: opens the same session whenever the key is used again.
            at: when it began, aware; by default now.

        Raises:
            InvalidRecordError: a key or name is empty or too long, or both are given.
            UnavailableError: the spool cannot be written.
        """
        key = idempotency_key
        if name is not None and key is not None:
            raise InvalidRecordError("a session takes a name or an idempotency key, not both")
        if key is not None:
            session_id = keyed_id("session", key)
        else:
            session_id = new_id() if name is None else keyed_id("name", name)
        environment = environment_json()
        fact = SessionOpened(
            session=session_id,
            at=at or now(),
            name=name,
            title=title,
            agent=agent,
            parent=parent,
            environment=digest_of(environment),
        )
        recorder.append(Work([Entry(fact, [environment])]))
        return cls(recorder, session_id, is_own=True)

    @classmethod
    def join(cls, recorder: Recorder, session: UUID | str) -> Self:
        """Go on with a session of this or any other process.

        Args:
            recorder: appends the facts.
            session: its id, or the name that it was opened with. A session that nobody opened yet
                begins with its first fact.

        Raises:
            InvalidRecordError: the name is empty or too long.
        """
        session_id = session if isinstance(session, UUID) else keyed_id("name", session)
        return cls(recorder, session_id, is_own=False)

    def start(
        self, call: ToolCall, *, family: str | None = None, policy: Policy | None = None
    ) -> Invocation:
        """Record that a tool is about to run; acknowledged when this returns.

        Args:
            call: what the model asked for.
            family: name of the family of the result; by default the one that serves the tool.
            policy: other budgets than the recorder's, for this call alone.

        Raises:
            NotFoundError: there is no such family.
            InvalidRecordError: the policy's numbers for the tool do not fit its family.
            SessionClosedError: this process closed the session.
            UnavailableError: the spool cannot be written; or with `strict` the database cannot be
                reached.
        """
        work, invocation = self._start(call, family, policy)
        self.recorder.append(work)
        return invocation

    async def astart(
        self, call: ToolCall, *, family: str | None = None, policy: Policy | None = None
    ) -> Invocation:
        """Like `start`, without blocking the event loop."""
        _, invocation = await self.recorder.append_async(lambda: self._start(call, family, policy))
        return invocation

    def record(self, ended: EndedCall) -> Finished:
        """Record a call that ended already; acknowledged when this returns.

        With an idempotency key it is recorded once. The same key with other content is rejected:
        with `acknowledge="store"` this raises, else `status` lists the rejected fact.

        Raises:
            NotFoundError: there is no such family.
            InvalidRecordError: the output is of another tool or not of its family, a stream does
                not carry its content, or a time is impossible.
            SessionClosedError: this process closed the session.
            UnavailableError: see `start`.
        """
        work, make = self._ended([ended])
        return make(self.recorder.append(work))[0]

    async def arecord(self, ended: EndedCall) -> Finished:
        """Like `record`, without blocking the event loop."""
        level, make = await self.recorder.append_async(lambda: self._ended([ended]))
        return make(level)[0]

    def record_many(self, calls: Iterable[EndedCall]) -> Iterator[Finished]:
        """Record calls that ended already, many with one sync. Iterate to the end.

        Each one that this gives is acknowledged, with all before it. Memory is bounded.

            recorded = sum(1 for _ in session.record_many(calls))

        Raises:
            TooltrailError: see `record`. Nothing of the batch with the call at fault is recorded.
        """
        waiting = iter(calls)
        while batch := list(islice(waiting, _MOST_TOGETHER)):
            work, make = self._ended(batch)
            yield from make(self.recorder.append(work))

    def message(
        self,
        message: Message,
        *,
        payload: bytes | None = None,
        at: datetime | None = None,
        idempotency_key: str | None = None,
    ) -> UUID:
        """Record a message with everything in it: text, calls, results, media, reasoning.

        Args:
            message: as it was read from a provider, or as it is sent.
            payload: the bytes that the provider sent, kept exactly.
            at: when it was said, aware; by default now.
            idempotency_key: a name under which it is recorded once.

        Returns:
            The id of the message, for `ToolCall.message_id` of the calls that it asks for.

        Raises:
            InvalidRecordError, SessionClosedError, UnavailableError: see `start`.
        """
        work, message_id = self._message(message, payload, at, idempotency_key)
        self.recorder.append(work)
        return message_id

    async def amessage(
        self,
        message: Message,
        *,
        payload: bytes | None = None,
        at: datetime | None = None,
        idempotency_key: str | None = None,
    ) -> UUID:
        """Like `message`, without blocking the event loop."""
        _, message_id = await self.recorder.append_async(
            lambda: self._message(message, payload, at, idempotency_key)
        )
        return message_id

    def messages(self, messages: Sequence[Message]) -> list[UUID]:
        """Record messages in their order with one sync; see `message`."""
        made = [self._message(one, None, None, None) for one in messages]
        if made:
            self.recorder.append(Work([entry for work, _ in made for entry in work.entries]))
        return [message_id for _, message_id in made]

    def offer_tools(self, tools: Iterable[ToolDefinition]) -> UUID:
        """Record which tools the model is offered from here on, in place of those before.

        Returns:
            The id of the offer.

        Raises:
            SessionClosedError, UnavailableError: see `start`.
        """
        self._refuse_closed()
        definitions = [tool.to_json() for tool in tools]
        fact = ToolsOffered(
            session=self.id, id=new_id(), at=now(), tools=tuple(map(digest_of, definitions))
        )
        self.recorder.append(Work([Entry(fact, definitions)]))
        return fact.id

    def record_leg(self, started: LegStarted, agent: AgentVersion) -> UUID:
        """Record that this session is a leg of an agent run, and how it begins.

        Raises:
            InvalidRecordError: the leg is of another version of the agent.
            SessionClosedError, UnavailableError: see `start`.
        """
        self._refuse_closed()
        if agent.digest != started.agent_digest:
            raise InvalidRecordError("the leg is of another version of the agent")
        document, described = leg_fact_json(started).encode(), agent.document.encode()
        fact = AgentLeg(
            session=self.id,
            id=new_id(),
            at=now(),
            document=digest_of(document),
            agent=digest_of(described),
            agent_version=agent.version,
        )
        self.recorder.append(Work([Entry(fact, [document, described])]))
        return fact.id

    def record_outcome(self, ended: LegEnded) -> UUID:
        """Record how the leg of an agent run that this session is ended.

        Raises:
            SessionClosedError, UnavailableError: see `start`.
        """
        self._refuse_closed()
        document = leg_fact_json(ended).encode()
        fact = AgentOutcome(session=self.id, id=new_id(), at=now(), document=digest_of(document))
        self.recorder.append(Work([Entry(fact, [document])]))
        return fact.id

    def close(self, reason: str | None = None) -> None:
        """End the session. Calls that still run may finish.

        Raises:
            SessionClosedError: this process closed the session before.
            UnavailableError: see `start`.
        """
        self._refuse_closed()
        fact = SessionClosed(session=self.id, at=now(), reason=reason)
        self.recorder.append(Work([Entry(fact)]))
        self._is_closed = True

    def _start(
        self, call: ToolCall, family: str | None, policy: Policy | None
    ) -> tuple[Work, Invocation]:
        self._refuse_closed()
        chosen, budgets = self._family(call, family, policy), policy or self.recorder.policy
        invocation = Invocation(
            self.recorder, self.id, call, chosen, budgets, invocation_id=new_id(), started_at=now()
        )
        entry = started_entry(
            self.id,
            call,
            chosen,
            budgets,
            invocation=invocation.id,
            at=invocation.started_at,
            owner=self.recorder.owner.name(),
        )
        return Work([entry]), invocation

    def _ended(self, calls: Sequence[EndedCall]) -> "tuple[Work, _Acknowledged]":
        self._refuse_closed()
        made: list[tuple[UUID, EndedCall, Ended]] = []
        entries: list[Entry] = []
        for one in calls:
            start, ended, invocation_id = self._ended_one(one)
            entries += [start, ended.entry]
            made.append((invocation_id, one, ended))

        def sync() -> None:
            for _, _, ended in made:
                ended.sync()

        return Work(entries, sync), _Acknowledged(made)

    def _ended_one(self, one: EndedCall) -> tuple[Entry, Ended, UUID]:
        at = now()
        check_times(one.started_at, one.finished_at, at)
        if one.output.tool_name != one.call.tool_name:
            raise InvalidRecordError(
                f"the call is of {one.call.tool_name!r}, not of {one.output.tool_name!r}"
            )
        key = one.idempotency_key
        invocation_id = new_id() if key is None else keyed_id("call", key)
        finished_at = one.finished_at or max(at, one.started_at or at)
        started_at = one.started_at or finished_at
        family, policy = self._family(one.call, one.family, one.policy), one.policy
        start = started_entry(
            self.id,
            one.call,
            family,
            policy or self.recorder.policy,
            invocation=invocation_id,
            at=started_at,
            owner=None,
        )
        is_timed = one.started_at is not None and one.finished_at is not None
        elapsed = finished_at - started_at
        ended = ended_entry(
            self.id,
            one.output,
            family,
            policy or self.recorder.policy,
            spool=self.recorder.spool,
            families=self.recorder.families,
            invocation=invocation_id,
            at=finished_at,
            duration_ms=round(elapsed.total_seconds() * 1000) if is_timed else None,
            captured={},
            streams=one.output.streams,
            seen=one.seen,
        )
        return start, ended, invocation_id

    def _message(
        self,
        message: Message,
        payload: bytes | None,
        at: datetime | None,
        key: str | None,
    ) -> tuple[Work, UUID]:
        self._refuse_closed()
        text, document = message.text.encode("utf-8", "surrogatepass"), message.to_json()
        fact = MessageAdded(
            session=self.id,
            id=new_id() if key is None else keyed_id("message", key),
            at=at or now(),
            role=message.role,
            text=digest_of(text),
            document=digest_of(document),
            payload=None if payload is None else digest_of(payload),
            wire_format=None if message.origin is None else message.origin.wire_format,
        )
        bodies = [text, document] if payload is None else [text, document, payload]
        return Work([Entry(fact, bodies)]), fact.id

    def _family(self, call: ToolCall, name: str | None, policy: Policy | None) -> Family:
        families = self.recorder.families
        if name is not None:
            return families.named(name)
        return (policy or self.recorder.policy).family_of(call.tool_name, families)

    def _refuse_closed(self) -> None:
        if self._is_closed:
            raise SessionClosedError(f"session {self.id} is closed")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._is_own:
            # Closed in the block already: that is how it was to end.
            with suppress(SessionClosedError):
                self.close()


class _Acknowledged:
    """Says of calls that were made what they are once they are acknowledged."""

    def __init__(self, made: Sequence[tuple[UUID, EndedCall, Ended]]) -> None:
        self._made = made

    def __call__(self, level: Acknowledge) -> list[Finished]:
        return [
            Finished(
                invocation_id,
                one.call,
                one.output.final_state,
                ended.canonical,
                ended.receipt,
                level,
            )
            for invocation_id, one, ended in self._made
        ]
