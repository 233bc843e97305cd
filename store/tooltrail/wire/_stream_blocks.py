"""Assembles streamed answers whose blocks begin, continue and end in separate events.

The arguments of a call come in fragments of JSON that can break anywhere, even within an escape.
They are joined to one text and parsed when the answer has ended.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from pydantic import JsonValue

from tooltrail.records import Message
from tooltrail.wire.members import JsonObject, list_in, object_in
from tooltrail.wire.responses import ProviderFailure, Response


@dataclass(slots=True)
class Block:
    """A block, as far as it was received: the members in its first event, and later pieces."""

    kind: str
    begun: JsonObject
    pieces: dict[str, list[JsonValue]] = field(default_factory=dict[str, list[JsonValue]])
    has_ended: bool = False

    def members(self) -> JsonObject:
        """The members with their pieces: texts and lists are joined, objects are merged."""
        grown = {name: _joined([self.begun.get(name), *of]) for name, of in self.pieces.items()}
        return {**self.begun, **grown}


def _joined(pieces: list[JsonValue]) -> JsonValue:
    """Join the pieces that are of the type of the last one."""
    match pieces[-1]:
        case str():
            return "".join(one for one in pieces if isinstance(one, str))
        case list():
            return [item for one in pieces for item in list_in(one)]
        case _:
            return {name: value for one in pieces for name, value in object_in(one).items()}


class BlockAssembler:
    """Assembles the events of one answer; each format has a subclass that feeds its events.

    Args:
        calls: the kind of blocks that are calls, or the end of such kinds.
        read_message: reads a message in the form of an answer that is not streamed. It is told
            whether the answer `is_complete`, and the indexes of blocks that may be `cut`.
        read_response: reads an answer that was not streamed after all.
    """

    def __init__(
        self,
        calls: str,
        read_message: Callable[..., Message],
        read_response: Callable[[JsonObject], Response],
    ) -> None:
        self._calls, self._read_message, self._read_response = calls, read_message, read_response
        self.message: JsonObject | None = None
        self.whole: JsonObject | None = None
        self.has_ended = False
        self.failure: ProviderFailure | None = None
        self.unread: list[str] = []
        self.open: dict[JsonValue, Block] = {}
        self._blocks: list[Block] = []

    def native(self, block: Block) -> JsonObject:
        """The block in the form of an answer that is not streamed."""
        return block.members()

    def begin(self, message: JsonObject) -> None:
        """Begin the answer; if it has begun already, several streams were joined."""
        if self.message is not None or self._blocks:
            self.unread.append("the stream has more than one message")
        self.message = {**message, **(self.message or {})}
        self.has_ended = False

    def start(self, index: JsonValue, kind: str, begun: JsonObject) -> None:
        """Begin a block."""
        place = index if isinstance(index, int) else None
        if place is None or place in self.open:
            self.unread.append(f"a block begins at {index}, where none can begin")
        self.open[place] = Block(kind, begun)
        self._blocks.append(self.open[place])

    def add(self, index: JsonValue, kind: str, pieces: JsonObject) -> None:
        """Add pieces of members; what may be missing from a call is reported.

        An unknown piece of a block that is no call may be new in the provider's format.
        """
        if (block := self._block(index)) is None:
            return
        is_call = any(one.endswith(self._calls) for one in (kind, block.kind))
        types: tuple[type, ...] = (str,) if is_call else (str, list, dict)
        fits = block.kind.endswith(kind) and all(isinstance(one, types) for one in pieces.values())
        if is_call and not (fits and pieces):
            self.unread.append(f"a piece {kind!r} does not fit a block {block.kind!r}")
        for name, piece in pieces.items() if fits else ():
            if is_call and piece and block.begun.get(name) and name not in block.pieces:
                self.unread.append(f"the {name} of a call comes whole and in pieces")
            if piece or not is_call:
                block.pieces.setdefault(name, []).append(piece)

    def stop(self, index: JsonValue) -> None:
        """End a block."""
        if block := self._block(index):
            block.has_ended = True
            self.open = {place: one for place, one in self.open.items() if one is not block}

    def _block(self, index: JsonValue) -> Block | None:
        block = self.open.get(index if isinstance(index, int) else None)
        if block is None:
            self.unread.append(f"an event of block {index}, which is not open")
        return block

    def finish(self, *, is_done: bool = False) -> Response:
        """Return the answer; if its end was not received, its calls are incomplete."""
        if self.message is None and not self._blocks:
            answer = Response.of() if self.whole is None else self._read_response(self.whole)
            return answer.with_more(self.failure, self.unread)
        if self.whole is not None:
            self.unread.append("the stream has a whole message, too")
        content: list[JsonValue] = [self.native(block) for block in self._blocks]
        cut = {number for number, block in enumerate(self._blocks) if not block.has_ended}
        is_complete = (self.has_ended or is_done) and self.failure is None
        native: JsonObject = {**(self.message or {}), "content": content}
        message = self._read_message(native, is_complete=is_complete, cut=cut)
        return Response.of((message,), self.failure, self.unread)
