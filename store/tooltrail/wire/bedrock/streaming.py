"""Assembles a ConverseStream, event by event; each event is an object with one member.

Blocks of text and of reasoning have no first event.
"""

from base64 import b64decode, b64encode
from contextlib import suppress

from pydantic import JsonValue

from tooltrail.wire._stream_blocks import Block, BlockAssembler
from tooltrail.wire.bedrock.reading import read_failure, read_message, read_response
from tooltrail.wire.members import JsonObject, object_in

_BLOCK = "contentBlock"
"""The prefix of the names of block events, followed by `Start`, `Delta` or `Stop`."""

_WITHOUT_START = ("text", "reasoningContent")
_KINDS = (*_WITHOUT_START, "toolUse", "toolResult", "image")
_HIDDEN = "redactedContent"


class ConverseAssembler(BlockAssembler):
    """Assembles the events of one answer."""

    def __init__(self) -> None:
        super().__init__("toolUse", _KINDS, read_message, read_response)

    def feed(self, event: JsonObject) -> None:
        """Add one event. Unknown events are ignored; unknown events of a block are reported."""
        self.failure = self.failure or read_failure(event)
        for name, value in event.items() or [("", None)]:
            match name, value:
                case "messageStart", dict():
                    self.begin(value)
                case "messageStop", dict():
                    self.message = {**(self.message or {}), "stopReason": value.get("stopReason")}
                    self.has_ended = True
                case "output", _:
                    self.whole = event
                case (("" | "messageStart" | "messageStop"), _):
                    self.unread.append(f"an event {name!r} is empty")
                case _ if name.startswith(_BLOCK):
                    self._take(name.removeprefix(_BLOCK), object_in(value))
                case _:
                    pass

    def _take(self, name: str, members: JsonObject) -> None:
        """Add an event of a block."""
        index = members.get("contentBlockIndex")
        match name, members:
            case "Stop", _:
                self.stop(index)
            case "Start", {"start": dict(start)}:
                for kind, begun in start.items():
                    self.start(index, kind, object_in(begun))
            case "Delta", {"delta": dict(delta)} if delta:
                for kind, piece in delta.items():
                    self._take_piece(index, kind, piece)
            case _:
                self.unread.append(f"cannot read {_BLOCK}{name} of block {index}")

    def _take_piece(self, index: JsonValue, kind: str, piece: JsonValue) -> None:
        pieces: JsonObject = {"content": piece} if isinstance(piece, list) else object_in(piece)
        if kind == "text":
            pieces = {"text": piece}
        elif kind == "citation":
            kind, pieces = "text", {"citations": [piece]}
        if kind in _WITHOUT_START and isinstance(index, int) and index not in self.open:
            self.start(index, kind, {})
        self.add(index, kind, pieces)

    def native(self, block: Block) -> JsonObject:
        """The block in the form of an answer that is not streamed."""
        members: JsonObject = block.members()
        if block.kind == "text" and "citations" in members:
            said: JsonObject = {"text": members.get("text", "")}
            return {"citationsContent": {"content": [said], "citations": members["citations"]}}
        if block.kind == "reasoningContent" and _HIDDEN not in members:
            members = {"reasoningText": members}
        elif block.kind == "reasoningContent":
            with suppress(ValueError):  # not base64
                # Each piece is base64 of its own.
                pieces = b"".join(b64decode(str(one)) for one in block.pieces[_HIDDEN])
                members[_HIDDEN] = b64encode(pieces).decode()
        return members if block.kind == "text" else {block.kind: members}
