"""One conversation or agent run, and the methods that record what happens in it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, suppress
from datetime import datetime
from functools import partial
from types import NoneType
from typing import Any, Final, Self, TypedDict, TypeVar, Unpack
from uuid import UUID

from tooltrail.journal.clock import id_of, new_id, now
from tooltrail.journal.ended_calls import EndedCall, ended_facts, family_of
from tooltrail.journal.environment import environment_json
from tooltrail.journal.invocation import Finished, Invocation
from tooltrail.journal.log import Entry
from tooltrail.journal.recorder import Recorder
from tooltrail.records import (
    CompleteOutput,
    InvalidRecordError,
    Message,
    Policy,
    SessionClosedError,
    ToolCall,
    ToolDefinition,
)
from tooltrail.records.digests import digest_of
from tooltrail.records.errors import check_type
from tooltrail.records.facts import MessageAdded, SessionClosed, SessionOpened, ToolsOffered
from tooltrail.records.failures import error_of_exception
from tooltrail.records.ids import keyed_id

T = TypeVar("T")

_MOST_TOGETHER: Final = 256
"""The most calls of `record_many` that are appended together."""

_MOST_BYTES_TOGETHER: Final = 8 << 20
"""A batch ends at about this many stream bytes, since the journal is locked while it is written."""


class SessionOptions(TypedDict, total=False):
    """The arguments of `Session.open`, which describes them."""

    name: str | None
    title: str | None
    agent: str | None
    parent: UUID | None
    idempotency_key: str | None
    at: datetime | None
    environment: Mapping[str, str]


class Session(AbstractContextManager["Session"], AbstractAsyncContextManager["Session"]):
    """One conversation that is being recorded. Safe to share between threads and tasks.

    The end of a `with` block closes a session from `open`, and leaves one from `join` open.

    Every method that records raises `SessionClosedError` if this object closed the session,
    `InvalidRecordError` if a value cannot be recorded, and `UnavailableError` if the spool cannot
    be written, or with `strict` the database cannot be reached.

    Attributes:
        recorder: appends the facts.
        id: id of the session.
        servers: names of the servers whose tools are offered to the model.
    """

    def __init__(self, recorder: Recorder, session_id: UUID, *, is_own: bool) -> None:
        self.recorder = recorder
        self.id = session_id
        self.servers = frozenset[str]()
        self._is_own = is_own
        self._is_closed = False

    @classmethod
    def open(cls, recorder: Recorder, **options: Unpack[SessionOptions]) -> Self:
        """Begin a session; acknowledged when this returns.

        Args:
            recorder: appends the facts.
            name: a name; all processes that use it share the session, such as `nightly-build`.
            title: a short text for people.
            agent: name of the agent that holds the session.
            parent: the session that started this one, for a sub-agent.
            idempotency_key: every `open` with this key opens the same session.
            at: when the session began, as an aware time; by default now.
            environment: further members of the recorded environment.

        Raises:
            InvalidRecordError: a key or name is empty or too long, or both are given.
            UnavailableError: the spool cannot be written.
        """
        entries, session = cls._opened(recorder, **options)
        recorder.append(entries)
        return session

    @classmethod
    async def aopen(cls, recorder: Recorder, **options: Unpack[SessionOptions]) -> Self:
        """Like `open`, without blocking the event loop."""
        _, session = await recorder.append_async(lambda: cls._opened(recorder, **options))
        return session

    @classmethod
    def join(cls, recorder: Recorder, session: UUID | str) -> Self:
        """Continue a session of this or any other process.

        Args:
            recorder: appends the facts.
            session: id of the session, or the name that it was opened with. A session that was not
                opened yet begins with its first fact.

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
            call: the call that the model asked for.
            family: name of the family of the result; by default the family of the tool.
            policy: budgets for this call alone; by default those of the recorder.

        Raises:
            NotFoundError: there is no such family.
            InvalidRecordError: the policy's numbers for the tool do not fit its family.
        """
        return self._append(self._started(call, family, policy))

    async def astart(
        self, call: ToolCall, *, family: str | None = None, policy: Policy | None = None
    ) -> Invocation:
        """Like `start`, without blocking the event loop.

        If the task is cancelled meanwhile, the call ends as `cancelled`.
        """
        begun: list[Invocation] = []

        def start() -> tuple[list[Entry], Invocation]:
            entries, invocation = self._started(call, family, policy)
            begun.append(invocation)
            return entries, invocation

        try:
            return await self._append_async(start)
        except asyncio.CancelledError as error:
            # The start is on its way, and the caller never gets the invocation.
            output = CompleteOutput.failure(call.tool_name, error_of_exception(error))
            self.recorder.append_async(lambda: begun[0].end_facts(output) if begun else ([], None))
            raise

    def record(self, ended: EndedCall) -> Finished:
        """Record a call that ended already; acknowledged when this returns.

        A call with an idempotency key is recorded once. The same key with other content is
        rejected: with `acknowledge="store"` this raises, else `status` lists the rejected fact.

        Raises:
            NotFoundError: there is no such family.
            InvalidRecordError: the output belongs to another tool or does not fit its family, a
                stream lacks its content, or a time is impossible.
        """
        (finished,) = self.record_many([ended])
        return finished

    async def arecord(self, ended: EndedCall) -> Finished:
        """Like `record`, without blocking the event loop."""
        (finished,) = [one async for one in self.arecord_many([ended])]
        return finished

    def record_many(self, calls: Iterable[EndedCall]) -> Iterator[Finished]:
        """Record calls that ended already, many with one sync; see `record`. Iterate to the end.

        Each yielded call is acknowledged, and so are all calls before it. Memory is bounded. If a
        call is faulty, no call of its batch is recorded. If `calls` raises, the calls before are
        recorded first.

            recorded = sum(1 for _ in session.record_many(calls))
        """
        for some in _batches(calls):
            entries, ended = self._ended(some)
            level = self.recorder.append(entries)
            for finished in ended:
                yield finished.replaced(acknowledged=level)

    async def arecord_many(self, calls: Iterable[EndedCall]) -> AsyncIterator[Finished]:
        """Like `record_many`, without blocking the event loop."""
        for some in _batches(calls):
            level, ended = await self.recorder.append_async(partial(self._ended, some))
            for finished in ended:
                yield finished.replaced(acknowledged=level)

    def message(
        self,
        message: Message,
        *,
        payload: bytes | None = None,
        at: datetime | None = None,
        idempotency_key: str | None = None,
    ) -> UUID:
        """Record a message with all its content: text, calls, results, media, reasoning.

        Args:
            message: the message as read from a provider, or as sent to one.
            payload: the bytes that the provider sent; they are kept unchanged.
            at: time of the message, aware; by default now.
            idempotency_key: a message with this key is recorded once.

        Returns:
            The id of the message, for `ToolCall.message_id` of the calls that it asks for.
        """
        return self._append(self._message(message, payload, at, idempotency_key))

    async def amessage(
        self,
        message: Message,
        *,
        payload: bytes | None = None,
        at: datetime | None = None,
        idempotency_key: str | None = None,
    ) -> UUID:
        """Like `message`, without blocking the event loop."""
        made = partial(self._message, message, payload, at, idempotency_key)
        return await self._append_async(made)

    def messages(self, messages: Iterable[Message]) -> list[UUID]:
        """Record messages in their order, with one sync; see `message`."""
        return self._append(self._messages(messages))

    async def amessages(self, messages: Iterable[Message]) -> list[UUID]:
        """Like `messages`, without blocking the event loop."""
        return await self._append_async(partial(self._messages, messages))

    def offer_tools(self, tools: Iterable[ToolDefinition]) -> UUID:
        """Record which tools the model is offered from now on; they replace the earlier ones.

        Returns the id of the offer.
        """
        offer_id, self.servers = self._append(self._offered(tools))
        return offer_id

    async def aoffer_tools(self, tools: Iterable[ToolDefinition]) -> UUID:
        """Like `offer_tools`, without blocking the event loop."""
        offer_id, self.servers = await self._append_async(partial(self._offered, tools))
        return offer_id

    def close(self, reason: str | None = None) -> None:
        """End the session. Calls that still run may finish."""
        self._append(self._closed(reason))
        self._is_closed = True

    async def aclose(self, reason: str | None = None) -> None:
        """Like `close`, without blocking the event loop."""
        await self._append_async(partial(self._closed, reason))
        self._is_closed = True

    def append(self, entries: Sequence[Entry]) -> None:
        """Append facts of this session together; acknowledged when this returns."""
        self._refuse_closed()
        self.recorder.append(entries)

    async def aappend(self, entries: Sequence[Entry]) -> None:
        """Like `append`, without blocking the event loop."""
        await self._append_async(lambda: (entries, None))

    def _append(self, made: tuple[Sequence[Entry], T]) -> T:
        """Append facts, and return the result that was made with them."""
        entries, result = made
        self.append(entries)
        return result

    async def _append_async(self, make: Callable[[], tuple[Sequence[Entry], T]]) -> T:
        """Like `_append`, without blocking the event loop; `make` is called in another thread."""

        def made() -> tuple[Sequence[Entry], T]:
            self._refuse_closed()
            return make()

        _, result = await self.recorder.append_async(made)
        return result

    @classmethod
    def _opened(
        cls, recorder: Recorder, **options: Unpack[SessionOptions]
    ) -> tuple[list[Entry], Self]:
        for unknown in options.keys() - SessionOptions.__annotations__:
            raise TypeError(f"a session has no option {unknown}")
        given: dict[str, Any] = {**options}
        name, key = given.get("name"), given.pop("idempotency_key", None)
        if name is not None and key is not None:
            raise InvalidRecordError("a session takes a name or an idempotency key, not both")
        session_id = id_of("session", key) if name is None else keyed_id("name", name)
        more = given.pop("environment", {})
        check_type("environment", more, Mapping)
        environment = environment_json(more)
        at, digest = given.pop("at", None), digest_of(environment)
        at = now() if at is None else at
        fact = SessionOpened(session=session_id, at=at, environment=digest, **given)
        return [Entry(fact, [environment])], cls(recorder, session_id, is_own=True)

    def _closed(self, reason: str | None) -> tuple[list[Entry], None]:
        return [Entry(SessionClosed(session=self.id, at=now(), reason=reason))], None

    def _started(
        self, call: ToolCall, family: str | None, policy: Policy | None
    ) -> tuple[list[Entry], Invocation]:
        check_type("call", call, ToolCall)
        check_type("policy", policy, Policy, NoneType)
        budgets = policy or self.recorder.policy
        chosen = family_of(self.recorder, call, family, budgets)
        invocation = Invocation(
            self.recorder, self.id, call, chosen, budgets, invocation_id=new_id(), started_at=now()
        )
        return [invocation.start_entry(self.recorder.owner.name())], invocation

    def _ended(self, calls: Sequence[EndedCall]) -> tuple[list[Entry], list[Finished]]:
        self._refuse_closed()
        entries, ended = list[Entry](), list[Finished]()
        for call in calls:
            facts, finished = ended_facts(self.recorder, self.id, call)
            entries += facts
            ended.append(finished)
        return entries, ended

    def _message(
        self, message: Message, payload: bytes | None, at: datetime | None, key: str | None
    ) -> tuple[list[Entry], UUID]:
        message_id = id_of("message", key)
        return [message_entry(self.id, message_id, message, payload=payload, at=at)], message_id

    def _messages(self, messages: Iterable[Message]) -> tuple[list[Entry], list[UUID]]:
        check_type("messages", messages, Iterable)
        made = [(new_id(), one) for one in messages]
        return [message_entry(self.id, *one) for one in made], [name for name, _ in made]

    def _offered(
        self, tools: Iterable[ToolDefinition]
    ) -> tuple[list[Entry], tuple[UUID, frozenset[str]]]:
        check_type("tools", tools, Iterable)
        offered = tuple(tools)
        for tool in offered:
            check_type("a tool", tool, ToolDefinition)
        definitions, offer_id = [tool.to_json() for tool in offered], new_id()
        digests = tuple(map(digest_of, definitions))
        fact = ToolsOffered(session=self.id, id=offer_id, at=now(), tools=digests)
        servers = frozenset(tool.namespace for tool in offered if tool.namespace)
        return [Entry(fact, definitions)], (offer_id, servers)

    def _refuse_closed(self) -> None:
        if self._is_closed:
            raise SessionClosedError(f"session {self.id} is closed")

    def __exit__(self, *_: object) -> None:
        if self._is_own:
            # The block may have closed the session already.
            with suppress(SessionClosedError):
                self.close()

    async def __aexit__(self, *_: object) -> None:
        if self._is_own:
            with suppress(SessionClosedError):  # the block closed it already
                await self.aclose()


def message_entry(
    session: UUID,
    message_id: UUID,
    message: Message,
    *,
    payload: bytes | None = None,
    at: datetime | None = None,
) -> Entry:
    """The fact that a message was added to a session; see `Session.message`."""
    check_type("message", message, Message)
    check_type("payload", payload, bytes, NoneType)
    text, document = message.text.encode("utf-8", "surrogatepass"), message.to_json()
    fact = MessageAdded(
        session=session,
        id=message_id,
        at=now() if at is None else at,
        role=message.role,
        text=digest_of(text),
        document=digest_of(document),
        payload=None if payload is None else digest_of(payload),
        wire_format=None if message.origin is None else message.origin.wire_format,
    )
    return Entry(fact, [text, document] if payload is None else [text, document, payload])


def _batches(calls: Iterable[EndedCall]) -> Iterator[list[EndedCall]]:
    check_type("calls", calls, Iterable)
    batch, size = list[EndedCall](), 0
    try:
        for call in calls:
            check_type("a call", call, EndedCall)
            batch.append(call)
            size += sum(stream.size for stream in call.output.streams)
            if len(batch) == _MOST_TOGETHER or size >= _MOST_BYTES_TOGETHER:
                yield batch
                batch, size = [], 0
    except Exception:
        if batch:
            yield batch
        raise
    if batch:
        yield batch
