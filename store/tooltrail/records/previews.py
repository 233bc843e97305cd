r"""A bounded view of a stream: its first and last lines, with a marker that counts what is missing.

The budget is in characters (Unicode scalar values) and includes the marker. Cuts are between lines.
A single line that is longer than the budget is cut between user-perceived characters instead. No
cut is ever inside an escape sequence. Bytes that are not UTF-8 are shown as `\xhh`; a stream that
is not text at all is described in one line.

Only the two ends of a long stream are read, even if it is completely in memory: its preview must
equal that of a captured stream, of which only the ends are known.
"""

from typing import Literal, NamedTuple

from tooltrail.records._error_text import one_line
from tooltrail.records._text_cuts import REACH, cut_after, cut_before, sequence_around
from tooltrail.records.budgets import MAX_EDGE_BYTES, MAX_PREVIEW_CHARS, MAX_UTF8_BYTES
from tooltrail.records.frozen import Frozen
from tooltrail.records.streams import StreamRecord

Encoding = Literal["utf-8", "utf-8-escaped", "binary"]
_Unit = Literal["lines", "characters"]

_SNIFF_BYTES = 64 * 1024
"""Bytes at either end of a stream that decide whether it is text."""

_PATH_CHARS = 200
"""Room for the path in the description of a binary stream."""

_MAX_UNDECODABLE = 0.1
"""Share of undecodable bytes above which a stream is not text."""


class Preview(Frozen):
    """The shown part of a stream, and the counts of the rest.

    Attributes:
        text: the preview, at most as long as the budget.
        encoding: how the bytes were decoded.
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
    unit: _Unit


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
        budget: most characters; below about a hundred, only a part of the marker fits.
        edge_bytes: bytes at either end that are read; set by the policy, so that a stream in
            memory is shown like a captured one.
        full_output: location of the complete stream, for the marker.
    """
    head, tail, overlap = _edges(stream, edge_bytes)
    encoding = _encoding(head, tail)
    if encoding == "binary":
        return _describe_binary(stream, budget, full_output)
    if overlap:
        text = _shown(head.decode("utf-8", "surrogateescape"))
        if len(text) <= budget:
            return Preview(text, encoding, 0, 0)
    room = budget - _marker_chars(stream, full_output) - 2
    if room <= 0:
        marker = f"[output truncated: {stream.size:,} bytes]"[: max(budget, 0)]
        return Preview(marker, encoding, stream.size, stream.line_count)
    first = _take_head(head, room // 2)
    last = _take_tail(tail[first.size :] if overlap else tail, room - len(first.text))
    return _join(stream, first, last, encoding, full_output)


def needed_chars(stream: StreamRecord, edge_bytes: int = MAX_EDGE_BYTES) -> int:
    """The smallest budget with which a preview shows as much of a stream as it ever can.

    If the preview will contain a path, the budget has room for a long one.
    """
    head, tail, whole = _edges(stream, edge_bytes)
    if _encoding(head, tail) == "binary":
        return len(_describe_binary(stream, MAX_PREVIEW_CHARS, None).text) + _PATH_CHARS
    return len(_shown(_decoded(head))) if whole else stream.size


def _edges(stream: StreamRecord, edge_bytes: int) -> tuple[bytes, bytes, bool]:
    """At most `edge_bytes` of head and tail and False, or twice the complete stream and True."""
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
    if b"\0" in sample[0] or b"\0" in sample[1]:
        return "binary"
    if head.isascii() and tail.isascii():
        return "utf-8"
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
    # The characters after the cut decide whether the cut is allowed.
    text = _decoded(data[: (budget + REACH) * MAX_UTF8_BYTES])
    fitting = _fitting(text, budget, 1)
    end = text.rfind("\n", 0, fitting) + 1
    while (span := sequence_around(text, end)) is not None:
        end = text.rfind("\n", 0, span[0]) + 1
    cut = cut_before(text, fitting)
    if end in (len(text), cut) or len(_shown(text[:end])) >= budget // 2:
        return _piece(text[:end], "lines")
    return _piece(text[:cut], "characters")


def _take_tail(data: bytes, budget: int) -> _Piece:
    # All of it is decoded: flags are pairs, and their row must be read from its beginning.
    text = _decoded(data)
    fitting = len(text) - _fitting(text, budget, -1)
    start = _line_start(text, fitting)
    while (span := sequence_around(text, start)) is not None:
        start = _line_start(text, span[1])
    cut = cut_after(text, fitting)
    if start == cut or len(_shown(text[start:])) >= budget // 2:
        return _piece(text[start:], "lines")
    return _piece(text[cut:], "characters")


def _line_start(text: str, index: int) -> int:
    """The first start of a line at or after `index`; the start of `text` does not count as one."""
    newline = text.find("\n", max(0, index - 1))
    return len(text) if newline < 0 else newline + 1


def _fitting(text: str, budget: int, direction: Literal[1, -1]) -> int:
    """Length of the longest prefix (1) or suffix (-1) that is shown in `budget` characters."""
    low, high = 0, min(len(text), budget)
    middle = high  # the first attempt succeeds unless there are undecodable bytes
    while low < high:
        piece = text[:middle] if direction == 1 else text[len(text) - middle :]
        low, high = (middle, high) if len(_shown(piece)) <= budget else (low, middle - 1)
        middle = (low + high + 1) // 2
    return low


def _piece(text: str, unit: _Unit) -> _Piece:
    amount = _line_count(text) if unit == "lines" else len(text)
    size = len(text.encode("utf-8", "surrogateescape"))
    return _Piece(_shown(text), size, amount, unit)


def _join(
    stream: StreamRecord,
    first: _Piece,
    last: _Piece,
    encoding: Encoding,
    full_output: str | None,
) -> Preview:
    # If both pieces show a part of the same line, it is counted twice: hence the maximum.
    lines = max(0, stream.line_count - _line_count(first.text) - _line_count(last.text))
    size = stream.size - first.size - last.size
    marker = _marker(_showing(first, last), lines, size, full_output)
    separator = "" if not first.text or first.text.endswith("\n") else "\n"
    return Preview(f"{first.text}{separator}{marker}\n{last.text}", encoding, size, lines)


def _line_count(text: str) -> int:
    return text.count("\n") + (1 if text and not text.endswith("\n") else 0)


def _marker(showing: str, lines: int, size: int, full_output: str | None) -> str:
    """The marker between head and tail."""
    where = f"; full output: {full_output}" if full_output else ""
    return f"[output truncated: showing {showing}; {lines:,} lines, {size:,} bytes omitted{where}]"


def _marker_chars(stream: StreamRecord, full_output: str | None) -> int:
    """The most characters that the marker of a stream can take."""
    size = stream.size
    first = _Piece("", size, size, "characters")
    showing = _showing(first, first._replace(unit="lines"))
    return len(_marker(showing, stream.line_count, size, full_output))


def _showing(first: _Piece, last: _Piece) -> str:
    unit = "" if first.unit == last.unit else f" {first.unit}"
    return f"first {first.amount:,}{unit} and last {last.amount:,} {last.unit}"


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _shown(text: str) -> str:
    r"""The text with undecodable bytes, which are lone surrogates here, written as `\xhh`."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return text


_REASON_CHARS = 80
"""Longest reason that the notice of a loss repeats: the smallest share has room for the notice."""


def loss_notice(stream: StreamRecord) -> str:
    """The line that says how much was lost and why; empty if nothing was lost.

    The notice begins with a newline, since the stream may have lost its last newline.
    """
    if stream.loss_reason is None:
        return ""
    lost = stream.produced_size - stream.size
    reason = one_line(f": {stream.loss_reason}", _REASON_CHARS).removesuffix(":")
    return f"\n[output incomplete: the last {lost:,} bytes were not kept{reason}]\n"
