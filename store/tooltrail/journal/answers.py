"""Recording a provider's answers in a session as they arrive.

    answer = record_response(session, "openai", client.chat.completions.create(...))
    for call in answer.calls: finished.append(invoke(tool, call, session.start(call).finish))

An answer becomes one message for each choice. The first message has the provider's own bytes. The
messages are recorded before their calls are returned, and each call names its message and its
position in the message. So a recorded call is linked to its batch.

The ids of the messages are derived from the id of the answer. So the program, and the ingester if
the program died, record the same messages. The last message has the id of the answer and marks the
end of the answer. So an append that was cut off between two messages does not end the answer.
"""

import asyncio
import json
import sys
import threading
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from types import NoneType
from typing import Final, Generic, Self, TypeVar, cast
from uuid import UUID

from tooltrail.artifacts import Capture, CaptureLimits
from tooltrail.journal.clock import new_id, now
from tooltrail.journal.log import Entry
from tooltrail.journal.session import Session, message_entry
from tooltrail.records import (
    CallBlock,
    InvalidRecordError,
    Message,
    NotFoundError,
    Origin,
    ToolCall,
)
from tooltrail.records.errors import check_type
from tooltrail.records.facts import AnswerStarted
from tooltrail.records.frozen import Frozen
from tooltrail.wire import (
    Chunk,
    JsonObject,
    Response,
    ResponseStream,
    WireFormat,
    event_of,
    read_stream,
    wire_format,
)
from tooltrail.wire.framing import LineEnds
from tooltrail.wire.streaming import check_answer, check_stream
from tooltrail.wire.sturdy import TOO_DEEP, bounded, is_bounded

ChunkT = TypeVar("ChunkT", bound=Chunk)

PAYLOAD: Final = "payload"
"""Role of the captured bytes of an answer; its file is `<spool>/<message id>/payload.zst`."""


class RecordedAnswer(Frozen):
    """A provider's answer that is in a session.

    Attributes:
        response: content of the answer. Each call has the id of its message. A call without an
            id got a made one.
        message_ids: ids of the recorded messages, one for each choice.
        calls: calls that the first choice asks the caller to run.
    """

    response: Response
    message_ids: tuple[UUID, ...]
    calls: tuple[ToolCall, ...]


def record_response(
    session: Session, format_name: str, payload: Chunk, *, provider: str | None = None
) -> RecordedAnswer:
    """Record an answer that was not streamed; acknowledged when this returns.

    Args:
        session: session of the answer.
        format_name: name of the wire format of the answer.
        payload: the body of the answer as bytes or text, which is kept unchanged; or a mapping or
            an object of an official client, whose JSON is kept.
        provider: provider that sent the answer, if the format does not name it.

    Raises:
        NotFoundError: there is no such format.
        InvalidRecordError: the payload is not a JSON object.
        SessionClosedError, UnavailableError: see `Session`.
    """
    check_answer(payload)
    known = wire_format(format_name)
    data, servers = _bytes_of(payload), known.unsplit(session.servers)
    response = _read(known, payload).with_servers(servers)
    return _record(session, _started(session, format_name, provider), response, data)


class WrongLoopError(InvalidRecordError, TypeError):
    """`for` over an asynchronous stream, or `async for` over one that is not asynchronous."""


class RecordedStream(Generic[ChunkT]):
    """The chunks of an answer as they arrive; the answer is recorded after the last chunk.

    Iterate over it instead of the provider's stream; it yields the same chunks. The answer is
    recorded when the stream ends, fails or is left. A cut-off answer is flagged. In a `with` (or
    `async with`) block you may leave the loop and start another one; the answer is recorded when
    the block ends. Without a block, leaving the loop ends the answer. An `async for` loop that may
    be left early needs a block, because Python closes it only later.

    Each chunk is written to the spool before it is yielded. If the program is killed during the
    stream, the ingester records the chunks that had arrived.

    Attributes:
        answer: the recorded answer.
    """

    def __init__(
        self,
        session: Session,
        format_name: str,
        chunks: Iterable[ChunkT] | AsyncIterable[ChunkT],
        *,
        provider: str | None = None,
    ) -> None:
        """Prepare. For the arguments see `record_response`.

        `chunks` is the stream: pieces of the body, cut anywhere, or the events of an official
        client, synchronous or asynchronous. Raises `NotFoundError` if there is no such format, and
        `InvalidRecordError` if `chunks` is no stream.
        """
        check_stream(chunks)
        self._session = session
        self._chunks = chunks
        self._line_ends = LineEnds()
        self._stream = ResponseStream(wire_format(format_name), session.servers)
        self._data: list[bytes] = []
        # The owner is None until the fact that the answer begins is recorded.
        self._started = _started(session, format_name, provider)
        self._capture = Capture(
            PAYLOAD,
            session.recorder.spool / str(self._started.id) / f"{PAYLOAD}.zst",
            edge_bytes=0,
            limits=CaptureLimits(free_bytes=session.recorder.free_bytes),
        )
        self._response: Response | None = None
        # The interpreter may close a loop that was left early while the caller closes the stream.
        self._closing = threading.RLock()
        self._is_closing = False
        self._is_managed = False
        self._answer: RecordedAnswer | None = None

    def __iter__(self) -> Iterator[ChunkT]:
        if not isinstance(self._chunks, Iterable):
            raise WrongLoopError("the stream is asynchronous: use `async for`")
        self._begin()
        # All loops share one iterator, so each continues where the previous one was left.
        chunks = self._chunks = iter(self._chunks)
        goes_on = False
        try:
            for chunk in chunks:
                self._keep(chunk)
                yield chunk
        except GeneratorExit:
            # At the exit of the interpreter, nothing can be recorded; the ingester does that later.
            goes_on = self._is_managed or sys.is_finalizing()
            raise
        finally:
            if not goes_on:
                self.close()

    async def __aiter__(self) -> AsyncIterator[ChunkT]:
        if not isinstance(self._chunks, AsyncIterable):
            raise WrongLoopError("the stream is not asynchronous: use `for`")
        await asyncio.to_thread(self._begin)
        chunks = self._chunks = aiter(self._chunks)
        goes_on = False
        try:
            async for chunk in chunks:
                self._keep(chunk)
                yield chunk
        except GeneratorExit:
            goes_on = self._is_managed
            raise
        finally:
            if not goes_on:
                await self.aclose()

    def close(self) -> None:
        """Record the chunks that have arrived, once. Does nothing if no chunk was requested yet.

        Raises:
            SessionClosedError, UnavailableError: see `Session`. `close` can be retried; the
                chunks stay in the spool.
        """
        with self._closing:
            if self._answer is not None or self._is_closing or self._started.owner is None:
                return
            self._is_closing = True
            try:
                self._capture.close()
                self._response = self._response or self._stream.finish()
                data = b"".join(self._data)
                self._answer = _record(self._session, self._started, self._response, data)
            finally:
                self._is_closing = False

    async def aclose(self) -> None:
        """Like `close`, without blocking the event loop."""
        await asyncio.to_thread(self.close)

    @property
    def message_id(self) -> UUID:
        """The id of the message of the answer; if there are several choices, of the last one."""
        return self._started.id

    @property
    def is_recorded(self) -> bool:
        """Whether the stream has ended and the answer is recorded in the session."""
        return self._answer is not None

    @property
    def answer(self) -> RecordedAnswer:
        """The recorded answer. Raises `InvalidRecordError` if the stream has not ended yet."""
        if self._answer is None:
            advice = ", or close it" if self._started.owner is not None else ""
            raise InvalidRecordError(f"the stream has not ended: iterate over it{advice}")
        return self._answer

    def _begin(self) -> None:
        """Record that an answer begins, before its first chunk is requested."""
        with self._closing:
            if self._started.owner is None:
                started = self._started.replaced(owner=self._session.recorder.owner.name())
                self._session.append([Entry(started)])
                self._started = started

    def _keep(self, chunk: ChunkT) -> None:
        if self._response is not None:
            raise InvalidRecordError(
                "the answer has ended and is recorded; to leave the loop and continue later, put "
                "both loops into one `with` block"
            )
        is_event = not isinstance(chunk, bytes | str)
        # Serialize a client's object only once.
        said = event_of(chunk) if is_event else self._line_ends.add_to(_bytes_of(chunk))
        data = _bytes_of(said) + (b"\n" if is_event else b"")
        # If the spool cannot be written, the answer goes on: the capture reports its loss.
        self._capture.write(data)
        self._capture.flush()
        self._data.append(data)
        self._stream.feed(said)

    def __enter__(self) -> Self:
        self._is_managed = True
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        self._is_managed = True
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


record_stream = RecordedStream


def _started(session: Session, format_name: str, provider: str | None) -> AnswerStarted:
    check_type("provider", provider, str, NoneType)
    return AnswerStarted(
        session=session.id,
        id=new_id(),
        at=now(),
        wire_format=format_name,
        provider=provider,
        servers=tuple(sorted(session.servers)),
    )


def cut_off_entries(started: AnswerStarted, payload: bytes) -> list[Entry]:
    """The facts of an answer whose program died, from the bytes that had arrived.

    An answer in a format that this program does not know is kept as bytes.
    """
    try:
        known = wire_format(started.wire_format)
        response = read_stream(known, [payload], frozenset(started.servers))
    except NotFoundError as error:
        response = Response.of(unread=[str(error)])
    return _entries(started, _messages_of(started, response), payload)


def _record(
    session: Session, started: AnswerStarted, response: Response, data: bytes
) -> RecordedAnswer:
    messages = _messages_of(started, response)
    session.append(_entries(started, messages, data))
    if response.messages:
        named = tuple(_naming(*one) for one in messages.items())
        response = replace(response, messages=named)
    return RecordedAnswer(response, tuple(messages), response.calls)


def _messages_of(started: AnswerStarted, response: Response) -> dict[UUID, Message]:
    """The messages of an answer by id. The ids are consecutive; the last one is that of the answer.

    There is at least one message, even if the answer contains only an error. Each call has an id;
    a made id is flagged.
    """
    origin = Origin(wire_format=started.wire_format)
    nothing = Message(role="assistant", origin=origin, is_complete=False)
    messages, found = response.messages or (nothing,), dict[UUID, Message]()
    for number, message in enumerate(messages, 1 - len(messages)):
        message_id = UUID(int=started.id.int + number)
        found[message_id] = _completed(message, message_id, started.provider)
    return found


def _entries(
    started: AnswerStarted, messages: Mapping[UUID, Message], payload: bytes
) -> list[Entry]:
    """The facts of the messages of an answer; the first one has the bytes of the answer."""
    return [
        message_entry(
            started.session,
            message_id,
            message,
            payload=payload if number == 0 else None,
            at=started.at,
        )
        for number, (message_id, message) in enumerate(messages.items())
    ]


def _completed(message: Message, message_id: UUID, provider: str | None) -> Message:
    """The message with its provider, and with an id for each call; a missing id is made."""
    origin = message.origin
    if provider is not None and origin is not None:
        origin = origin.model_copy(update={"provider": provider})

    def made(place: int, call: ToolCall) -> dict[str, object]:
        if call.call_id:
            return {}
        flags = (*call.flags, "id_synthesised")
        return {"call_id": f"call_{message_id.hex}_{place}", "flags": flags}

    return _with_calls(message.model_copy(update={"origin": origin}), made)


def _naming(message_id: UUID, message: Message) -> Message:
    """The message, with its id in each of its calls."""
    return _with_calls(message, lambda _place, _call: {"message_id": message_id})


def _with_calls(message: Message, changes: Callable[[int, ToolCall], dict[str, object]]) -> Message:
    """The message with changed calls; `changes` gets the index of a call's block, and the call."""
    blocks = tuple(
        block.model_copy(update={"call": block.call.model_copy(update=changes(place, block.call))})
        if isinstance(block, CallBlock)
        else block
        for place, block in enumerate(message.blocks)
    )
    return message.model_copy(update={"blocks": blocks})


def _read(known: WireFormat, payload: Chunk) -> Response:
    """Read an answer. JSON that is too deep or has too long an integer is reported as unread.

    Raises `InvalidRecordError` if the payload is not a JSON object.
    """
    if not isinstance(payload, bytes | str):
        return known.read_response(event_of(payload))
    try:
        value: object = json.loads(payload)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InvalidRecordError(f"the answer is not JSON: {error}") from error
    except (ValueError, RecursionError) as error:
        return Response.of(unread=[f"the answer cannot be read: {error}"])
    if not isinstance(value, dict):
        raise InvalidRecordError("the answer is not a JSON object")
    return known.read_response(cast("JsonObject", value))


def _bytes_of(chunk: Chunk) -> bytes:
    if isinstance(chunk, bytes):
        return chunk
    if isinstance(chunk, str):
        return chunk.encode("utf-8", "surrogatepass")
    # A client's object does not have the bytes of the connection; its JSON is kept instead.
    event = event_of(chunk)
    if is_bounded(event):
        return json.dumps(event, separators=(",", ":")).encode()
    # Add a line that is not JSON, so that no call runs when the bytes are read again.
    spelled = json.dumps(bounded(event), separators=(",", ":"))
    return f"{spelled}\n[{TOO_DEEP}]".encode()
