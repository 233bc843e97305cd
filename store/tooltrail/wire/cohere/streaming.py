"""Assembles a stream of Cohere's chat; each event is read as a chunk of a chat with one choice.

New parts are in `delta.message`. Texts of the content and the plan come in pieces. A call begins
with its id and name; its arguments come in pieces, and `index` identifies their call.
"""

from pydantic import JsonValue

from tooltrail.wire._chat.streaming import ChatAssembler
from tooltrail.wire.cohere.reading import SPELLING, THINKING, as_chat
from tooltrail.wire.members import JsonObject, object_in, text_in

_NOTHING: tuple[JsonValue, ...] = ("", [], None)
_OF_CALLS = frozenset({"tool-call-start", "tool-call-delta"})


class CohereAssembler(ChatAssembler):
    """Assembles the events of one answer."""

    def __init__(self) -> None:
        super().__init__(SPELLING)

    def feed(self, event: JsonObject) -> None:
        """Add one event; the events that end parts and calls contain nothing new."""
        is_piece = "delta" in event or text_in(event.get("type")) in _OF_CALLS
        super().feed(_chunk(event) if is_piece else as_chat(event))


def _chunk(event: JsonObject) -> JsonObject:
    ended = object_in(event.get("delta"))
    message = object_in(ended.get("message"))
    delta = {name: value for name, value in message.items() if value not in _NOTHING}
    if text_in(event.get("type")) in _OF_CALLS:
        call = message.get("tool_calls")
        piece = {**call, "index": event.get("index")} if isinstance(call, dict) else call
        delta["tool_calls"] = [piece]
    if isinstance(message.get("citations"), dict):
        delta["citations"] = [message["citations"]]
    if isinstance(content := message.get("content"), dict):
        del delta["content"]
        delta.update(_piece_of_content(content))
    choice: JsonObject = {**ended, "delta": delta}
    return {**event, "choices": [choice]}


def _piece_of_content(native: JsonObject) -> JsonObject:
    match native:
        case {"thinking": str(thought)} if thought or not native.get("text"):
            return {THINKING: thought}
        case {"text": str(text)}:
            return {"content": text}
        case _:
            return {"content": [native]}
