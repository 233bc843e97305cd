"""One conversation or agent run that takes records."""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import islice
from types import TracebackType
from typing import Final, Self
from uuid import UUID

from tooltrail.journal.clock import new_id, now
from tooltrail.journal.ended_calls import EndedBatch, EndedCall, ended_batch, family_of
from tooltrail.journal.invocation import Finished, Invocation
from tooltrail.journal.log import Entry
from tooltrail.journal.making import started_entry
from tooltrail.journal.recorder import Recorder
from tooltrail.journal.session_facts import (
    closed_entry,
    leg_entry,
    message_entry,
    offered_entry,
    opened_entry,
    outcome_entry,
)
from tooltrail.journal.work import Work
from tooltrail.records import (
    AgentVersion,
    InvalidRecordError,
    LegEnded,
    LegStarted,
    Message,
    Policy,
    SessionClosedError,
    ToolCall,
    ToolDefinition,
)
from tooltrail.records.ids import keyed_id

_MOST_TOGETHER: Final = 256
"""Calls of `record_many` that are appended together."""


class Session:
    """One conversation that takes records. Safe to share between threads and tasks.

    Made by `open`, and closed at the end of a `with` block; or by `join`, and left open there.

    Attributes:
        recorder: appends the facts.
        id: of the session.
        servers: those whose tools are on offer.
    """

    def __init__(self, recorder: Recorder, session_id: UUID, *, is_own: bool) -> None:
        self.recorder = recorder
        self.id = session_id
        self.servers = frozenset[str]()
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
        session_id = _session_id(name, idempotency_key)
        entry = opened_entry(session_id, at=at, name=name, title=title, agent=agent, parent=parent)
        recorder.append(Work([entry]))
        return cls(recorder, session_id, is_own=True)

    @classmethod
    async def aopen(
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
        """Like `open`, without blocking the event loop."""
        session_id = _session_id(name, idempotency_key)

        def make() -> tuple[Work, None]:
            entry = opened_entry(
                session_id, at=at, name=name, title=title, agent=agent, parent=parent
            )
            return Work([entry]), None

        await recorder.append_async(make)
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
        self._refuse_closed()
        batch = ended_batch(self.recorder, self.id, [ended])
        return batch.acknowledged(self.recorder.append(batch.work))[0]

    async def arecord(self, ended: EndedCall) -> Finished:
        """Like `record`, without blocking the event loop."""
        return (await self._arecord([ended]))[0]

    def record_many(self, calls: Iterable[EndedCall]) -> Iterator[Finished]:
        """Record calls that ended already, many with one sync. Iterate to the end.

        Each one that this gives is acknowledged, with all before it. Memory is bounded.

            recorded = sum(1 for _ in session.record_many(calls))

        Raises:
            TooltrailError: see `record`. Nothing of the batch with the call at fault is recorded.
        """
        for some in _batches(calls):
            self._refuse_closed()
            batch = ended_batch(self.recorder, self.id, some)
            yield from batch.acknowledged(self.recorder.append(batch.work))

    async def arecord_many(self, calls: Iterable[EndedCall]) -> AsyncIterator[Finished]:
        """Like `record_many`, without blocking the event loop."""
        for some in _batches(calls):
            for finished in await self._arecord(some):
                yield finished

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
        message_id = _message_id(idempotency_key)
        self.append([message_entry(self.id, message_id, message, payload=payload, at=at)])
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
        message_id = _message_id(idempotency_key)
        await self.append_async(
            lambda: [message_entry(self.id, message_id, message, payload=payload, at=at)]
        )
        return message_id

    def messages(self, messages: Sequence[Message]) -> list[UUID]:
        """Record messages in their order with one sync; see `message`."""
        ids = [new_id() for _ in messages]
        self.append(self._message_entries(ids, messages))
        return ids

    async def amessages(self, messages: Sequence[Message]) -> list[UUID]:
        """Like `messages`, without blocking the event loop."""
        ids = [new_id() for _ in messages]
        if ids:
            await self.append_async(lambda: self._message_entries(ids, messages))
        return ids

    def offer_tools(self, tools: Iterable[ToolDefinition]) -> UUID:
        """Record which tools the model is offered from here on, in place of those before.

        Returns:
            The id of the offer.

        Raises:
            SessionClosedError, UnavailableError: see `start`.
        """
        offer_id, offered = new_id(), tuple(tools)
        self.append([offered_entry(self.id, offer_id, offered)])
        self.servers = frozenset(tool.namespace for tool in offered if tool.namespace)
        return offer_id

    async def aoffer_tools(self, tools: Iterable[ToolDefinition]) -> UUID:
        """Like `offer_tools`, without blocking the event loop."""
        offer_id, offered = new_id(), tuple(tools)
        await self.append_async(lambda: [offered_entry(self.id, offer_id, offered)])
        self.servers = frozenset(tool.namespace for tool in offered if tool.namespace)
        return offer_id

    def record_leg(self, started: LegStarted, agent: AgentVersion) -> UUID:
        """Record that this session is a leg of an agent run, and how it begins.

        Raises:
            InvalidRecordError: the leg is of another version of the agent.
            SessionClosedError, UnavailableError: see `start`.
        """
        fact_id = new_id()
        self.append([leg_entry(self.id, fact_id, started, agent)])
        return fact_id

    async def arecord_leg(self, started: LegStarted, agent: AgentVersion) -> UUID:
        """Like `record_leg`, without blocking the event loop."""
        fact_id = new_id()
        await self.append_async(lambda: [leg_entry(self.id, fact_id, started, agent)])
        return fact_id

    def record_outcome(self, ended: LegEnded) -> UUID:
        """Record how this leg of an agent run ended.

        Raises:
            SessionClosedError, UnavailableError: see `start`.
        """
        fact_id = new_id()
        self.append([outcome_entry(self.id, fact_id, ended)])
        return fact_id

    async def arecord_outcome(self, ended: LegEnded) -> UUID:
        """Like `record_outcome`, without blocking the event loop."""
        fact_id = new_id()
        await self.append_async(lambda: [outcome_entry(self.id, fact_id, ended)])
        return fact_id

    def close(self, reason: str | None = None) -> None:
        """End the session. Calls that still run may finish.

        Raises:
            SessionClosedError: this process closed the session before.
            UnavailableError: see `start`.
        """
        self.append([closed_entry(self.id, reason)])
        self._is_closed = True

    async def aclose(self, reason: str | None = None) -> None:
        """Like `close`, without blocking the event loop."""
        await self.append_async(lambda: [closed_entry(self.id, reason)])
        self._is_closed = True

    def append(self, entries: Sequence[Entry]) -> None:
        """Append facts of this session together; acknowledged when this returns.

        Raises:
            InvalidRecordError, SessionClosedError, UnavailableError: see `start`.
        """
        self._refuse_closed()
        if entries:
            self.recorder.append(Work(entries))

    async def append_async(self, make: Callable[[], Sequence[Entry]]) -> None:
        """Like `append`, without blocking the event loop; `make` is called in another thread."""

        def work() -> tuple[Work, None]:
            self._refuse_closed()
            return Work(make()), None

        await self.recorder.append_async(work)

    def _start(
        self, call: ToolCall, family: str | None, policy: Policy | None
    ) -> tuple[Work, Invocation]:
        self._refuse_closed()
        budgets = policy or self.recorder.policy
        chosen = family_of(self.recorder, call, family, budgets)
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

    async def _arecord(self, calls: Sequence[EndedCall]) -> list[Finished]:
        def make() -> tuple[Work, EndedBatch]:
            self._refuse_closed()
            batch = ended_batch(self.recorder, self.id, calls)
            return batch.work, batch

        level, batch = await self.recorder.append_async(make)
        return batch.acknowledged(level)

    def _message_entries(self, ids: Sequence[UUID], messages: Sequence[Message]) -> list[Entry]:
        made = zip(ids, messages, strict=True)
        return [message_entry(self.id, message_id, message) for message_id, message in made]

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

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._is_own:
            with suppress(SessionClosedError):  # the same
                await self.aclose()


def _session_id(name: str | None, key: str | None) -> UUID:
    if name is not None and key is not None:
        raise InvalidRecordError("a session takes a name or an idempotency key, not both")
    if key is not None:
        return keyed_id("session", key)
    return new_id() if name is None else keyed_id("name", name)


def _message_id(key: str | None) -> UUID:
    return new_id() if key is None else keyed_id("message", key)


def _batches(calls: Iterable[EndedCall]) -> Iterator[list[EndedCall]]:
    waiting = iter(calls)
    while batch := list(islice(waiting, _MOST_TOGETHER)):
        yield batch
