"""Anthropic Messages as a stream, put together event by event.

Arguments come in fragments of JSON that can break anywhere, also within an escape. They are joined
and read once their block has ended; the official client's running snapshot would drop an
unfinished text without a word. The `input` of the first event counts where no fragment comes.
"""

from dataclasses import dataclass, field

from pydantic import JsonValue

from tooltrail.records import Message
from tooltrail.wire.anthropic.reading import read_failure, read_message, read_response
from tooltrail.wire.members import JsonObject, list_in, object_in
from tooltrail.wire.responses import ProviderFailure, Response

_PIECES = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "input_json_delta": "partial_json",
    "signature_delta": "signature",
}
"""Kinds of deltas whose member is a piece of one text."""


@dataclass(slots=True)
class _Block:
    """A block as far as it has come: as it began, and the pieces that came since, by member."""

    native: JsonObject
    pieces: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def whole(self) -> JsonObject:
        """The block with its pieces, other than those of the arguments."""
        native = dict(self.native)
        for name, pieces in self.pieces.items():
            if name != "partial_json":
                begun = native.get(name)
                native[name] = (begun if isinstance(begun, str) else "") + "".join(pieces)
        return native

    def raw(self) -> str:
        """The fragments of the arguments; empty where the first event has them, if any."""
        return "".join(self.pieces.get("partial_json", ()))


class MessagesAssembler:
    """Puts the events of one answer together."""

    def __init__(self) -> None:
        self._message: JsonObject | None = None
        self._blocks: dict[int, _Block] = {}
        self._failure: ProviderFailure | None = None
        self._whole: JsonObject | None = None
        self._has_ended = False
        self._unread: list[str] = []
        self._earlier: list[Message] = []

    def feed(self, event: JsonObject) -> None:
        """Take one event; those that are not known change nothing of the answer."""
        match event.get("type"):
            case "content_block_delta":
                self._take_delta(event)
            case "content_block_start":
                index, block = event.get("index"), event.get("content_block")
                if isinstance(index, int) and isinstance(block, dict):
                    self._blocks[index] = _Block(block)
            case "message_start":
                self._begin(dict(object_in(event.get("message"))))
            case "message_delta":
                if self._message is not None:
                    self._message.update(object_in(event.get("delta")))
            case "message_stop":
                self._has_ended = True
            case "error":
                self._failure = self._failure or read_failure(event)
            case "message":
                self._whole = event
            case _:
                pass

    def _begin(self, message: JsonObject) -> None:
        """Begin the message; where there is one, a stream of several was joined to this one."""
        if self._message is not None:
            self._unread.append("the stream has more than one message")
            self._earlier.append(self._read(is_done=False))
            self._has_ended = False
        # The first event may bring whole blocks, of calls that a running program asks for.
        begun = enumerate(list_in(message.get("content")))
        self._blocks = {index: _Block(object_in(block)) for index, block in begun}
        self._message = message

    def _take_delta(self, event: JsonObject) -> None:
        index, delta = event.get("index"), object_in(event.get("delta"))
        block = self._blocks.get(index) if isinstance(index, int) else None
        if block is None:
            self._unread.append(f"a delta of block {index}, which has not begun")
            return
        kind = delta.get("type")
        member = _PIECES.get(kind) if isinstance(kind, str) else None
        if member is not None:
            piece = delta.get(member)
            if isinstance(piece, str):
                block.pieces.setdefault(member, []).append(piece)
        elif kind == "citations_delta":
            cited = block.native.get("citations")
            before: list[JsonValue] = cited if isinstance(cited, list) else []
            block.native = {**block.native, "citations": [*before, delta.get("citation")]}
        else:
            self._unread.append(f"a delta of the kind {kind!r}")

    def finish(self, *, is_done: bool = False) -> Response:
        """The answer; calls of one that did not come to its end are incomplete."""
        if self._message is None:
            if self._whole is not None:
                return read_response(self._whole)
            unread = () if self._failure else ("the stream has no message",)
            return Response((), self._failure, (*self._unread, *unread))
        messages = (*self._earlier, self._read(is_done=is_done))
        return Response(messages, self._failure, tuple(self._unread))

    def _read(self, *, is_done: bool) -> Message:
        blocks = [block for _, block in sorted(self._blocks.items())]
        content: list[JsonValue] = [block.whole() for block in blocks]
        raw = {number: raw for number, block in enumerate(blocks) if (raw := block.raw())}
        ended = (self._has_ended or is_done) and self._failure is None
        native: JsonObject = {**(self._message or {}), "content": content}
        return read_message(native, raw=raw, is_complete=ended)
