"""Which parts of a complete output the model did not see, for `tooltrail diff --surfaces`.

A preview is the beginning and the end of a stream with a marker between. The marker and the count
of the omission say where the cut is. A receipt of another program has no such marker: the beginning
and the end of the stream are searched in its text.
"""

import json
import re
import shlex
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tooltrail.cli._call_diff import TIMES, content_of, visible
from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._line_diff import Content
from tooltrail.cli._output import print_array, say, write
from tooltrail.cli._pager import page_output
from tooltrail.cli._tables import GREEN, RED, coloured
from tooltrail.records.facts import OmissionFact
from tooltrail.records.ids import short_id
from tooltrail.store import InvocationDetail, Store, StreamView

_MARKER = re.compile(
    r"\[output truncated: showing first ([0-9,]{1,20})(?: (lines|characters))? and last [0-9,]+ "
    r"(lines|characters); [^\]]*\]"
)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_TITLES = {
    ExitCode.OK: "the model saw all",
    ExitCode.DAMAGED: "the model did not see all",
    ExitCode.INCOMPLETE: "it is not known whether the model saw all",
}
_OTHER_TEXT = "the model saw another text"
_LEAST_FOUND = 16
"""Fewest bytes of a stream that are found in a text, and not there by chance."""


class Part(NamedTuple):
    """A part of a stream: its bytes from `start` up to `stop`, and its lines, if they are known.

    The state is `shown`, `cut`, `lost` (not stored), or `unknown`: the shown part cannot be
    located. `stage` left the part out, for `reason`.
    """

    state: str
    start: int
    stop: int
    first_line: int | None = None
    last_line: int | None = None
    stage: str = ""
    reason: str = ""


def print_cuts(store: Store, detail: InvocationDetail, *, as_json: bool) -> ExitCode:
    """Print what the model did not see of a call; return the exit code."""
    receipt = detail.receipt
    if receipt is None or detail.complete_json is None:
        missing = "output" if receipt else "receipt"
        say(f"tooltrail: invocation {detail.summary.id}: {detail.absence_of(missing)}")
        return ExitCode.INCOMPLETE
    streams = [one for one in detail.streams if one.role != TIMES]
    found = [(one, list(_parts_of(store, detail, one))) for one in streams]
    states = {part.state for _, parts in found for part in parts}
    cuts = [one for one in _omissions(detail) if detail.stream(one.field) is None]
    others = [f"{one.stage}: {_sentence(one)}" for one in cuts]
    is_cut = others or states & {"cut", "lost"}
    code = ExitCode.of_damage(is_damaged=is_cut, is_incomplete="unknown" in states)
    if as_json:
        facts = {"complete": code is ExitCode.OK, "id": detail.summary.id}
        records = [_record(*one) for one in found]
        print_array([{**facts, "streams": records, "omissions": others}])
        return code
    page_output(code)
    by = f"renderer {receipt.renderer_name} {receipt.renderer_version}"
    by = "another program" if _is_foreign(detail) else visible(by)
    size = len(receipt.text.encode("utf-8", "surrogatepass"))
    write(f"{_TITLES[code]}: receipt of {size:,} bytes by {by}\n")
    for stream, parts in found:
        write("".join(_lines(short_id(detail.summary.id), stream, parts)))
    write("".join(f"{coloured(f'- {visible(one)}', RED)}\n" for one in others))
    return code


def _parts_of(store: Store, detail: InvocationDetail, stream: StreamView) -> Iterator[Part]:
    content = content_of(store, stream)
    cuts = [one for one in _omissions(detail) if one.field == stream.role and one.unit != "lines"]
    why, unknown = ("", ""), ""
    if _is_foreign(detail):
        ends = _found_in(detail, content)
        why, unknown = ("seen", "the text that the model saw does not have it"), _OTHER_TEXT
    elif cuts:
        ends = _shown_ends(detail, content, cuts)
        why, unknown = (cuts[0].stage, cuts[0].reason), "; ".join(map(_sentence, cuts))
    else:
        ends = 0, content.size
    if ends is None:
        yield Part("unknown", 0, stream.size, stage=why[0], reason=unknown)
    else:
        yield from _split(stream, content, *ends, why)
    if stream.produced_size > stream.size:
        reason = stream.loss_reason or ""
        yield Part("lost", stream.size, stream.produced_size, stage="capture", reason=reason)


def _omissions(detail: InvocationDetail) -> list[OmissionFact]:
    """What the stages behind the capture left out. Another program leaves no omissions."""
    return [one for one in detail.omissions if one.stage != "capture" and not _is_foreign(detail)]


def _is_foreign(detail: InvocationDetail) -> bool:
    """Whether another program made the receipt."""
    return detail.receipt is not None and detail.receipt.renderer_name == "seen"


def _shown_ends(
    detail: InvocationDetail, content: Content, cuts: Sequence[OmissionFact]
) -> tuple[int, int] | None:
    """How many bytes a preview shows before and behind its marker; None if it is not known.

    The preview must be made of exactly these bytes: a tool may print a marker, too.
    """
    cut = cuts[0]
    if len(cuts) > 1 or (cut.unit, cut.before) != ("bytes", content.size):
        return None
    if cut.after == 0:
        return 0, 0
    shown = content.part(0, cut.after)
    for quoted in filter(_MARKER.search, _STRING.findall(detail.canonical_json or "")):
        text: str = json.loads(quoted)
        for marker in _MARKER.finditer(text):
            amount = int(f"0{marker[1].replace(',', '')}")
            first = _size_of(shown, amount, marker[2] or marker[3])
            head, tail = shown[:first], content.part(content.size - cut.after + first, content.size)
            separator = "" if not head or head.endswith(b"\n") else "\n"
            if text.startswith(f"{_spelled(head)}{separator}{marker[0]}\n{_spelled(tail)}"):
                return first, len(tail)
    return None


def _size_of(data: bytes, amount: int, unit: str) -> int:
    """The size of the first lines or characters of data."""
    if unit == "lines":
        return min(sum(len(line) + 1 for line in data.split(b"\n")[:amount]), len(data))
    text = data.decode("utf-8", "surrogateescape")[:amount]
    return len(text.encode("utf-8", "surrogateescape"))


def _spelled(data: bytes) -> str:
    """Bytes as a preview shows them."""
    return data.decode("utf-8", "backslashreplace")


def _found_in(detail: InvocationDetail, content: Content) -> tuple[int, int] | None:
    """How many bytes of the beginning and of the end of a stream the receipt shows, if any."""
    text = "" if detail.receipt is None else detail.receipt.text
    receipt = text.encode("utf-8", "surrogatepass")
    first = _longest(content.part(0, len(receipt)), receipt, content.size)
    rest = receipt[receipt.find(content.part(0, first)) + first :]
    room = content.size - first
    end = content.part(content.size - min(len(rest), room), content.size)
    last = _longest(end[::-1], rest[::-1], room)
    return (first, last) if first or last or not content.size else None


def _longest(beginning: bytes, text: bytes, size: int) -> int:
    """The size of the longest beginning that stands in a text; 0 if it may do so by chance."""
    ends = range(1, len(beginning) + 1)
    found = bisect_left(ends, True, key=lambda end: beginning[:end] not in text)
    return found if found >= min(_LEAST_FOUND, size) else 0


def _split(
    stream: StreamView, content: Content, first: int, last: int, why: tuple[str, str]
) -> Iterator[Part]:
    """The parts of a stream of which the beginning and the end are shown."""
    size, stop = content.size, content.size - last
    is_ended = content.part(max(size - 1, 0), size) == b"\n"
    newlines = stream.line_count - (not is_ended)

    def line_of(offset: int) -> int:
        if offset <= first:
            return content.part(0, offset).count(b"\n") + 1
        return newlines - content.part(offset, size).count(b"\n") + 1

    for state, begin, end in (("shown", 0, first), ("cut", first, stop), ("shown", stop, size)):
        if begin < end:
            reason = why if state == "cut" else ()
            yield Part(state, begin, end, line_of(begin), line_of(end - 1), *reason)


def _lines(name: str, stream: StreamView, parts: Sequence[Part]) -> Iterator[str]:
    role = visible(stream.role)
    yield f"{role}: {f'{stream.produced_size:,} bytes' if stream.produced_size else 'empty'}\n"
    for part in parts:
        is_shown = part.state == "shown"
        place = f"bytes {part.start:,}-{part.stop:,}"
        if part.first_line is not None:
            place += f", lines {part.first_line:,}-{part.last_line:,}"
        why = "" if is_shown else f"  {part.stage}: {part.reason}"
        text = f"{' ' if is_shown else '-'} {part.state:7} {place}{why}"
        yield coloured(visible(text), GREEN if is_shown else RED) + "\n"
        if part.state == "cut":
            option = f"--stream {visible(shlex.quote(stream.role))}"
            yield f"    tooltrail cat {name} {option} --bytes {part.start}:{part.stop}\n"


def _record(stream: StreamView, parts: Sequence[Part]) -> dict[str, Any]:
    facts = {"role": stream.role, "size": stream.produced_size, "digest": stream.digest}
    return {**facts, "parts": [part._asdict() for part in parts]}


def _sentence(cut: OmissionFact) -> str:
    return f"{cut.field} shows {cut.after:,} of {cut.before:,} {cut.unit}: {cut.reason}"
