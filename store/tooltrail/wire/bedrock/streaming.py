"""Assembles a ConverseStream, event by event; each event is an object with one member.

Blocks of text and of reasoning have no first event. The input of a call comes in fragments of JSON
that can break anywhere; it is parsed when the answer has ended.
"""

from base64 import b64decode, b64encode
from contextlib import suppress
from dataclasses import dataclass, field

from pydantic import JsonValue

from tooltrail.wire.bedrock.reading import read_answer, read_failure, read_response
from tooltrail.wire.members import JsonObject, object_in
from tooltrail.wire.responses import ProviderFailure, Response

_BLOCK = "contentBlock"
"""The prefix of the names of block events, followed by `Start`, `Delta` or `Stop`."""

_WITHOUT_START = ("text", "reasoningContent")


@dataclass(slots=True)
class _Block:
    """A block so far: its kind, its first event, and the pieces since then.

    Attributes:
        items: parts of a result, or citations of a text.
    """

    kind: str = ""
    begun: JsonObject = field(default_factory=dict[str, JsonValue])
    pieces: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    items: list[JsonValue] = field(default_factory=list[JsonValue])
    has_ended: bool = False

    def take(self, kind: str, value: JsonValue) -> bool:
        """Add a piece; False if it does not belong to this block."""
        if kind == "citation" and self.kind in ("", "text"):
            self.kind = "text"
            self.items.append(value)
            return True
        if kind != self.kind and (self.kind or kind not in _WITHOUT_START):
            return False
        self.kind = kind
        for name, piece in value.items() if isinstance(value, dict) else [(kind, value)]:
            if isinstance(piece, str):
                self.pieces.setdefault(name, []).append(piece)
            elif isinstance(piece, list):
                self.items += piece
            elif isinstance(piece, dict) and kind != "toolUse":
                self.begun = {**self.begun, name: {**object_in(self.begun.get(name)), **piece}}
            else:
                return False
        return True

    def whole(self) -> JsonObject:
        """The block in the form of an answer that is not streamed."""
        texts: JsonObject = {name: _joined(name, pieces) for name, pieces in self.pieces.items()}
        if self.kind == "text" and self.items:
            return {"citationsContent": {"content": [texts], "citations": self.items}}
        if self.kind == "text":
            return texts
        if self.kind == "reasoningContent" and "redactedContent" not in texts:
            texts = {"reasoningText": texts}
        content: JsonObject = {"content": self.items} if self.kind == "toolResult" else {}
        return {self.kind: {**self.begun, **texts, **content}}


def _joined(name: str, pieces: list[str]) -> str:
    """Join the pieces of a text, or of bytes, where each piece is separate base64."""
    if name == "redactedContent":
        with suppress(ValueError):  # not base64
            return b64encode(b"".join(map(b64decode, pieces))).decode()
    return "".join(pieces)


class ConverseAssembler:
    """Assembles the events of one answer."""

    def __init__(self) -> None:
        self._message: JsonObject | None = None
        self._blocks: dict[int, _Block] = {}
        self._end: JsonObject | None = None
        self._whole: JsonObject | None = None
        self._failure: ProviderFailure | None = None
        self._unread: list[str] = []

    def feed(self, event: JsonObject) -> None:
        """Add one event. Unknown events are ignored; unknown events of a block are reported."""
        self._failure = self._failure or read_failure(event)
        for name, value in event.items() or [("", None)]:
            match name, value:
                case "messageStart", dict() if self._message is None and not self._blocks:
                    self._message = value
                case "messageStop", dict():
                    self._end = value
                case "output", _:
                    self._whole = event
                case (("" | "messageStart" | "messageStop"), _):
                    self._unread.append(f"an event {name!r} is empty or repeated")
                case _ if name.startswith(_BLOCK):
                    self._take(name.removeprefix(_BLOCK), object_in(value))
                case _:
                    pass

    def _take(self, name: str, members: JsonObject) -> None:
        """Add an event of a block."""
        index, start = members.get("contentBlockIndex"), members.get("start")
        place = index if isinstance(index, int) else -1
        is_new, block = place not in self._blocks, self._blocks.setdefault(place, _Block())
        if place < 0 or block.has_ended or self._end is not None:
            self._unread.append(f"an event of block {index}, which is not open")
        elif name == "Stop":
            block.has_ended = True
        elif name == "Start" and is_new and isinstance(start, dict):
            for kind, begun in start.items():
                block.kind, block.begun = kind, object_in(begun)
        elif name == "Delta":
            self._take_delta(block, object_in(members.get("delta")))
        else:
            self._unread.append(f"an event {name!r} of block {index}")

    def _take_delta(self, block: _Block, delta: JsonObject) -> None:
        for kind, piece in delta.items() or [("toolUse", None)]:
            # An unknown piece of another block may be new in the provider's format.
            if not block.take(kind, piece) and "toolUse" in (kind, block.kind):
                self._unread.append(f"a piece {kind!r} of a block {block.kind!r}")

    def finish(self, *, is_done: bool = False) -> Response:
        """Return the answer; if its end was not received, its calls are incomplete."""
        if self._message is not None or self._blocks:
            blocks = [block for _, block in sorted(self._blocks.items()) if block.kind]
            content: list[JsonValue] = [block.whole() for block in blocks]
            is_whole = (is_done or self._end is not None) and self._failure is None
            native: JsonObject = {**(self._message or {}), "content": content}
            answer = read_answer(native, self._end or {}, self._failure, is_done=is_whole)
            if self._whole is not None:
                self._unread.append("the stream has a whole message, too")
        elif self._whole is not None:
            answer = read_response(self._whole)
        else:
            answer = Response.of()
        return answer.with_more(self._failure, self._unread)
