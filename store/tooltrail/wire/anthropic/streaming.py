"""Assembles a stream of Anthropic Messages, event by event.

If no fragment of the arguments of a call comes, the `input` of the first event is used. The
official client's running snapshot is not used, because it silently drops an unfinished text.
"""

from tooltrail.wire._stream_blocks import BlockAssembler
from tooltrail.wire.anthropic.reading import read_failure, read_message, read_response
from tooltrail.wire.members import JsonObject, are_objects, object_in, objects_in

_BLOCK = "content_block_"
"""The prefix of the types of block events, followed by `start`, `delta` or `stop`."""

_PIECES = {
    "text_delta": ("text", "text", "text"),
    "thinking_delta": ("thinking", "thinking", "thinking"),
    "signature_delta": ("thinking", "signature", "signature"),
    "input_json_delta": ("tool_use", "partial_json", "input"),
}
"""For each kind of delta with a text: the end of the type of its blocks, the member that has the
text, and the member of the block."""


class MessagesAssembler(BlockAssembler):
    """Assembles the events of one answer."""

    def __init__(self) -> None:
        kinds = {owner for owner, _, _ in _PIECES.values()}
        super().__init__("tool_use", kinds, read_message, read_response)

    def feed(self, event: JsonObject) -> None:
        """Add one event. Unknown events are ignored; unknown events of a block are reported."""
        match event.get("type"):
            case str(kind) if kind.startswith(_BLOCK):
                self._take(kind.removeprefix(_BLOCK), event)
            case "message_start":
                self._begin(object_in(event.get("message")))
            case "message_delta":
                self.message = {**(self.message or {}), **object_in(event.get("delta"))}
            case "message_stop":
                self.has_ended = True
            case "message":
                self.whole = event
            case kind:
                # Proxies send their own errors without a type.
                failure = read_failure(event)
                self.failure = self.failure or failure
                if failure is None and not isinstance(kind, str):
                    self.unread.append("an event has no type")

    def _take(self, name: str, event: JsonObject) -> None:
        """Add an event of a block."""
        index = event.get("index")
        match name, event:
            case "stop", _:
                self.stop(index)
            case "start", {"content_block": dict(block)}:
                self.start(index, str(block.get("type")), block)
            case "delta", {"delta": dict(delta)} if delta.get("type") == "citations_delta":
                self.add(index, "text", {"citations": [delta.get("citation")]})
            case "delta", {"delta": dict(delta)}:
                kind = str(delta.get("type"))
                owner, member, name = _PIECES.get(kind, (kind, kind, kind))
                self.add(index, owner, {name: delta.get(member)})
            case _:
                self.unread.append(f"cannot read {_BLOCK}{name} of block {index}")

    def _begin(self, message: JsonObject) -> None:
        """Begin the answer, which may have complete blocks: calls that a running program makes."""
        self.begin(message)
        if not are_objects(message.get("content")):
            self.unread.append("a block of the content is not an object")
        for index, block in enumerate(objects_in(message.get("content"))):
            self.start(index, str(block.get("type")), block)
            self.stop(index)
