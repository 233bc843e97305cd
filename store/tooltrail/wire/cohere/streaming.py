"""Cohere's chat as a stream of events, each of them a chunk of a chat with one choice.

What is new stands in `delta.message`. Texts of the content come in pieces, as the plan does. A call
begins with its id and name, its arguments come in pieces, and `index` says of which call they are.
"""

from pydantic import JsonValue

from tooltrail.wire._chat.streaming import ChatAssembler
from tooltrail.wire.cohere.reading import SPELLING, THINKING, as_chat
from tooltrail.wire.members import JsonObject, object_in, text_in

_NOTHING: tuple[JsonValue, ...] = ("", [], None)
_OF_CALLS = frozenset({"tool-call-start", "tool-call-delta"})


class CohereAssembler(ChatAssembler):
    """Puts the events of one answer together."""

    def __init__(self) -> None:
        super().__init__(SPELLING)

    def feed(self, event: JsonObject) -> None:
        """Take one event; the ends of parts and of calls say nothing."""
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
