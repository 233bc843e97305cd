"""Recording: a session, and in it invocations that are started before and finished after the tool.

What is acknowledged is durable: when `start` returns, the invocation is in the store. `invocation`
has the rest of its life.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar
from uuid import UUID

from sqlalchemy import Connection

from tooltrail.journal.clock import new_id, now
from tooltrail.records import (
    AgentVersion,
    CompleteOutput,
    InvalidRecordError,
    LegFact,
    Message,
    NotFoundError,
    Policy,
    SessionClosedError,
    ToolCall,
    ToolDefinition,
    leg_fact_json,
)
from tooltrail.store._outbox.kept_calls import kept_call
from tooltrail.store._reading.legs import AGENT_RUN
from tooltrail.store._reading.offers import OFFERING
from tooltrail.store._recording import writes
from tooltrail.store._recording.answer_journal import AnswerBeginning, AnswerJournal
from tooltrail.store._recording.batches import BatchRecorder
from tooltrail.store._recording.ended_invocation import EndedInvocation
from tooltrail.store._recording.group_commit import Write
from tooltrail.store._recording.legs import agent_json
from tooltrail.store._recording.running import Place, RunningInvocation, begin
from tooltrail.store._recording.sessions import (
    MessageBodies,
    put_versions,
    write_closed,
    write_message,
)
from tooltrail.store._recording.starting import Started, commit_start, plan_start
from tooltrail.store.ended import EndedCall, RecordedCalls
from tooltrail.store.entries import Entry, MessageAdded, SessionEnded
from tooltrail.store.finished import Finished
from tooltrail.store.invocation import Invocation
from tooltrail.store.on_unavailable import SessionAwayError

if TYPE_CHECKING:
    from tooltrail.store.store import Store

T = TypeVar("T")


class Session:
    """One conversation or agent run that takes records. Safe to share between threads.

    Made by `Store.open_session`, and closed at the end of a `with` block, or by
    `Store.join_session`, and left open there.

    Attributes:
        id: of the session. One that was opened with an idempotency key while the store was away may
            turn out to be an older one when the store is back; then it is the id of that one.
        only_call: the invocation that the session was opened for and ends with; None for others.
    """

    def __init__(
        self,
        store: "Store",
        key: int,
        session_id: UUID,
        *,
        is_own: bool,
        only_call: UUID | None = None,
        opening: "Callable[[], Session] | None" = None,
    ) -> None:
        self._store = store
        self._opening = opening
        self._is_own = is_own
        self._is_closed_later = False
        self.key = key
        self.id = session_id
        self.only_call = only_call

    def start(
        self, call: ToolCall, *, family: str | None = None, policy: Policy | None = None
    ) -> Invocation:
        """Record that a tool is about to run; durable when this returns.

        Args:
            call: what the model asked for.
            family: the name of the family that its result will be of; by default the one that
                serves tools of this name, by the policy or by the registry. An MCP tool that
                happens to be called `shell` is `generic`.
            policy: other budgets than the store's, for this invocation alone; see
                `Policy.for_tool`.

        While the store is away the start waits in the outbox, where there is one, and
        `Invocation.is_recorded` says so; the end may be recorded whether the store is back or not.

        Raises:
            NotFoundError: there is no such family.
            InvalidRecordError: the policy's numbers for a tool do not fit its family.
            SessionClosedError: the session was closed.
            UnavailableError: the store cannot be written now, nor the outbox if there is one;
                `StartUncertainError` when it went away at a moment at which the start may be
                recorded all the same: to start the call again makes a second record of it.
        """

        def attempt(started: Started) -> RunningInvocation:
            self.resolve()
            key, _ = commit_start(self._store, started, self._open_chain)
            return RunningInvocation(self._store, self, key, started)

        self._refuse_closed_later()
        plan = partial(plan_start, self._store, call, family, policy)
        return begin(self._store, plan, attempt, lambda _: Place(self))

    def record(
        self,
        call: ToolCall,
        output: CompleteOutput,
        *,
        family: str | None = None,
        policy: Policy | None = None,
        started_at: datetime | None = None,
        finished_at: datetime | None = None,
        idempotency_key: str | None = None,
    ) -> Finished:
        """Record a call that has ended already, whole and in one transaction.

        It leaves what `start` and `finish` would have left, and is durable when this returns. Where
        the artifacts are away or the store has reached its limit, long streams are kept in the
        database, since they are nowhere else. On a full disk a small record is written in the room
        that is held back, and of a larger one nothing: it is still in the hands of who called.

        With an idempotency key it is recorded once, by whichever process is first. Later calls with
        the same content change nothing and hand back what was recorded then, in a closed session
        too.

        Args:
            call: what the model asked for.
            output: what the tool gave; its streams carry their content.
            family: see `start`.
            policy: see `start`.
            started_at: when it began, aware; by default when it ended.
            finished_at: when it ended, aware; by default now. How long it took is recorded where
                both are given.
            idempotency_key: any text of up to 1,000 characters, in use for nothing else in the
                store. The same content is: the same session, call, family, output and given times.

        Raises:
            NotFoundError: there is no such family.
            IdempotencyConflictError: the key names a record of other content.
            InvalidRecordError: the output is of another tool or not of its family, a stream does
                not carry its content, or another than its digest names, a time has no zone or is
                far off, it ended before it began, or the key is empty or too long.
            SessionClosedError: the session was closed.
            DamageError: the session has no ledger head.
            UnavailableError: the store cannot be written now; `RecordUncertainError` when it went
                away at a moment at which the call may be recorded all the same.
        """
        ended = EndedCall(call, output, family, policy, started_at, finished_at, idempotency_key)
        return self._record(ended)

    async def arecord(
        self,
        call: ToolCall,
        output: CompleteOutput,
        *,
        family: str | None = None,
        policy: Policy | None = None,
        started_at: datetime | None = None,
        finished_at: datetime | None = None,
        idempotency_key: str | None = None,
    ) -> Finished:
        """As `record`, for a task: it is done in a thread of the store, and the loop goes on.

        Many tasks share the waits for the disk. A task that is cancelled while it waits leaves a
        call that is recorded whole or not at all, and does not learn which: what has begun comes to
        its end, and what has not never begins. With an idempotency key it may be recorded again.

        Args and errors: see `record`.
        """
        ended = EndedCall(call, output, family, policy, started_at, finished_at, idempotency_key)
        return await self._store.threads.run(lambda: self._record(ended))

    def record_many(
        self,
        calls: Iterable[EndedCall],
        *,
        on_durable: Callable[[Finished], object] | None = None,
    ) -> RecordedCalls:
        """Record calls that have ended, as `record` does, in order and many in one transaction.

        When an error is raised, by a call that cannot be recorded or by whoever gives the calls,
        all that were given before it are durable and none behind it is. Memory is bounded: a batch
        holds 256 calls at most, and no further one when their arguments and streams have 8 MiB.
        Other writers come in between two batches.

        Args:
            calls: as they come, from a generator for instance.
            on_durable: called for each in their order once it is durable, with what was recorded
                first where its key was in use already. What it raises ends this; of the calls
                behind, those of the same batch may be durable then, too.

        Returns:
            How many were recorded, and how many had been before.

        Raises:
            TooltrailError: see `record`. After a `RecordUncertainError` all calls that it names
                are recorded, or none.
        """
        self._refuse_closed_later()
        return BatchRecorder(self._store, self, on_durable).record(calls)

    def add_message(self, role: str, text: str) -> UUID:
        """Record an entry of the conversation that is not a tool call.

        Args:
            role: `user`, `assistant`, `system` or what the runtime calls it.
            text: the whole text; kept exactly, lone surrogates included.

        Raises:
            SessionClosedError: the session was closed.
            UnavailableError: the store cannot be written now.
        """
        return self._add(MessageAdded(session=self.id, role=role, text=text))

    def record_message(
        self, message: Message, *, payload: bytes | None = None, message_id: UUID | None = None
    ) -> UUID:
        """Record a message with all that is in it: calls, results, media, reasoning.

        A call of it that is started with the id that this gives, as `ToolCall.message_id`, and its
        place, as `ToolCall.position`, is known to be of it.

        Args:
            message: as it was read, or as it is sent.
            payload: what the provider sent of it, kept byte for byte.
            message_id: that it gets, of no other message; by default a new one.

        Returns:
            The id of the message.

        Raises:
            SessionClosedError: the session was closed.
            UnavailableError: the store cannot be written now.
        """
        name = message_id or new_id()
        return self._add(MessageAdded.of(self.id, message, message_id=name, payload=payload))

    def begin_answer(self, wire_format: str, provider: str | None = None) -> AnswerBeginning:
        """What is known of an answer before anything of it has come; nothing is recorded yet.

        Args:
            wire_format: in which it comes.
            provider: whose server gives it, where the format does not say that.
        """
        return AnswerBeginning(
            store=self._store.info.id,
            session=self.id,
            wire_format=wire_format,
            provider=provider,
            id=new_id(),
            at=now(),
        )

    def journal_answer(self, beginning: AnswerBeginning) -> AnswerJournal:
        """Where what comes of an answer is written down until it is recorded."""
        return AnswerJournal(self._store.spool, self._store.owner, beginning)

    async def run_in_thread(self, task: Callable[[], T]) -> T:
        """Record something without holding the loop up; see `arecord`, also for what is cancelled.

        Args:
            task: uses this session.
        """
        return await self._store.threads.run(task)

    def offer_tools(self, tools: Iterable[ToolDefinition]) -> UUID:
        """Record which tools the model is offered from here on, in place of those before.

        Each version of a tool is kept once in a store, by the digest of its definition. Which one a
        call ran is what the session offered last before it.

        Args:
            tools: all of them, in their order; none where no tool is on offer any more.

        Returns:
            The id of the entry of the conversation, which is of the role `tools`.

        Raises:
            SessionClosedError: the session was closed.
            UnavailableError: the store cannot be written now.
        """
        offered = list(tools)
        return self._add(
            MessageAdded(
                session=self.id,
                role=OFFERING,
                text=", ".join(tool.name for tool in offered),
                tools=tuple(tool.to_json().decode() for tool in offered),
            )
        )

    def record_leg(self, fact: LegFact, agent: AgentVersion | None = None) -> UUID:
        """Record how the leg of an agent run that this session is began, or how it came out.

        Each once. Models are told nothing of it.

        Args:
            fact: what is to be known.
            agent: the version of the agent, where the leg begins; it is kept once in a store.

        Returns:
            The id of the entry of the conversation, which is of the role `agent`.

        Raises:
            InvalidRecordError: a leg begins without its agent, or with another version of it.
            SessionClosedError: the session was closed.
            UnavailableError: the store cannot be written now.
        """
        return self._add(
            MessageAdded(
                session=self.id,
                role=AGENT_RUN,
                text=fact.sentence,
                leg=leg_fact_json(fact),
                agent_version=None if agent is None else agent_json(agent),
            )
        )

    def _add(self, entry: MessageAdded) -> UUID:
        bodies = MessageBodies.of(self._store, entry)

        def write(connection: Connection) -> None:
            chain = self._open_chain(connection)
            writes.put_bodies(connection, bodies.all())
            put_versions(connection, [bodies])
            write_message(
                connection,
                chain,
                message_id=entry.id,
                created_at=entry.at,
                role=entry.role,
                bodies=bodies,
            )

        def attempt() -> UUID:
            self.resolve()
            self._store.writes.run(Write(write))
            return entry.id

        self._refuse_closed_later()
        return self._store.fallback.run(attempt, lambda: (entry, entry.id))

    def close(self) -> None:
        """End the session: it takes no new records. Running invocations may still finish.

        Raises:
            SessionClosedError: it was closed before.
            UnavailableError: the store cannot be written now.
        """
        closed_at = now()

        def attempt() -> bool:
            self.resolve()
            self._store.writes.run(Write(lambda c: write_closed(c, self._open_chain(c), closed_at)))
            return False

        def instead() -> tuple[Entry, bool]:
            return SessionEnded(session=self.id, at=closed_at), True

        self._refuse_closed_later()
        self._is_closed_later = self._store.fallback.run(attempt, instead)

    def resolve(self) -> None:
        """Find the session in the store, if that is yet to be done.

        Raises:
            NotFoundError: the store has none with its id.
            UnavailableError: it waits in the outbox, or was dropped, or the store cannot be asked.
        """
        if self.key:
            return
        outbox = self._store.fallback.outbox
        name = outbox.joined(self.id)
        try:
            self.key = self._store.reader.session_key(name)
        except NotFoundError as error:
            if outbox.is_waiting():
                raise SessionAwayError(f"session {name} waits in the outbox") from error
            if self._store.fallback.choice != "drop_and_count":
                raise
            self.key, name = self._opened_late(name)
        self.id = name

    def _opened_late(self, name: UUID) -> tuple[int, UUID]:
        """Key and id of the session, which was dropped when it was to be opened.

        Raises:
            SessionAwayError: nobody can open it any more.
        """
        if self._opening is None:
            raise SessionAwayError(f"session {name} was dropped, or never opened")
        try:
            opened = self._opening()
        except (NotFoundError, InvalidRecordError) as error:
            # Another thread may have opened it meanwhile.
            with suppress(NotFoundError):
                return self._store.reader.session_key(name), name
            raise SessionAwayError(f"session {name} was dropped: {error}") from error
        return opened.key, opened.id

    def found(self, key: int, session_id: UUID) -> "Session":
        """The session that the store has of what is recorded here: this one, unless it was closed.

        Args:
            key: of the session in which the store has it.
            session_id: of the same.
        """
        if self.key in (0, key) and session_id in (
            self.id,
            self._store.fallback.outbox.joined(self.id),
        ):
            self.key, self.id = key, session_id
            return self
        return Session(self._store, key, session_id, is_own=False)

    def _record(self, ended: EndedCall) -> Finished:
        made: list[EndedInvocation] = []

        def attempt() -> Finished:
            self.resolve()
            made.append(EndedInvocation(self._store, self, ended))
            return made[0].record()

        def instead() -> tuple[Entry, Finished]:
            one = made[0] if made else EndedInvocation(self._store, self, ended)
            return kept_call(self._store.fallback, one)

        self._refuse_closed_later()
        return self._store.fallback.run(attempt, instead)

    def _refuse_closed_later(self) -> None:
        if self._is_closed_later:
            raise SessionClosedError(f"session {self.id} is closed")

    def _open_chain(self, connection: Connection) -> writes.Chain:
        chain = writes.lock_chain(connection, self.key, self.id)
        chain.refuse_if_closed()
        return chain

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._is_own:
            # Closed in the block, by us or by others: that is how it was to end.
            with suppress(SessionClosedError):
                self.close()
