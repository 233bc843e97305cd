"""Assembles a stream of Anthropic Messages, event by event.

Arguments come in fragments of JSON that can break anywhere, even within an escape. They are joined
and parsed at the end; the official client's running snapshot would silently drop an unfinished
text. If no fragment comes, the `input` of the first event is used.
"""

from dataclasses import dataclass, field
from operator import itemgetter

from pydantic import JsonValue

from tooltrail.records import InvalidRecordError, Message, read_json
from tooltrail.wire.anthropic.reading import read_failure, read_message, read_response
from tooltrail.wire.members import JsonObject, are_objects, list_in, object_in
from tooltrail.wire.responses import ProviderFailure, Response

_PIECES = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "input_json_delta": ("partial_json", "tool_use"),
    "signature_delta": ("signature", "thinking"),
}
"""For each kind of delta with a piece of text: the member with the piece, and the end of the type
of the blocks that may have such a delta."""


@dataclass(slots=True)
class _Block:
    """A block, as far as it was received: its first event, and later pieces by member."""

    native: JsonObject
    pieces: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    has_ended: bool = False

    def whole(self) -> JsonObject:
        """The block with its pieces, except those of the arguments."""
        native = dict(self.native)
        for name, pieces in self.pieces.items():
            if name != "partial_json":
                begun = native.get(name)
                native[name] = (begun if isinstance(begun, str) else "") + "".join(pieces)
        return native

    def raw(self) -> str:
        """The joined fragments of the arguments; empty if there were none."""
        return "".join(self.pieces.get("partial_json", ()))

    def has_two_inputs(self) -> bool:
        """Whether the first event has arguments that differ from those of the fragments."""
        begun = self.native.get("input")
        return bool(begun and self.raw()) and self._streamed() != begun

    def may_be_cut(self) -> bool:
        """Whether arguments may be missing: no event ended the block, and they do not parse."""
        is_whole = self.has_ended or bool(self.native.get("input") and not self.raw())
        return not is_whole and not isinstance(self._streamed(), dict)

    def _streamed(self) -> JsonValue:
        """The arguments in the fragments; None if they are not valid JSON."""
        try:
            return read_json(self.raw())
        except InvalidRecordError:
            return None


class MessagesAssembler:
    """Assembles the events of one answer."""

    def __init__(self) -> None:
        self._message: JsonObject | None = None
        self._blocks: list[tuple[int, _Block]] = []
        self._open: dict[int, _Block] = {}
        self._failure: ProviderFailure | None = None
        self._whole: JsonObject | None = None
        self._has_ended = False
        self._unread: list[str] = []
        self._earlier: list[Message] = []

    def feed(self, event: JsonObject) -> None:
        """Add one event. Unknown events are ignored; unknown events of a block are reported."""
        match event.get("type"):
            case "content_block_delta":
                self._take_delta(event)
            case "content_block_start":
                self._take_start(event)
            case "content_block_stop":
                if block := self._block_of(event.get("index")):
                    block.has_ended = True
            case "message_start":
                self._begin(dict(object_in(event.get("message"))))
            case "message_delta":
                if self._message is not None:
                    self._message.update(object_in(event.get("delta")))
            case "message_stop":
                self._has_ended = True
            case "message":
                self._whole = event
            case kind:
                self._take_other(event, kind)

    def _take_other(self, event: JsonObject, kind: JsonValue) -> None:
        # Proxies send their own errors without a type.
        if failure := read_failure(event):
            self._failure = self._failure or failure
        elif not isinstance(kind, str):
            self._unread.append("an event has no type")
        elif kind.startswith("content_block_"):
            self._unread.append(f"an event of a block, of the type {kind!r}")

    def _begin(self, message: JsonObject) -> None:
        """Begin a message; a second one means that several streams were joined."""
        if self._message is not None:
            self._unread.append("the stream has more than one message")
            self._earlier.append(self._read(is_done=False))
            self._has_ended = False
        elif self._blocks:
            self._unread.append("blocks came before the message began")
        # The first event may contain complete blocks: calls that a running program makes.
        begun = list_in(message.get("content"))
        if not are_objects(begun):
            self._unread.append("a block of the content is not an object")
        self._blocks = [(n, _Block(object_in(one), has_ended=True)) for n, one in enumerate(begun)]
        self._open = dict(self._blocks)
        self._message = message

    def _take_start(self, event: JsonObject) -> None:
        index, block = event.get("index"), event.get("content_block")
        if not isinstance(block, dict):
            self._unread.append("an event that begins a block has none")
            return
        if not isinstance(index, int):
            index = max((place for place, _ in self._blocks), default=-1) + 1
        self._open[index] = _Block(block)
        self._blocks.append((index, self._open[index]))

    def _block_of(self, index: JsonValue) -> _Block | None:
        """The block of an event; without an index, the block that began last."""
        if isinstance(index, int):
            return self._open.get(index)
        return self._blocks[-1][1] if self._blocks else None

    def _take_delta(self, event: JsonObject) -> None:
        index, delta = event.get("index"), object_in(event.get("delta"))
        block = self._block_of(index)
        if block is None:
            self._unread.append(f"a delta of block {index}, which has not begun")
            return
        kind = delta.get("type")
        if isinstance(kind, str) and kind in _PIECES:
            self._take_piece(block, kind, delta)
        elif kind == "citations_delta":
            cited = [*list_in(block.native.get("citations")), delta.get("citation")]
            block.native = {**block.native, "citations": cited}
        elif str(block.native.get("type")).endswith("tool_use"):
            # For other blocks the kind may be new in the provider's format.
            self._unread.append(f"a delta of the kind {kind!r}")

    def _take_piece(self, block: _Block, kind: str, delta: JsonObject) -> None:
        """Add a piece of text; a piece of the wrong kind may be missing from another block."""
        (member, owner), of = _PIECES[kind], block.native.get("type")
        piece, is_of_block = delta.get(member), isinstance(of, str) and of.endswith(owner)
        if not isinstance(piece, str):
            if kind == "input_json_delta" or not is_of_block:
                self._unread.append(f"a piece ({kind}) without a text")
            return
        if not is_of_block:
            self._unread.append(f"a piece ({kind}) of a block of the type {of!r}")
        elif block.has_ended and piece:
            self._unread.append(f"a piece ({kind}) of a block that has ended")
        block.pieces.setdefault(member, []).append(piece)

    def finish(self, *, is_done: bool = False) -> Response:
        """Return the answer; if its end was not received, its calls are incomplete."""
        if self._message is None:
            if self._whole is not None:
                return read_response(self._whole).with_more(self._failure, self._unread)
            return Response.of((), self._failure, self._unread)
        if self._whole is not None:
            self._unread.append("the stream has a whole message, too")
        last = self._read(is_done=is_done)
        return Response.of((*self._earlier, last), self._failure, self._unread)

    def _read(self, *, is_done: bool) -> Message:
        blocks = [block for _, block in sorted(self._blocks, key=itemgetter(0))]
        content: list[JsonValue] = [block.whole() for block in blocks]
        raw = {number: raw for number, block in enumerate(blocks) if (raw := block.raw())}
        if any(block.has_two_inputs() for block in blocks):
            self._unread.append("the input of a call comes whole and in pieces")
        ended = (self._has_ended or is_done) and self._failure is None
        native: JsonObject = {**(self._message or {}), "content": content}
        cut = {number for number, block in enumerate(blocks) if block.may_be_cut()}
        return read_message(native, raw=raw, is_complete=ended, cut=cut)
