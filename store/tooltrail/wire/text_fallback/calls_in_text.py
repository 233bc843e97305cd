"""Calls in the text of an assistant: what is one is taken out, and nothing is made of the rest.

A call begins a line, and stands in no code block of Markdown: what looks like one elsewhere (a
quotation, an example) is text, and that is told. A call that is not as its format says is flagged
`incomplete`, with all there is of it as its arguments: whoever runs the tools answers it with an
error. Blank lines beside a call belong to it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tooltrail.records import CallBlock, CallFlag, TextBlock, ToolCall
from tooltrail.wire.text_fallback.families import TextFamily, text_family
from tooltrail.wire.text_fallback.markup import FENCES
from tooltrail.wire.text_fallback.names import split_name
from tooltrail.wire.text_fallback.telling import FoundCall

_FENCE = r"^ {0,3}(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})[^\n]*$"


@dataclass(frozen=True, slots=True)
class TextWithCalls:
    """What a text says, in order.

    Attributes:
        blocks: its texts and calls.
        unread: what looked like a call and is none, or is one and not as its format says; each one
            a sentence.
    """

    blocks: tuple[TextBlock | CallBlock, ...]
    unread: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The text without calls."""
        return "\n\n".join(one.text for one in self.blocks if isinstance(one, TextBlock))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls."""
        return tuple(one.call for one in self.blocks if isinstance(one, CallBlock))


def read_calls(text: str, family: str = "tool_result") -> TextWithCalls:
    """The calls of a text, and the text without them.

    Raises:
        NotFoundError: there is no family of that name.
    """
    reading = _Reading(text_family(family), text)
    reading.read()
    return TextWithCalls(tuple(reading.blocks), tuple(reading.unread))


def plain_text(family: TextFamily, text: str) -> str:
    """The text of an assistant as it was before `marked_text`."""
    plain = FENCES.unescape(family.marks.unescape(text))
    for marks in family.line_marks:
        plain = marks.unescape(plain)
    return plain


def marked_text(family: TextFamily, text: str, *, everywhere: bool) -> str:
    """The text of an assistant without anything that could be read as a call.

    Args:
        family: in which it is told.
        text: that is to be told.
        everywhere: whether marks at the beginnings of lines may be in the way here.
    """
    marked = text
    for marks in reversed(family.line_marks):
        marked = marks.escape(marked, everywhere=everywhere)
    return family.marks.escape(FENCES.escape(marked, everywhere=everywhere))


def has_line_marks(family: TextFamily, text: str) -> bool:
    """Whether a mark at the beginning of a line may be in the way of calls in the same message."""
    return any(marks.marks(text) for marks in (FENCES, *family.line_marks))


class _Reading:
    def __init__(self, family: TextFamily, text: str) -> None:
        self.blocks: list[TextBlock | CallBlock] = []
        self.unread: list[str] = []
        self._family = family
        self._text = text
        self._ids: set[str] = set()
        self._count = 0

    def read(self) -> None:
        """Take the text apart."""
        said = 0
        for begin in self._beginnings():
            found = self._family.take_calls(self._text, begin)
            self._place = found.end
            if found.calls:
                self._add_text(said, begin.start(), behind_calls=said > 0, before_calls=True)
                self._add_calls(found.calls)
                said = found.end
        self._add_text(said, len(self._text), behind_calls=said > 0, before_calls=False)

    def _beginnings(self) -> Iterator[re.Match[str]]:
        """Where calls begin; `_place` is where to look for the next one."""
        pattern = _pattern(self._family.call_begin)
        self._place = 0
        while mark := pattern.search(self._text, self._place):
            if mark["fence"]:
                self._skip_code(mark, pattern)
            elif self._begins_line(mark.start()):
                yield mark
            else:
                self._place = mark.end()
                self.unread.append("what looks like a call stands inside of a line; it is text")

    def _skip_code(self, fence: re.Match[str], pattern: re.Pattern[str]) -> None:
        mark = fence["fence"]
        closing = re.compile(rf"^ {{0,3}}{mark[0]}{{{len(mark)},}}[ \t\r]*$", re.MULTILINE)
        end = closing.search(self._text, fence.end())
        self._place = len(self._text) if end is None else end.end()
        inside = pattern.search(self._text, fence.end(), self._place)
        if inside is not None and not inside["fence"]:
            self.unread.append("what looks like a call stands in a code block; it is text")

    def _begins_line(self, place: int) -> bool:
        line = self._text[self._text.rfind("\n", 0, place) + 1 : place]
        return not line.strip(" \t\r") or (self._family.follows_marks and line.endswith("|>"))

    def _add_text(self, begin: int, end: int, *, behind_calls: bool, before_calls: bool) -> None:
        text = self._text[begin:end]
        if before_calls:
            line = text.rfind("\n") + 1
            text = text[:line] if not text[line:].strip(" \t\r") else text
            text = _without_blank_line(text, at_end=True)
        if behind_calls:
            text = _without_blank_line(text, at_end=False)
        if text:
            self.blocks.append(TextBlock(text=plain_text(self._family, text)))

    def _add_calls(self, found: Sequence[FoundCall]) -> None:
        for one in found:
            if one.problem is not None:
                self.unread.append(f"call {self._count} is not as it should be: {one.problem}")
            self.blocks.append(CallBlock(call=self._call(one)))
            self._count += 1

    def _call(self, found: FoundCall) -> ToolCall:
        flags: tuple[CallFlag, ...] = () if found.problem is None else ("incomplete",)
        if found.call_id and found.call_id in self._ids:
            flags = (*flags, "id_repeated")
        self._ids.add(found.call_id or "")
        namespace, tool_name = split_name(found.tool_name)
        return ToolCall(
            tool_name=tool_name,
            namespace=namespace,
            call_id=found.call_id or None,
            arguments_raw=found.arguments,
            kind=found.kind,
            position=self._count,
            flags=flags,
        )


@lru_cache(maxsize=32)
def _pattern(call_begin: str) -> re.Pattern[str]:
    return re.compile(f"{_FENCE}|(?:{call_begin})", re.MULTILINE | re.IGNORECASE)


def _without_blank_line(text: str, *, at_end: bool) -> str:
    """Without two ends of lines at most on one side, which an exporter puts beside calls."""
    for _ in range(2):
        text = text.removesuffix("\n") if at_end else text.removeprefix("\n")
    return text
