"""Responses as a stream, put together event by event.

An item is what the event of its end says; the fragments before that are of items that never ended.
Where such an event is missing, the last event has all items. Neither a call's name nor its id are
in the fragments, which name their item by its place.
"""

from collections.abc import Iterator

from pydantic import JsonValue

from tooltrail.records import Message
from tooltrail.wire.members import JsonObject, list_in, object_in, objects_in
from tooltrail.wire.openai_responses.reading import read_failure, read_message, read_response
from tooltrail.wire.responses import ProviderFailure, Response

_FRAGMENTS = {
    "response.function_call_arguments.delta": "arguments",
    "response.custom_tool_call_input.delta": "input",
    "response.mcp_call_arguments.delta": "arguments",
}
_NOTHING = "the stream has no response"
_ENDS = ("response.completed", "response.incomplete", "response.failed")


class ResponsesAssembler:
    """Puts the events of one answer together."""

    def __init__(self) -> None:
        self._response: JsonObject = {}
        self._begun: dict[int, JsonObject] = {}
        self._ended: dict[int, JsonObject] = {}
        self._fragments: dict[int, tuple[str, list[str]]] = {}
        self._texts: dict[int, list[str]] = {}
        self._failure: ProviderFailure | None = None
        self._has_ended = False
        self._whole: JsonObject | None = None
        self._earlier: list[Message] = []

    def feed(self, event: JsonObject) -> None:
        """Take one event; those that tell nothing of the items change nothing."""
        kind, place = str(event.get("type")), event.get("output_index")
        index = place if isinstance(place, int) else -1
        if kind in _FRAGMENTS:
            self._add(event, index, _FRAGMENTS[kind])
        elif kind == "response.output_text.delta":
            self._texts.setdefault(index, []).append(str(event.get("delta", "")))
        elif kind == "response.output_item.done":
            self._ended[index] = object_in(event.get("item"))
        elif kind == "response.output_item.added":
            self._begun[index] = object_in(event.get("item"))
        elif kind in _ENDS or kind == "response.created":
            if kind == "response.created" and self._response:
                self._earlier.append(self._read(is_done=False))
                self._begun, self._ended, self._fragments, self._texts = {}, {}, {}, {}
            self._response = object_in(event.get("response"))
            self._has_ended = kind in _ENDS
            self._failure = self._failure or read_failure(self._response)
        elif kind == "error":
            self._failure = self._failure or read_failure(event)
        elif event.get("object") == "response":
            self._whole = event

    def _add(self, event: JsonObject, index: int, member: str) -> None:
        _, pieces = self._fragments.setdefault(index, (member, []))
        pieces.append(str(event.get("delta", "")))

    def finish(self, *, is_done: bool = False) -> Response:
        """The answer; items of one that did not come to its end are incomplete."""
        if not self._begun and not self._ended and not self._response:
            if self._whole is not None:
                return read_response(self._whole)
            return Response((), self._failure, () if self._failure else (_NOTHING,))
        messages = (*self._earlier, self._read(is_done=is_done))
        return Response(messages, self._failure, tuple(self._unread()))

    def _read(self, *, is_done: bool) -> Message:
        ended = (self._has_ended or is_done) and self._failure is None
        return read_message({**self._response, "output": self._items()}, is_complete=ended)

    def _unread(self) -> Iterator[str]:
        if self._earlier:
            yield "the stream has more than one response"
        told = objects_in(self._response.get("output")) if self._has_ended else []
        if told and len(told) != len(self._items()):
            yield f"the last event has {len(told)} items, and {len(self._items())} had come"

    def _items(self) -> list[JsonValue]:
        if not self._begun and not self._ended:
            return list_in(self._response.get("output"))
        places = sorted({*self._begun, *self._ended})
        return [self._ended.get(place) or self._unfinished(place) for place in places]

    def _unfinished(self, place: int) -> JsonObject:
        """An item of which there is only the beginning, with the pieces that have come."""
        item = dict(self._begun[place])
        if place in self._fragments:
            member, pieces = self._fragments[place]
            item[member] = "".join(pieces)
        if place in self._texts and item.get("type") == "message":
            part: JsonObject = {"type": "output_text", "text": "".join(self._texts[place])}
            item["content"] = [part]
        return {**item, "status": "incomplete"}
