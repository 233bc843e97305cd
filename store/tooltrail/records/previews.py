r"""A bounded view of a stream: its first and last lines, with a marker that counts what is missing.

The budget is in characters (Unicode scalar values) and the marker is inside it. Lines are kept
whole. A single line that is longer than the budget falls back to characters, cut between
user-perceived characters and never inside an escape sequence. Bytes that are not UTF-8 are shown
as `\xhh`; a stream that is not text at all is described in one line.

Of a long stream only the two ends are looked at, whether it was captured, so that no more is known,
or is wholly in memory: both must give the same text.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from tooltrail.records._text_cuts import REACH, cut_after, cut_before
from tooltrail.records.policy import MAX_EDGE_BYTES, MAX_PREVIEW_CHARS, MAX_UTF8_BYTES
from tooltrail.records.streams import StreamRecord

Encoding = Literal["utf-8", "utf-8-escaped", "binary"]

_SNIFF_BYTES = 64 * 1024
"""Bytes of either end that decide whether a stream is text."""

_PATH_CHARS = 200
"""Room for the path in the description of a binary stream."""

_MAX_UNDECODABLE = 0.1
"""Share of undecodable bytes above which a stream is not text."""


@dataclass(frozen=True, slots=True)
class Preview:
    """What is shown of a stream, and how much is not.

    Attributes:
        text: at most the budget's characters.
        encoding: how the bytes became text.
        omitted_bytes: kept bytes that the text does not show.
        omitted_lines: kept lines of which the text shows nothing.
    """

    text: str
    encoding: Encoding
    omitted_bytes: int
    omitted_lines: int

    @property
    def truncated(self) -> bool:
        """Whether anything was left out."""
        return self.omitted_bytes > 0


class _Piece(NamedTuple):
    text: str
    size: int
    amount: int
    unit: Literal["lines", "characters"]


def preview(
    stream: StreamRecord,
    budget: int,
    *,
    edge_bytes: int = MAX_EDGE_BYTES,
    full_output: str | None = None,
) -> Preview:
    """Preview the kept bytes of a stream.

    Args:
        stream: the stream; its `head` and `tail` must hold enough bytes for the budget.
        budget: characters; below a hundred or so only a part of the marker fits.
        edge_bytes: bytes of either end that are looked at; the policy's, so that a stream in
            memory is shown like a captured one.
        full_output: where the whole of it is, for the marker.
    """
    head, tail, overlap = _edges(stream, edge_bytes)
    encoding = _encoding(head, tail)
    if encoding == "binary":
        return _describe_binary(stream, budget, full_output)
    if overlap:
        text = _shown(head.decode("utf-8", "surrogateescape"))
        if len(text) <= budget:
            return Preview(text, encoding, 0, 0)
    room = budget - len(_marker(stream, None, None, full_output)) - 2
    if room <= 0:
        marker = f"[output truncated: {stream.size:,} bytes]"[: max(budget, 0)]
        return Preview(marker, encoding, stream.size, stream.line_count)
    first = _take_head(head, room // 2)
    last = _take_tail(tail[first.size :] if overlap else tail, room - len(first.text))
    return _join(stream, first, last, encoding, full_output)


def needed_chars(stream: StreamRecord, edge_bytes: int = MAX_EDGE_BYTES) -> int:
    """The smallest budget with which a preview shows all that can be shown of a stream."""
    head, tail, whole = _edges(stream, edge_bytes)
    if _encoding(head, tail) == "binary":
        return len(_describe_binary(stream, MAX_PREVIEW_CHARS, None).text) + _PATH_CHARS
    return len(_text(head)) if whole else stream.size


def _edges(stream: StreamRecord, edge_bytes: int) -> tuple[bytes, bytes, bool]:
    """At most `edge_bytes` of head and tail, or twice the whole stream and True."""
    head, tail = stream.head, stream.tail
    if stream.content is not None:
        head = tail = stream.content
    elif len(head) + len(tail) == stream.size:
        head = tail = head + tail
    if stream.size <= 2 * edge_bytes and len(head) == stream.size:
        return head, head, True
    head, tail = head[:edge_bytes], tail[max(0, len(tail) - edge_bytes) :]
    return _without_split_end(head), _without_split_start(tail), False


def _without_split_end(data: bytes) -> bytes:
    """Drop the first bytes of a character whose rest lies beyond the end of `data`."""
    for back in range(1, min(MAX_UTF8_BYTES, len(data) + 1)):
        lead = data[-back]
        if lead & 0xC0 != 0x80:  # not a continuation byte, so the last character starts here
            needs = 1 + (lead >= 0xC0) + (lead >= 0xE0) + (lead >= 0xF0)
            return data[:-back] if needs > back else data
    return data


def _without_split_start(data: bytes) -> bytes:
    """Drop the last bytes of a character whose start lies before `data`."""
    start = 0
    while start < min(MAX_UTF8_BYTES - 1, len(data)) and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:]


def _encoding(head: bytes, tail: bytes) -> Encoding:
    sample = head[:_SNIFF_BYTES], tail[-_SNIFF_BYTES:]
    if any(b"\0" in part for part in sample):
        return "binary"
    if any(_undecodable(part) > _MAX_UNDECODABLE * len(part) + MAX_UTF8_BYTES for part in sample):
        return "binary"
    if _undecodable(head) or (tail is not head and _undecodable(tail)):
        return "utf-8-escaped"
    return "utf-8"


def _undecodable(data: bytes) -> int:
    try:
        data.decode()
    except UnicodeDecodeError:
        text = data.decode("utf-8", "surrogateescape")
        return len(text) - len(text.encode("utf-8", "ignore").decode())
    return 0


def _describe_binary(stream: StreamRecord, budget: int, full_output: str | None) -> Preview:
    where = f"; full output: {full_output}" if full_output else ""
    text = f"[binary output: {stream.size:,} bytes, {stream.digest}{where}]"[: max(budget, 0)]
    return Preview(text, "binary", stream.size, stream.line_count)


def _take_head(data: bytes, budget: int) -> _Piece:
    end = used = count = 0
    while (newline := data.find(b"\n", end)) >= 0:
        width = _width(data[end : newline + 1])
        if used + width > budget:
            break
        end, used, count = newline + 1, used + width, count + 1
    if used >= budget // 2 or end == len(data):
        return _Piece(_text(data[:end]), end, count, "lines")
    # The characters behind the cut say whether it may be there.
    reach = (budget + REACH) * MAX_UTF8_BYTES
    text = _fit(data[:reach].decode("utf-8", "surrogateescape"), budget, 1)
    return _Piece(_shown(text), _size(text), len(text), "characters")


def _take_tail(data: bytes, budget: int) -> _Piece:
    start, used, count = len(data), 0, 0
    while start > 0:
        newline = data.rfind(b"\n", 0, start - 1)
        if newline < 0:
            break
        width = _width(data[newline + 1 : start])
        if used + width > budget:
            break
        start, used, count = newline + 1, used + width, count + 1
    if used >= budget // 2 or start == 0:
        return _Piece(_text(data[start:]), len(data) - start, count, "lines")
    # All of it: flags are pairs, which can only be told apart from the beginning of their row.
    text = _fit(data.decode("utf-8", "surrogateescape"), budget, -1)
    return _Piece(_shown(text), _size(text), len(text), "characters")


def _fit(text: str, budget: int, direction: Literal[1, -1]) -> str:
    """The longest allowed prefix (1) or suffix (-1) that is shown in `budget` characters."""
    low, high = 0, min(len(text), budget)
    while low < high:
        middle = (low + high + 1) // 2
        piece = text[:middle] if direction == 1 else text[len(text) - middle :]
        low, high = (middle, high) if len(_shown(piece)) <= budget else (low, middle - 1)
    if direction == 1:
        return text[: cut_before(text, low)]
    return text[cut_after(text, len(text) - low) :]


def _join(
    stream: StreamRecord, first: _Piece, last: _Piece, encoding: Encoding, full_output: str | None
) -> Preview:
    # When both pieces show a part of the same line, it is counted twice: hence the maximum.
    omitted_lines = max(0, stream.line_count - _line_count(first.text) - _line_count(last.text))
    marker = _marker(stream, first, last, full_output, omitted_lines)
    separator = "" if not first.text or first.text.endswith("\n") else "\n"
    text = f"{first.text}{separator}{marker}\n{last.text}"
    return Preview(text, encoding, stream.size - first.size - last.size, omitted_lines)


def _line_count(text: str) -> int:
    return text.count("\n") + (1 if text and not text.endswith("\n") else 0)


def _marker(
    stream: StreamRecord,
    first: _Piece | None,
    last: _Piece | None,
    full_output: str | None,
    omitted_lines: int | None = None,
) -> str:
    """The sentence in the middle; without pieces the longest that it can become."""
    longest = f"{stream.size:,} characters"
    showing = f"{first.amount:,} {first.unit}" if first else longest
    ending = f"{last.amount:,} {last.unit}" if last else longest
    lines = stream.line_count if omitted_lines is None else omitted_lines
    size = stream.size - (first.size if first else 0) - (last.size if last else 0)
    where = f"; full output: {full_output}" if full_output else ""
    return (
        f"[output truncated: showing first {showing} and last {ending}; "
        f"{lines:,} lines, {size:,} bytes omitted{where}]"
    )


def _width(data: bytes) -> int:
    return len(data) if data.isascii() else len(_text(data))


def _text(data: bytes) -> str:
    return _shown(data.decode("utf-8", "surrogateescape"))


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))


def _shown(text: str) -> str:
    """Undecodable bytes, which decoding left as lone surrogates, spelled out."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return text
