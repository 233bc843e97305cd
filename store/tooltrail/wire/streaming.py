"""Assembles a provider's stream, chunk by chunk, into one answer.

Calls are returned only when the answer has ended: before that, a call may be incomplete. A call
that ended too early is flagged `incomplete`; one that cannot be parsed has a `parse_error`.
The answer does not depend on where chunks begin and end.
"""

import base64
from collections.abc import AsyncIterable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, Protocol, cast, runtime_checkable

from pydantic import JsonValue

from tooltrail.records import InvalidRecordError
from tooltrail.records.errors import check_type
from tooltrail.wire._identifiers import NO_SERVERS
from tooltrail.wire.formats import WireFormat
from tooltrail.wire.framing import EventFraming, LineEnds
from tooltrail.wire.members import JsonObject, object_in
from tooltrail.wire.responses import Response
from tooltrail.wire.sturdy import FAULTS, MOST_LEVELS, TOO_DEEP, bounded, is_bounded
from tooltrail.wire.usage import usage_in


@runtime_checkable
class Dumpable(Protocol):
    """An event from an official client: a pydantic model."""

    def model_dump(self, *, mode: str, by_alias: bool, exclude_unset: bool) -> Mapping[str, object]:
        """The members of the event by name."""
        ...


Chunk = bytes | str | Mapping[str, object] | Dumpable
"""Bytes or text of a stream, cut anywhere, or one event as a mapping or as a client's object."""


class ResponseStream:
    """Reads a stream and returns the answer. Not safe to share between threads.

    For `servers`, see `WireFormat.read_response`.
    """

    def __init__(self, wire_format: WireFormat, servers: AbstractSet[str] = NO_SERVERS) -> None:
        check_type("wire_format", wire_format, WireFormat)
        self._format = wire_format
        self._servers = servers
        self._framing = EventFraming()
        self._line_ends = LineEnds()
        self._assembler = wire_format.new_assembler()
        self._spelling = wire_format.usage
        self._usage: list[JsonValue] = []
        self._unread: list[str] = []

    def feed(self, chunk: Chunk) -> None:
        """Add the next chunk of the stream.

        Raises:
            InvalidRecordError: the chunk is not bytes, text, a mapping or a client's object.
        """
        for event in self._events(chunk):
            self._take(event)

    def finish(self) -> Response:
        """Return the answer; called once, after the last chunk."""
        for event in self._framing.finish():
            self._take(event)
        unread = (*self._framing.unread, *self._unread)
        usage = usage_in(self._usage, self._spelling)
        try:
            response = self._assembler.finish(is_done=self._framing.is_done)
        except FAULTS as error:
            unread = (*unread, f"the answer cannot be assembled: {error}")
            return Response.of(unread=unread, usage=usage)
        # An unread piece may be part of any call.
        return self._format.finished(response.with_more(unread=unread), usage, self._servers)

    def _take(self, event: JsonObject) -> None:
        if counts := self._spelling.find(event):
            self._usage.append(counts)
        try:
            self._assembler.feed(event)
        except FAULTS as error:
            self._unread.append(f"an event cannot be read: {error}")

    def _events(self, chunk: Chunk) -> Iterable[JsonObject]:
        if isinstance(chunk, str):
            chunk = chunk.encode("utf-8", "surrogatepass")
        if isinstance(chunk, bytes):
            return self._framing.feed(self._line_ends.add_to(chunk))
        event = event_of(chunk)
        if not is_bounded(event):
            self._unread.append(TOO_DEEP)
            event = object_in(bounded(event))
        return [event]


_ADDED: Final = ("content.", "logprobs.", "refusal.", "tool_calls.")
"""The beginnings of the types of events that `stream` of OpenAI's client adds."""


def event_of(chunk: object) -> JsonObject:
    """The JSON object of an event or answer from an official client.

    Bytes, which AWS's client returns, become base64, as in the JSON of the API. `stream` of
    OpenAI's client wraps each chunk of the provider, and adds events that repeat the answer so far:
    a chunk is unwrapped, and an added event becomes an empty object.

    Raises:
        InvalidRecordError: the chunk is neither a mapping nor a client's object.
    """
    if isinstance(chunk, Mapping):
        return cast("JsonObject", _encoded(dict(cast("Mapping[str, object]", chunk))))
    wrapped = getattr(chunk, "chunk", None)
    if isinstance(wrapped, Dumpable):
        return event_of(wrapped)
    if isinstance(chunk, Dumpable):
        if str(getattr(chunk, "type", "")).startswith(_ADDED):
            return {}
        # Leave out what the provider did not send; aliases are the names on the wire.
        dumped = chunk.model_dump(mode="json", by_alias=True, exclude_unset=True)
        return cast("JsonObject", dict(dumped))
    # The result of a client's `with_raw_response` has the method `parse`.
    advice = ": pass its .parse() result or its bytes" if hasattr(chunk, "parse") else ""
    raise InvalidRecordError(f"{type(chunk).__name__} is no answer and no part of a stream{advice}")


def check_answer(payload: object) -> None:
    """Raise `InvalidRecordError` if this is a stream and not one answer."""
    name, answers = type(payload).__name__, (bytes, bytearray, memoryview, str, Mapping, Dumpable)
    if isinstance(payload, Iterable | AsyncIterable) and not isinstance(payload, answers):
        raise InvalidRecordError(f"{name} is not one answer: use record_stream for a stream")


def check_stream(chunks: Iterable[object] | AsyncIterable[object]) -> None:
    """Raise `InvalidRecordError` if this is certainly no stream; no chunk is requested."""
    check_type("chunks", chunks, Iterable, AsyncIterable)
    if isinstance(chunks, Mapping | Dumpable):
        raise InvalidRecordError("the chunks are one answer, not a stream: use record_response")
    if isinstance(chunks, Sequence) and chunks and not isinstance(chunks[0], bytes | str):
        event_of(chunks[0])


def _encoded(value: object, levels: int = MOST_LEVELS) -> object:
    """The value with bytes replaced by base64, down to the depth that a record can hold."""
    if not levels:
        return value
    if isinstance(value, dict):
        members = cast("dict[str, object]", value)
        return {name: _encoded(member, levels - 1) for name, member in members.items()}
    if isinstance(value, list):
        return [_encoded(item, levels - 1) for item in cast("list[object]", value)]
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def read_stream(
    wire_format: WireFormat, chunks: Iterable[Chunk], servers: AbstractSet[str] = NO_SERVERS
) -> Response:
    """Read a complete stream and return the answer.

    Raises:
        InvalidRecordError: see `ResponseStream.feed`.
    """
    stream = ResponseStream(wire_format, servers)
    for chunk in chunks:
        stream.feed(chunk)
    return stream.finish()
