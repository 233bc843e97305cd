"""What differs between two invocations, for `tooltrail diff`: as a unified diff, or as JSON.

The duration and the times in the stream `order` differ from run to run, and are no difference.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import Any, NamedTuple, cast

from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._line_diff import Content, Hunk, LineDiff, in_memory
from tooltrail.cli._output import SCHEMA_VERSION, duration_of, json_of, write
from tooltrail.cli._pager import page_output
from tooltrail.cli._tables import BOLD, CYAN, GREEN, PLAIN, RED, coloured
from tooltrail.cli._times import shown
from tooltrail.records.errors import TooltrailError
from tooltrail.records.ids import short_id
from tooltrail.records.readable_json import indent_json
from tooltrail.store import InvocationDetail, Store, StreamView
from tooltrail.store.references import shorten_output

TIMES = "order"
"""The role of the stream that says when the other streams were written."""

_DOCUMENTS = ("arguments", "complete output", "canonical result")
"""Members that are JSON, and are laid out."""

_WORDS = ("tool", "outcome")
"""Members that are a few words."""

_OTHERS = (*_WORDS, *_DOCUMENTS, "receipt")
"""Members that are no streams."""

_FACTS = ("id", "session_id", "seq", "tool_name", "outcome", "started_at", "duration_ms")
_COLOURS = {b"-": RED, b"+": GREEN}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


class Absent(str):
    """Why an invocation does not have a surface: whether the surface differs is not known."""

    __slots__ = ()


class Member(NamedTuple):
    """A member of two invocations, such as `arguments` or `stdout`; None where there is none."""

    name: str
    before: object
    after: object

    @property
    def state(self) -> str:
        """`same`, `different` or `unknown`. Reads no stream: streams with one digest are equal."""
        if self.reasons:
            return "unknown"
        return "same" if self.before == self.after else "different"

    @property
    def reasons(self) -> Mapping[str, str]:
        """Why `before`, `after` or both are absent."""
        return {side: why for side, why in self._asdict().items() if isinstance(why, Absent)}


def members_of(before: Mapping[str, object], after: Mapping[str, object]) -> list[Member]:
    """The members that one of two invocations has, from the values of both."""

    def value(side: Mapping[str, object], name: str) -> object:
        output = side["complete output"]
        # Without its complete output, it is not known which streams an invocation has.
        return side.get(name, output if isinstance(output, Absent) else None)

    names = dict.fromkeys([*before, *after])
    return [Member(name, value(before, name), value(after, name)) for name in names]


class CallDiff:
    """Compares two invocations of a store."""

    def __init__(self, store: Store, before: InvocationDetail, after: InvocationDetail) -> None:
        self._store = store
        self._sides = before, after
        self._errors: list[TooltrailError] = []
        members = members_of(values_of(before), values_of(after))
        self._same, self._different, self._unknown = (
            [one for one in members if one.state == state]
            for state in ("same", "different", "unknown")
        )

    def report(self, *, brief: bool, as_json: bool) -> ExitCode:
        """Print the members that differ, hunk by hunk; return the exit code.

        Raises:
            TooltrailError: a stream cannot be read. The other members were printed.
        """
        code = ExitCode.of_damage(is_damaged=self._different, is_incomplete=self._unknown)
        if as_json:
            self._print_json(code, brief=brief)
        else:
            page_output(code)
            self._print_text(code, brief=brief)
        if self._errors:
            raise self._errors[0]
        return code

    def _print_text(self, code: ExitCode, *, brief: bool) -> None:
        same = ", ".join(visible(one.name) for one in self._same)
        if code is ExitCode.OK:
            write(f"identical: {same}\n")
            return
        for name, side in zip(("before", "after "), self._sides, strict=True):
            write(visible(f"{name} {_headline(side)}") + "\n")
        write(f"same   {same}\n" if same else "")
        for member in self._unknown:
            reasons = "; ".join(f"{side}: {reason}" for side, reason in member.reasons.items())
            write(visible(f"unknown {member.name}: {reasons}") + "\n")
        for member in self._different:
            contents = self._contents(member)
            if brief and member.name in _WORDS:
                values = f"{member.before} → {member.after}".replace("\n", "")
                write(visible(f"differ {member.name}: {values}") + "\n")
            elif brief:
                sizes = " and ".join(f"{one.size:,}" for one in contents)
                write(f"differ {visible(member.name)}: {sizes} bytes\n")
            else:
                self._print_hunks(member.name, contents)

    def _print_json(self, code: ExitCode, *, brief: bool) -> None:
        sides = [{name: getattr(one.summary, name) for name in _FACTS} for one in self._sides]
        head = {
            "schema_version": SCHEMA_VERSION,
            "identical": code is ExitCode.OK,
            "before": sides[0],
            "after": sides[1],
            "same": [one.name for one in self._same],
            "unknown": [{"name": one.name, **one.reasons} for one in self._unknown],
        }
        write(f'[{json_of(head)[:-1]}, "different": [')
        for n, member in enumerate(self._different):
            write((",\n " if n else "") + json_of(member._asdict())[:-1])
            if not brief:
                difference = LineDiff(*self._contents(member))
                write(', "hunks": [')
                for k, hunk in enumerate(difference.hunks()):
                    write((",\n " if k else "") + json_of(_hunk_record(hunk)))
                self._errors += filter(None, [difference.error])
                end = {"first_difference": difference.first_difference, "notes": difference.notes}
                write(f"], {json_of(end)[1:-1]}")
            write("}")
        write("]}]\n")

    def _contents(self, member: Member) -> list[Content]:
        texts = [one if isinstance(one, str) else "" for one in (member.before, member.after)]
        laid_out = list(map(_laid_out, texts)) if member.name in _DOCUMENTS else texts
        if laid_out[0] == laid_out[1]:
            laid_out = texts  # the white space of a document differs
        contents: list[Content] = []
        for side, text in zip(self._sides, laid_out, strict=True):
            stream = _stream_of(side, member.name)
            data = text.encode("utf-8", "surrogatepass")
            contents.append(in_memory(data) if stream is None else content_of(self._store, stream))
        return contents

    def _print_hunks(self, member: str, contents: Sequence[Content]) -> None:
        for sign, side, content in zip(("---", "+++"), self._sides, contents, strict=True):
            name = f"{short_id(side.summary.id)}/{visible(member)}"
            loss = _loss(_stream_of(side, member))
            about = visible(f"{content.size:,} bytes{f', lost {loss}' if loss else ''}")
            write(coloured(f"{sign} {name}\t{about}", BOLD) + "\n")
        difference = LineDiff(*contents)
        for hunk in difference.hunks():
            write("".join(_lines_of(hunk)))
        self._errors += filter(None, [difference.error])
        write("".join(f"({visible(note)})\n" for note in difference.notes))


def values_of(detail: InvocationDetail) -> Mapping[str, object]:
    """What is compared of an invocation, by name: texts, and for a stream its digest and size."""

    def text(surface: str, stored: str | None) -> str:
        if stored is None or any(one.name == surface for one in detail.erased):
            return Absent(detail.absence_of(surface))
        return stored

    summary, receipt, output = detail.summary, detail.receipt, detail.complete_json
    if output is not None:
        # Streams are compared alone; the document has their numbers.
        output = shorten_output(output, cast("Any", detail.streams))
    values: dict[str, object] = {
        "tool": f"{summary.tool_name} ({summary.family} family)\n",
        "arguments": text("arguments", detail.arguments.decode("utf-8", "surrogateescape")),
        "outcome": f"{summary.outcome}\n",
        "complete output": text("output", output),
        "canonical result": text("canonical", detail.canonical_json),
        "receipt": text("receipt", None if receipt is None else receipt.text),
    }
    for one in detail.streams:
        if one.role != TIMES:
            values[_name_of(one)] = {"digest": one.digest, "size": one.size, "lost": _loss(one)}
    return values


def _name_of(stream: StreamView) -> str:
    """The name of the member that a stream is. A captured stream may have the role `receipt`."""
    return f"stream {stream.role}" if stream.role in _OTHERS else stream.role


def _stream_of(detail: InvocationDetail, member: str) -> StreamView | None:
    """The stream that a member is; None for another member."""
    return next((one for one in detail.streams if _name_of(one) == member), None)


def content_of(store: Store, stream: StreamView) -> Content:
    """The bytes of a stream. Reading them raises like `Reader.open_stream`."""
    opened = cache(partial(store.reader.parts_of, stream))

    def part(start: int, stop: int) -> bytes:
        return opened()(start, stop)

    return Content(stream.size, part)


def visible(text: str) -> str:
    """Text in which control characters are escapes, so that they differ and drive no terminal."""
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() or one == "\t" else one.encode("unicode_escape").decode()
        for one in text
    )


def _loss(stream: StreamView | None) -> str | None:
    """What the capture lost of a stream."""
    if stream is None or stream.loss_reason is None:
        return None
    return f"{stream.produced_size - stream.size:,} bytes: {stream.loss_reason}"


def _laid_out(text: str) -> str:
    """A JSON document with a line for each value, and for each line of a long text."""
    with suppress(ValueError, RecursionError):
        json.loads(text)
        return _ESCAPE.sub(lambda one: one[0] + "\n" * (one[1] == "n"), indent_json(text))
    return text


def _headline(detail: InvocationDetail) -> str:
    summary = detail.summary
    took = duration_of(summary.duration_ms)
    ending = summary.outcome + (f" in {took}" if took else "")
    started = shown(summary.started_at)
    return f"{short_id(summary.id)}  {started}  {ending}  {summary.arguments_preview}"


def _lines_of(hunk: Hunk) -> Iterator[str]:
    (before, first), (after, second) = hunk.ranges
    yield coloured(f"@@ -{before},{first} +{after},{second} @@", CYAN) + "\n"
    for line in hunk.lines:
        text = visible(line.removesuffix(b"\n").decode("utf-8", "backslashreplace"))
        yield coloured(text, _COLOURS.get(line[:1], PLAIN)) + "\n"
        if not line.endswith(b"\n"):
            yield "\\ No newline at end of file\n"


def _hunk_record(hunk: Hunk) -> Mapping[str, Any]:
    before, after = ({"line": line, "count": count} for line, count in hunk.ranges)
    # A byte that is not UTF-8 becomes a lone surrogate, which Python can convert back.
    lines = [line.decode("utf-8", "surrogateescape") for line in hunk.lines]
    return {"before": before, "after": after, "lines": lines}
