"""From bytes as they come from a connection to the JSON objects that they spell.

Server-sent events (WHATWG HTML, section 9.2.6) and JSON are told apart by the first character that
is no white space: lines of the one begin with a field's name, the other with a bracket. A first
line that is JSON by itself begins newline-delimited JSON; else all of it is one document, which a
proxy sends that does not stream. Where chunks begin and end makes no difference.
"""

import json
from collections.abc import Iterator
from typing import Literal, cast

from pydantic import JsonValue

from tooltrail.wire.members import JsonObject

_DONE = b"[DONE]"
_WHITE = b" \t\r\n"
_BOM = b"\xef\xbb\xbf"
_FIELDS = (b":", b"event", b"id", b"retry", b"data")
"""What a line of server-sent events begins with; a colon begins a comment."""


class EventFraming:
    """Takes a stream apart. Not safe to share between threads.

    Attributes:
        unread: what was no JSON object, each one a sentence.
        is_done: whether `[DONE]` was seen.
    """

    def __init__(self) -> None:
        self.unread: list[str] = []
        self.is_done = False
        self._rest: list[bytes] = []
        self._data: list[bytes] = []
        self._kind: Literal["events", "json", "lines", "document"] | None = None
        self._count = 0
        self._is_foreign = False

    def feed(self, chunk: bytes) -> Iterator[JsonObject]:
        """The objects that are whole with this chunk."""
        if self._kind is None:
            chunk = self._taken() + chunk
            beginning = chunk.removeprefix(_BOM).lstrip(_WHITE)
            if not beginning or _BOM.startswith(chunk):
                self._rest.append(chunk)
                return
            chunk = beginning
            self._kind = "json" if chunk[:1] in b"[{" else "events"
        elif self._rest and self._rest[-1].endswith(b"\r"):
            chunk = self._taken() + chunk
        # A CR at the end may be the first half of a CRLF.
        end = max(chunk.rfind(b"\n"), chunk.rfind(b"\r", 0, -1)) + 1
        if end:
            self._rest.append(chunk[:end])
            lines = self._taken().splitlines()
            self._keep(chunk[end:])
            yield from self._lines(lines)
        else:
            self._keep(chunk)

    def finish(self) -> Iterator[JsonObject]:
        """What was left without an end of its line, or without a blank line behind it."""
        yield from self._lines(self._taken().splitlines())
        if self._data:
            yield from self._objects(self._joined())

    def _keep(self, chunk: bytes) -> None:
        # Pieces, for a line of megabytes would be copied with every chunk of it.
        if chunk:
            self._rest.append(chunk)

    def _taken(self) -> bytes:
        rest = b"".join(self._rest)
        self._rest.clear()
        return rest

    def _lines(self, lines: list[bytes]) -> Iterator[JsonObject]:
        if self._kind != "events":
            for line in lines:
                yield from self._json_line(line)
            return
        data = self._data
        for line in lines:
            if line.startswith(b"data:"):
                data.append(line[6:] if line[5:6] == b" " else line[5:])
            elif not line:
                if data:
                    yield from self._objects(self._joined())
            elif not line.startswith(_FIELDS):
                self._is_no_field()

    def _is_no_field(self) -> None:
        if not self._is_foreign:
            self.unread.append("a line is neither JSON nor a field of an event")
        self._is_foreign = True

    def _json_line(self, line: bytes) -> Iterator[JsonObject]:
        if self._kind == "json" and line.strip():
            try:
                value = _read(line)
            except ValueError:
                self._kind = "document"
            else:
                self._kind = "lines"
                self._count += 1
                yield from self._items(value)
                return
        if self._kind == "document":
            self._data.append(line)
        else:
            yield from self._objects(line)

    def _joined(self) -> bytes:
        data = self._data
        text = data[0] if len(data) == 1 else b"\n".join(data)
        data.clear()
        return text

    def _objects(self, text: bytes) -> Iterator[JsonObject]:
        if text[:1] != b"{":
            stripped = text.strip()
            if stripped == _DONE:
                self.is_done = True
            if stripped in (_DONE, b""):
                return
        self._count += 1
        try:
            value = _read(text)
        except ValueError as error:
            self.unread.append(f"event {self._count} is no JSON: {error}")
            return
        if isinstance(value, dict):
            yield value
        else:
            yield from self._items(value)

    def _items(self, value: JsonValue) -> Iterator[JsonObject]:
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, dict):
                yield item
            else:
                self.unread.append(f"event {self._count} is no JSON object")


def _read(text: bytes) -> JsonValue:
    try:
        # As text, of which the encoding is not to be guessed: it is UTF-8 (RFC 8259, section 8.1).
        return cast("JsonValue", json.loads(text.decode("utf-8", "surrogatepass")))
    except RecursionError as error:
        raise ValueError("nested too deep") from error
