"""Splits the bytes of a connection into JSON objects.

The first character outside white space and comments decides: a bracket begins JSON, anything else
server-sent events (WHATWG HTML, section 9.2.6), whose lines begin with a field name. If the first
line of JSON is valid JSON by itself, the stream is newline-delimited JSON; there, too, proxies
send comments to keep the connection alive. Otherwise all bytes are one JSON document, from a proxy
that does not stream. The result does not depend on where chunks begin and end.
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
"""The possible beginnings of a line of server-sent events; a colon begins a comment."""

_DECODER = json.JSONDecoder()


class EventFraming:
    """Splits a stream into JSON objects. Not safe to share between threads.

    Attributes:
        unread: one sentence for each piece that is not a JSON object.
        is_done: whether the stream contained `[DONE]`.
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
        """Add a chunk and return the objects that it completes."""
        if self._rest and self._rest[-1].endswith(b"\r"):
            chunk = self._taken() + chunk
        # A CR at the end may be the first half of a CRLF.
        end = max(chunk.rfind(b"\n"), chunk.rfind(b"\r", 0, -1)) + 1
        found: list[JsonObject] = []
        if end:
            self._rest.append(chunk[:end])
            lines, chunk = self._taken().splitlines(), chunk[end:]
            self._take_lines(lines, found)
        # A list of pieces: one growing byte string would copy a long line with every chunk.
        if chunk:
            self._rest.append(chunk)
        return found

    def finish(self) -> list[JsonObject]:
        """The last objects, which no end of line or no blank line follows."""
        found: list[JsonObject] = []
        self._take_lines(self._taken().splitlines(), found)
        if self._data:
            self._take_data(found)
        return found

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
        """The lines from the first one that is neither blank nor a comment; sets the kind."""
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
        text = b"\n".join(self._data)
        self._data.clear()
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
            self.unread.append(f"event {self._count} is not JSON: {error}")
            return
        # Counting brackets is quick and nearly always rules out deep nesting.
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
                self.unread.append(f"event {self._count} is not a JSON object")


class LineEnds:
    """Adds the line ends that chunks lack if they are lines of a stream, as of `iter_lines`.

    Two chunks can show that the stream is cut into lines. Before that, and in any other stream, the
    chunks stay unchanged.
    """

    def __init__(self) -> None:
        self._previous = b""
        self._are_lines: bool | None = None

    def add_to(self, chunk: bytes) -> bytes:
        """The next chunk, after the line end that the previous chunk lacks."""
        if not chunk or self._are_lines is False:
            return chunk
        previous, self._previous = self._previous, chunk.removeprefix(_BOM)
        if previous and self._are_lines is None:
            self._are_lines = _are_lines(previous, chunk)
        if not self._are_lines:
            return chunk
        # A blank line ends an event. Callers often leave out the blank lines.
        return (b"\n\n" if previous.startswith(b"data:") else b"\n") + chunk


def _are_lines(first: bytes, second: bytes) -> bool:
    """Whether the first two chunks of a stream are certainly lines without their ends."""
    if first.endswith((b"\n", b"\r")) or not second.startswith((b"data:", b"event:", b"{")):
        return False
    try:
        _read(first.removeprefix(b"data:"))
    except ValueError:
        is_name = first.startswith(b"event:") and len(first.splitlines()) == 1
        return is_name and second.startswith(b"data:")
    return True


def _read(text: bytes) -> JsonValue:
    # Decoded here so that `json` does not guess the encoding: UTF-8 (RFC 8259, section 8.1).
    decoded = text.strip(_WHITE).decode("utf-8", "surrogatepass")
    try:
        # Does what `json.loads` does without its wrappers, which cost as much as one event.
        value, end = cast("tuple[JsonValue, int]", _DECODER.raw_decode(decoded))
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    if end < len(decoded):
        raise ValueError(f"extra data after the JSON value, from character {end} on")
    return value
