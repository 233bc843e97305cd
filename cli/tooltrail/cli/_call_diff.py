"""What differs between two invocations, for `tooltrail diff`: as a unified diff, or as JSON.

The duration and the times in the stream `order` differ from run to run, and are no difference.
"""

import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple, cast

from tooltrail.cli._line_diff import Content, Hunk, LineDiff, in_memory
from tooltrail.cli._output import SCHEMA_VERSION, duration_of, write
from tooltrail.cli._tables import GREEN, PLAIN, RED, coloured
from tooltrail.cli._times import shown
from tooltrail.records.ids import short_id
from tooltrail.records.readable_json import indent_json
from tooltrail.store import InvocationDetail, Store, StreamView
from tooltrail.store.references import shorten_canonical, shorten_output

TIMES = "order"
"""The role of the stream that says when the other streams were written."""

_NAMES = {"output": "complete output", "canonical": "canonical result"}
"""The members of texts with other names in the store. `output` is also the role of streams."""

_DOCUMENTS = ("arguments", "complete output", "canonical result")
"""Members that are JSON, and are laid out."""

_COLOURS = {b"-": RED, b"+": GREEN}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_IN_RECEIPT = re.compile(r'\{"\$tooltrail\.receipt":\[\d+,\d+\]\}')


class Member(NamedTuple):
    """A member of two invocations, such as `arguments` or `stdout`; None where there is none."""

    name: str
    before: object
    after: object

    @property
    def differs(self) -> bool:
        """Whether the member differs. Reads no stream: streams with one digest are equal."""
        return self.before != self.after


class CallDiff:
    """Compares two invocations of a store.

    Attributes:
        members: all members that one of them has.
    """

    def __init__(self, store: Store, before: InvocationDetail, after: InvocationDetail) -> None:
        self._store = store
        self._sides = before, after
        first, second = values_of(before), values_of(after)
        names = dict.fromkeys([*first, *second])
        self.members = [Member(name, first.get(name), second.get(name)) for name in names]

    def print_text(self, *, brief: bool) -> bool:
        """Print the members that differ, or one line if none does; return whether one does."""
        changed, same = self._changed()
        if not changed:
            write(f"identical: {same}\n")
        else:
            for name, side in zip(("before", "after "), self._sides, strict=True):
                write(on_one_line(f"{name} {_headline(side)}") + "\n")
            write(f"same   {same}\n" if same else "")
        for member in changed:
            (self._print_sizes if brief else self._print_hunks)(member)
        return bool(changed)

    def print_json(self, *, brief: bool) -> bool:
        """Print one JSON array with one object, hunk by hunk; return whether a member differs."""
        changed, _ = self._changed()
        before, after = map(_facts, self._sides)
        document = {
            "schema_version": SCHEMA_VERSION,
            "identical": not changed,
            "before": before,
            "after": after,
            "same": [one.name for one in self.members if not one.differs],
            "different": (self._record(one, brief=brief) for one in changed),
        }
        for piece in json_pieces([document]):
            write(piece)
        write("\n")
        return bool(changed)

    def _changed(self) -> tuple[list[Member], str]:
        same = ", ".join(visible(one.name) for one in self.members if not one.differs)
        return [one for one in self.members if one.differs], same

    def _contents(self, member: Member) -> list[Content]:
        texts = [one if isinstance(one, str) else "" for one in (member.before, member.after)]
        laid_out = list(map(_laid_out, texts)) if member.name in _DOCUMENTS else texts
        if laid_out[0] == laid_out[1]:
            laid_out = texts  # the white space of a document differs
        contents: list[Content] = []
        for side, text in zip(self._sides, laid_out, strict=True):
            stream = side.stream(member.name)
            data = text.encode("utf-8", "surrogatepass")
            contents.append(in_memory(data) if stream is None else content_of(self._store, stream))
        return contents

    def _print_sizes(self, member: Member) -> None:
        sizes = " and ".join(f"{one.size:,}" for one in self._contents(member))
        write(f"differ {visible(member.name)}: {sizes} bytes\n")

    def _print_hunks(self, member: Member) -> None:
        contents = self._contents(member)
        for sign, side, content in zip(("---", "+++"), self._sides, contents, strict=True):
            name = f"{short_id(side.summary.id)}/{visible(member.name)}"
            write(f"{sign} {name}\t{_about(side, member.name, content)}\n")
        difference = LineDiff(*contents)
        for hunk in difference.hunks():
            write("".join(_lines_of(hunk)))
        write("".join(f"({visible(note)})\n" for note in difference.notes))

    def _record(self, member: Member, *, brief: bool) -> Mapping[str, Any]:
        if brief:
            return member._asdict()
        difference = LineDiff(*self._contents(member))
        return {
            **member._asdict(),
            "hunks": map(_hunk_record, difference.hunks()),
            "first_difference": lambda: difference.first_difference,
            "notes": lambda: difference.notes,
        }


def values_of(detail: InvocationDetail) -> Mapping[str, object]:
    """What is compared of an invocation, by name: texts, and for a stream its digest and size."""
    summary, receipt = detail.summary, detail.receipt
    values: dict[str, object] = {
        "tool": f"{summary.tool_name} ({summary.family} family)\n",
        "arguments": detail.arguments.decode("utf-8", "surrogateescape"),
        "outcome": f"{summary.outcome}\n",
        "complete output": detail.complete_json,
        "canonical result": detail.canonical_json,
        "receipt": None if receipt is None else receipt.text,
    }
    for gone in detail.erased:
        # What was erased from two invocations may have differed.
        values[_NAMES.get(gone.name, gone.name)] = f"{summary.id}: {gone.sentence}\n"
    if detail.complete_json is not None:
        # Streams are compared alone; the document has their numbers.
        streams = cast("Any", detail.streams)
        values["complete output"] = shorten_output(detail.complete_json, streams)
    if detail.canonical_json is not None and receipt is not None:
        # Long texts that stand in the receipt are compared there.
        text = receipt.text.encode("utf-8", "surrogatepass")
        result = shorten_canonical(detail.canonical_json, text)
        values["canonical result"] = _IN_RECEIPT.sub('"(see receipt)"', result)
    for one in detail.streams:
        if one.role != TIMES:
            lost = _loss(one)
            values[one.role] = {"digest": one.digest, "size": one.size, "lost": lost}
    return values


def content_of(store: Store, stream: StreamView) -> Content:
    """The bytes of a stream. Reading them raises like `Reader.open_stream`."""

    @cache
    def opened() -> Callable[[int, int], bytes]:
        if stream.artifact_path is not None and stream.erasure is None:
            return store.archive.reader(stream.artifact_path, size=stream.size).read_bytes
        with store.reader.open_stream(stream) as source:
            return in_memory(source.read()).part

    def part(start: int, stop: int) -> bytes:
        return opened()(start, stop)

    return Content(stream.size, part)


def json_pieces(value: Any) -> Iterator[str]:
    """JSON in pieces. An iterator becomes an array, a function is called when it is written."""
    if callable(value):
        value = value()
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        yield "{"
        for n, (name, one) in enumerate(items):
            yield f"{', ' if n else ''}{json.dumps(name)}: "
            yield from json_pieces(one)
        yield "}"
    elif isinstance(value, list | Iterator):
        yield "["
        for n, one in enumerate(cast("Iterator[Any]", value)):
            yield ",\n " if n else ""
            yield from json_pieces(one)
        yield "]"
    else:
        yield json.dumps(value, ensure_ascii=False, default=str)


def visible(text: str) -> str:
    """Text in which control characters are escapes, so that they differ and drive no terminal."""
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() or one == "\t" else one.encode("unicode_escape").decode()
        for one in text
    )


def _about(detail: InvocationDetail, name: str, content: Content) -> str:
    """The size of a member, and what the capture lost of a stream."""
    stream = detail.stream(name)
    loss = None if stream is None else _loss(stream)
    return visible(f"{content.size:,} bytes{f', lost {loss}' if loss else ''}")


def _loss(stream: StreamView) -> str | None:
    if stream.loss_reason is None:
        return None
    return f"{stream.produced_size - stream.size:,} bytes: {stream.loss_reason}"


def on_one_line(text: str) -> str:
    """Visible text, cut to the width of the terminal if there is one."""
    text = visible(text)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else len(text)
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _laid_out(text: str) -> str:
    """A JSON document with a line for each value, and for each line of a long text."""
    with suppress(ValueError, RecursionError):
        json.loads(text)
        return _ESCAPE.sub(_broken, indent_json(text))
    return text


def _broken(escape: re.Match[str]) -> str:
    return f"{escape[0]}\n" if escape[1] == "n" else escape[0]


def _headline(detail: InvocationDetail) -> str:
    summary = detail.summary
    took = duration_of(summary.duration_ms)
    ending = summary.outcome + (f" in {took}" if took else "")
    started = shown(summary.started_at, utc=False)
    return f"{short_id(summary.id)}  {started}  {ending}  {summary.arguments_preview}"


def _facts(detail: InvocationDetail) -> Mapping[str, object]:
    names = ("id", "session_id", "seq", "tool_name", "outcome", "started_at", "duration_ms")
    facts = {name: getattr(detail.summary, name) for name in names}
    return {**facts, "started_at": detail.summary.started_at.isoformat()}


def _lines_of(hunk: Hunk) -> Iterator[str]:
    (before, first), (after, second) = hunk.ranges
    yield f"@@ -{before},{first} +{after},{second} @@\n"
    for line in hunk.lines:
        text = visible(line.removesuffix(b"\n").decode("utf-8", "backslashreplace"))
        yield coloured(text, _COLOURS.get(line[:1], PLAIN)) + "\n"
        if not line.endswith(b"\n"):
            yield "\\ No newline at end of file\n"


def _hunk_record(hunk: Hunk) -> Mapping[str, Any]:
    (before, first), (after, second) = hunk.ranges
    return {
        "before": {"line": before, "count": first},
        "after": {"line": after, "count": second},
        # A byte that is not UTF-8 becomes a lone surrogate, which Python can convert back.
        "lines": [line.decode("utf-8", "surrogateescape") for line in hunk.lines],
    }
