"""A provider's answers put into a session as they come, and results told back.

    answer = record_response(session, "openai", client.chat.completions.create(...))
    for call in answer.calls: finished.append(invoke(tool, call, session.start(call).finish))
    messages += tool_results_message("openai", finished)

The message is recorded with the provider's own bytes before its calls are handed out, and each
call knows its message and its place in it; so a call is recorded with the batch that it is of.
"""

import json
import threading
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Self, TypeVar, cast
from uuid import UUID

from pydantic import JsonValue

from tooltrail.records import (
    CallBlock,
    Conversation,
    InvalidRecordError,
    Message,
    ResultBlock,
    TextBlock,
    ToolCall,
    result_status,
)
from tooltrail.store._recording.answer_journal import AnswerBeginning
from tooltrail.store._recording.answers import messages_of
from tooltrail.store.finished import Finished
from tooltrail.wire import (
    DEFAULT_EXPORT_POLICY,
    Chunk,
    ExportPolicy,
    JsonObject,
    Response,
    ResponseStream,
    event_of,
    wire_format,
)
from tooltrail.wire.members import list_in, object_in

if TYPE_CHECKING:
    from tooltrail.store.recorder import Session

ChunkT = TypeVar("ChunkT", bound=Chunk)


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """A provider's answer that is in a session.

    Attributes:
        response: what was read of it.
        message_ids: of the messages that were recorded, one for each choice.
        calls: what the first choice asks the caller to run, each with the id of its message. Those
            without an id have one that was made for them.
    """

    response: Response
    message_ids: tuple[UUID, ...]
    calls: tuple[ToolCall, ...]


def record_response(
    session: "Session", format_name: str, payload: Chunk, *, provider: str | None = None
) -> RecordedAnswer:
    """Record an answer that was not streamed; durable when this returns.

    Args:
        session: that it belongs to.
        format_name: of the wire format that it is in.
        payload: the body of the answer as bytes or text, which is kept exactly; or a mapping, or
            what an official client gave, of which the JSON is kept.
        provider: whose server gave it, where the format does not say that.

    Raises:
        NotFoundError: there is no such format.
        InvalidRecordError: the payload is no JSON object.
        SessionClosedError, UnavailableError: see `Session.record_message`.
    """
    known = wire_format(format_name)
    data = _bytes_of(payload)
    response = known.read_response(_object_of(payload))
    return _recorded(session, session.begin_answer(format_name, provider), response, data)


class RecordedStream(Generic[ChunkT]):
    """The chunks of an answer as they come, recorded when the last one has passed.

    Made by `record_stream`. Iterate over it in place of the stream, which gives the very chunks of
    it: with `async for` over the stream of an asynchronous client. When the stream ends, fails, or
    is left before its end, what has come is recorded; what was cut off is flagged. Use it as a
    context manager, `async with` for tasks, where the loop over it may be left early.

    Each chunk is in the spool before it is handed on: of a program that is killed meanwhile,
    `repair` records what had come.

    Attributes:
        answer: what was recorded.
    """

    def __init__(
        self,
        session: "Session",
        format_name: str,
        chunks: Iterable[ChunkT] | AsyncIterable[ChunkT],
        *,
        provider: str | None = None,
    ) -> None:
        self._session = session
        self._chunks = chunks
        self._stream = ResponseStream(wire_format(format_name))
        self._data: list[bytes] = []
        self._beginning = session.begin_answer(format_name, provider)
        self._journal = session.journal_answer(self._beginning)
        self._response: Response | None = None
        # A loop that is left early may be closed by the interpreter while the caller does the same.
        self._closing = threading.RLock()
        self._is_closing = False
        self._answer: RecordedAnswer | None = None

    def __iter__(self) -> Iterator[ChunkT]:
        if not isinstance(self._chunks, Iterable):
            raise TypeError("the stream is asynchronous: use `async for`")
        try:
            for chunk in self._chunks:
                self._take(chunk)
                yield chunk
        finally:
            self.close()

    async def __aiter__(self) -> AsyncIterator[ChunkT]:
        if not isinstance(self._chunks, AsyncIterable):
            raise TypeError("the stream is not asynchronous: use `for`")
        try:
            async for chunk in self._chunks:
                self._take(chunk)
                yield chunk
        finally:
            await self.aclose()

    def close(self) -> None:
        """Record what has come; nothing to do where that is recorded.

        Raises:
            SessionClosedError, UnavailableError: see `Session.record_message`. It can be tried
                again, and what has come stays in the spool.
        """
        with self._closing:
            if self._answer is not None or self._is_closing:
                return
            self._is_closing = True
            try:
                self._journal.close()
                self._response = self._response or self._stream.finish()
                data = b"".join(self._data)
                self._answer = _recorded(self._session, self._beginning, self._response, data)
                self._journal.remove()
            finally:
                self._is_closing = False

    async def aclose(self) -> None:
        """As `close`, for a task: it is done in a thread of the store, and the loop goes on."""
        await self._session.run_in_thread(self.close)

    @property
    def message_id(self) -> UUID:
        """Of the message that the first choice becomes."""
        return self._beginning.id

    @property
    def answer(self) -> RecordedAnswer:
        """What was recorded.

        Raises:
            InvalidRecordError: the stream has not ended yet.
        """
        if self._answer is None:
            raise InvalidRecordError("the stream has not ended: iterate over it, or close it")
        return self._answer

    def _take(self, chunk: ChunkT) -> None:
        is_event = not isinstance(chunk, bytes | str)
        # What a client's object says is asked of it once.
        told = event_of(chunk) if is_event else chunk
        data = _bytes_of(told) + (b"\n" if is_event else b"")
        self._journal.append(data)
        self._data.append(data)
        self._stream.feed(told)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()


def record_stream(
    session: "Session",
    format_name: str,
    chunks: Iterable[ChunkT] | AsyncIterable[ChunkT],
    *,
    provider: str | None = None,
) -> RecordedStream[ChunkT]:
    """Hand on the chunks of a streamed answer, and record it when the last one has passed.

    Args:
        session: that it belongs to.
        format_name: of the wire format that it is in.
        chunks: as they come: pieces of the body, cut anywhere, or the events of an official client,
            which may be an asynchronous one.
        provider: see `record_response`.

    Raises:
        NotFoundError: there is no such format.
    """
    return RecordedStream(session, format_name, chunks, provider=provider)


def tool_results_message(
    format_name: str,
    finished: Iterable[Finished],
    policy: ExportPolicy = DEFAULT_EXPORT_POLICY,
) -> list[JsonValue]:
    """What the next request tells of calls that have ended: items for its messages.

    They go behind the answer that asked for the calls, which the caller has from its provider: one
    message for each result, or one for all, as the format wants it. The model is shown the
    receipts.

    Args:
        format_name: of the wire format.
        finished: the calls of one answer, in their order, as they were recorded.
        policy: see `tooltrail.wire`. A call without an id, where the format needs one, has its
            result told as text, and all others of the batch with it.

    Raises:
        NotFoundError: there is no such format.
        ExportRefusedError: something would be changed, and the policy is strict.
    """
    known, ended = wire_format(format_name), list(finished)
    asked = Message(role="assistant", blocks=tuple(_asked(one) for one in ended))
    told = Message(role="tool", blocks=tuple(_told(one) for one in ended))
    export = known.write_history(Conversation.of([asked, told]), policy)
    histories = (list_in(value) for value in export.request.values() if isinstance(value, list))
    items: list[JsonValue] = next(histories, list[JsonValue]())
    if export.report.of_kind("batch_as_text"):
        # The calls as text, which the caller has in the answer, and then the results.
        return items[-1:]
    return [item for item in items if known.is_result(object_in(item))]


def _asked(finished: Finished) -> CallBlock:
    return CallBlock(call=finished.call, key=str(finished.invocation_id))


def _told(finished: Finished) -> ResultBlock:
    error = finished.canonical.error
    return ResultBlock(
        call_id=finished.call.call_id,
        tool_name=finished.call.tool_name,
        status=result_status(finished.state, None if error is None else error.kind),
        content=(TextBlock(text=finished.receipt.text),),
        key=str(finished.invocation_id),
    )


def _recorded(
    session: "Session", beginning: AnswerBeginning, response: Response, data: bytes
) -> RecordedAnswer:
    named, provider = beginning.wire_format, beginning.provider
    messages = [*messages_of(response, named, provider, beginning.id)]
    for message_id, message in messages:
        # The bytes are of all choices, and kept once.
        payload = data if message_id == beginning.id else None
        session.record_message(message, payload=payload, message_id=message_id)
    ids = tuple(message_id for message_id, _ in messages)
    _, first = messages[0]
    calls = tuple(call.model_copy(update={"message_id": ids[0]}) for call in first.calls)
    return RecordedAnswer(response, ids, calls)


def _object_of(payload: Chunk) -> JsonObject:
    if not isinstance(payload, bytes | str):
        return event_of(payload)
    try:
        value: object = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise InvalidRecordError(f"the answer is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise InvalidRecordError("the answer is no JSON object")
    return cast("JsonObject", value)


def _bytes_of(chunk: Chunk) -> bytes:
    if isinstance(chunk, bytes):
        return chunk
    if isinstance(chunk, str):
        return chunk.encode("utf-8", "surrogatepass")
    # A client's object is no longer what came over the connection; its JSON is what there is.
    return json.dumps(event_of(chunk), separators=(",", ":")).encode()
