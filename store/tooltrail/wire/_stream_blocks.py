"""Assembles streamed answers whose blocks begin, continue and end in separate events.

The arguments of a call come in fragments of JSON that can break anywhere, even within an escape.
They are joined to one text and parsed when the answer has ended.
"""

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field

from pydantic import JsonValue

from tooltrail.records import InvalidRecordError, Message, read_json
from tooltrail.records.canonical_json import encode_text
from tooltrail.wire.members import JsonObject, list_in, object_in
from tooltrail.wire.responses import ProviderFailure, Response


@dataclass(slots=True)
class Block:
    """A block, as far as it was received: the members in its first event, and later pieces."""

    kind: str
    begun: JsonObject
    pieces: dict[str, list[JsonValue]] = field(default_factory=dict[str, list[JsonValue]])
    has_ended: bool = False

    def fits(self, name: str, piece: JsonValue) -> bool:
        """Whether a piece of a member can be joined to what came before it."""
        earlier = [one for one in (self.begun.get(name), *self.pieces.get(name, ())) if one]
        is_joined = isinstance(piece, str | list | dict)
        return not earlier or (is_joined and all(type(one) is type(piece) for one in earlier))

    def contradicts(self, name: str) -> bool:
        """Whether the first event has a member that its pieces, which are texts, do not repeat."""
        begun = self.begun.get(name)
        with suppress(InvalidRecordError):
            streamed = read_json("".join(map(str, self.pieces[name])))
            if isinstance(begun, dict) and encode_text(streamed) == encode_text(begun):
                return False
        return bool(begun)

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
        case dict():
            return {name: value for one in pieces for name, value in object_in(one).items()}
        case other:
            return other


class BlockAssembler:
    """Assembles the events of one answer; each format has a subclass that feeds its events.

    Args:
        calls: the kind of blocks that are calls, or the end of such kinds.
        kinds: the kinds of all known pieces.
        read_message: reads a message in the form of an answer that is not streamed. Its arguments
            say whether the answer `is_complete`, and which blocks may be `cut`, by their indexes.
        read_response: reads an answer that was not streamed after all.
    """

    def __init__(
        self,
        calls: str,
        kinds: Collection[str],
        read_message: Callable[..., Message],
        read_response: Callable[[JsonObject], Response],
    ) -> None:
        self._calls, self._kinds = calls, kinds
        self._read_message, self._read_response = read_message, read_response
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
            self.unread.append(
                f"a block begins at {index}, which is not a number, or is still open"
            )
        self.open[place] = Block(kind, begun)
        self._blocks.append(self.open[place])

    def add(self, index: JsonValue, kind: str, pieces: JsonObject) -> None:
        """Add pieces of members, or report that they do not fit the block.

        An unknown piece of a block that is no call may be new in the provider's format.
        """
        if (block := self._block(index)) is None:
            return
        is_call = self._is_call(kind) or self._is_call(block.kind)
        is_own = block.kind.endswith(kind)
        if is_call:
            fits = bool(pieces) and all(isinstance(one, str) for one in pieces.values())
        else:
            pieces = {name: one for name, one in pieces.items() if one is not None}
            fits = all(block.fits(name, one) for name, one in pieces.items())
        if not (is_own and fits) and (is_call or is_own or kind in self._kinds):
            self.unread.append(f"a piece {kind!r} does not fit a block {block.kind!r}")
        for name, piece in pieces.items() if is_own and fits else ():
            if piece or not is_call:
                block.pieces.setdefault(name, []).append(piece)

    def _is_call(self, kind: str) -> bool:
        return kind.endswith(self._calls)

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
        for block in self._blocks:
            twice = filter(block.contradicts, block.pieces if self._is_call(block.kind) else ())
            self.unread += (f"the {name} of a call comes whole and in pieces" for name in twice)
        cut = {number for number, block in enumerate(self._blocks) if not block.has_ended}
        is_complete = (self.has_ended or is_done) and self.failure is None
        native: JsonObject = {**(self.message or {}), "content": content}
        message = self._read_message(native, is_complete=is_complete, cut=cut)
        return Response.of((message,), self.failure, self.unread)
