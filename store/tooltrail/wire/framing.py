"""From bytes as they come from a connection to the JSON objects that they spell.

Server-sent events (WHATWG HTML, section 9.2.6) and JSON differ by the first character that
is neither white space nor of a comment: lines of the one begin with a field's name, the other with
a bracket. A first line that is JSON by itself begins newline-delimited JSON, in which proxies keep
a connection alive by comments, too; else all of it is one document, which a proxy sends that does
not stream. Where chunks begin and end makes no difference.
"""

import json
from typing import Literal, cast

from pydantic import JsonValue

from tooltrail.wire.members import JsonObject
from tooltrail.wire.sturdy import MOST_LEVELS, TOO_DEEP, bounded, is_bounded

_DONE = b"[DONE]"
_WHITE = b" \t\r\n"
_BOM = b"\xef\xbb\xbf"
_COMMENT = b":"
_FIELDS = (_COMMENT, b"event", b"id", b"retry", b"data")
"""What a line of server-sent events begins with; a colon begins a comment."""

_DECODER = json.JSONDecoder()


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

    def feed(self, chunk: bytes) -> list[JsonObject]:
        """The objects that are whole with this chunk."""
        if self._rest and self._rest[-1].endswith(b"\r"):
            chunk = self._taken() + chunk
        # A CR at the end may be the first half of a CRLF.
        end = max(chunk.rfind(b"\n"), chunk.rfind(b"\r", 0, -1)) + 1
        found: list[JsonObject] = []
        if end:
            self._rest.append(chunk[:end])
            lines = self._taken().splitlines()
            self._keep(chunk[end:])
            self._take_lines(lines, found)
        else:
            self._keep(chunk)
        return found

    def finish(self) -> list[JsonObject]:
        """What was left without an end of its line, or without a blank line behind it."""
        found: list[JsonObject] = []
        self._take_lines(self._taken().splitlines(), found)
        if self._data:
            self._take_data(found)
        return found

    def _keep(self, chunk: bytes) -> None:
        # Pieces, for a line of megabytes would be copied with every chunk of it.
        if chunk:
            self._rest.append(chunk)

    def _taken(self) -> bytes:
        rest = b"".join(self._rest)
        self._rest.clear()
        return rest

    def _take_lines(self, lines: list[bytes], found: list[JsonObject]) -> None:
        if self._kind is None:
            lines = self._begun(lines)
        if self._kind != "events":
            for line in lines:
                self._take_json_line(line, found)
            return
        data = self._data
        for line in lines:
            if line.startswith(b"data:"):
                data.append(line[6:] if line[5:6] == b" " else line[5:])
            elif not line:
                if data:
                    self._take_data(found)
            elif not line.startswith(_FIELDS):
                if not self._is_foreign:
                    self.unread.append("a line is neither JSON nor a field of an event")
                self._is_foreign = True

    def _begun(self, lines: list[bytes]) -> list[bytes]:
        """The lines from the first one on that is neither blank nor a comment."""
        for number, line in enumerate(lines):
            first = line.removeprefix(_BOM).lstrip(_WHITE)
            if first and not first.startswith(_COMMENT):
                self._kind = "json" if first[:1] in b"[{" else "events"
                return [first, *lines[number + 1 :]]
        return []

    def _take_json_line(self, line: bytes, found: list[JsonObject]) -> None:
        if self._kind == "json" and line.strip():
            try:
                value = _read(line)
            except ValueError:
                self._kind = "document"
            else:
                self._kind = "lines"
                self._count += 1
                self._take_items(self._bounded(value), found)
                return
        if self._kind == "document":
            self._data.append(line)
        elif not line.startswith(_COMMENT):
            self._take_text(line, found)

    def _take_data(self, found: list[JsonObject]) -> None:
        data = self._data
        text = data[0] if len(data) == 1 else b"\n".join(data)
        data.clear()
        self._take_text(text, found)

    def _take_text(self, text: bytes, found: list[JsonObject]) -> None:
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
        # Counting brackets is quick, and nearly always enough.
        if text.count(b"[") + text.count(b"{") > MOST_LEVELS:
            value = self._bounded(value)
        if isinstance(value, dict):
            found.append(value)
        else:
            self._take_items(value, found)

    def _bounded(self, value: JsonValue) -> JsonValue:
        if is_bounded(value):
            return value
        self.unread.append(f"event {self._count}: {TOO_DEEP}")
        return bounded(value)

    def _take_items(self, value: JsonValue, found: list[JsonObject]) -> None:
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, dict):
                found.append(item)
            else:
                self.unread.append(f"event {self._count} is no JSON object")


def _read(text: bytes) -> JsonValue:
    # As text, of which the encoding is not to be guessed: it is UTF-8 (RFC 8259, section 8.1).
    decoded = text.strip(_WHITE).decode("utf-8", "surrogatepass")
    try:
        # What `json.loads` does, without the layers around it: they cost as much as an event.
        value, end = cast("tuple[JsonValue, int]", _DECODER.raw_decode(decoded))
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    if end < len(decoded):
        raise ValueError(f"what stands behind the value, from character {end} on")
    return value
