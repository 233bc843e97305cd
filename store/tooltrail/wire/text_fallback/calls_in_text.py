"""Calls in the text of an assistant: what is one is taken out, and nothing is made of the rest.

A call begins a line, and stands in no code block of Markdown: what looks like one elsewhere (a
quotation, an example) is text, and that is reported. A call that is not as its format says is
flagged `incomplete`, with all there is of it as its arguments: whoever runs the tools answers it
with an error. Blank lines beside a call belong to it.

What models think in `<think>` is reasoning, with the calls that they only rehearse there, which is
reported. It begins a line; chat templates may have written its beginning already, then all up to an
end of it was thought. Tags in code are text.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from tooltrail.records import (
    CallBlock,
    CallFlag,
    MessageBlock,
    ReasoningBlock,
    TextBlock,
    ToolCall,
)
from tooltrail.wire._identifiers import split_name
from tooltrail.wire._reading import RepeatedIds
from tooltrail.wire.text_fallback.families import text_family
from tooltrail.wire.text_fallback.family import TextCall, TextFamily
from tooltrail.wire.text_fallback.markup import FENCES, THOUGHTS

_FENCE = r"^ {0,3}(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})[^\n]*$"
_THOUGHT = r"<(?P<ends>/?)(?P<thought>think|thinking)>"
_CODE_OR_END = re.compile(r"(?<!`)`+[^`\n]+`+|(?P<end></think(?:ing)?>)", re.IGNORECASE)
_FENCE_END = re.compile(r"^ {0,3}(?P<fence>`{3,}|~{3,})[ \t\r]*$", re.MULTILINE)
_REHEARSED = "what looks like a call was thought; it is none"


@dataclass(frozen=True, slots=True)
class TextWithCalls:
    """What a text says, in order.

    Attributes:
        blocks: its texts and calls, and what was thought.
        unread: what is a call and not as its format says, or may be one; each one a sentence.
        remarks: what looked like a call and is none; each one a sentence.
    """

    blocks: tuple[TextBlock | CallBlock | ReasoningBlock, ...]
    unread: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

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
    reading = _Reading(text_family(family), text, _thought_ends(text))
    reading.read()
    return TextWithCalls(tuple(reading.blocks), tuple(reading.unread), tuple(reading.remarks))


def plain_text(family: TextFamily, text: str) -> str:
    """The text of an assistant as it was before `marked_text`."""
    return FENCES.unescape(THOUGHTS.unescape(family.marks.unescape(text)))


def marked_text(family: TextFamily, text: str, *, everywhere: bool) -> str:
    """The text of an assistant without anything that could be read as a call.

    Args:
        family: in which it is written.
        text: to write.
        everywhere: whether fences of code blocks may be in the way here.
    """
    return family.marks.escape(THOUGHTS.escape(FENCES.escape(text, everywhere=everywhere)))


class _Reading:
    def __init__(
        self, family: TextFamily, text: str, thought_ends: Sequence[tuple[int, int]]
    ) -> None:
        self.blocks: list[TextBlock | CallBlock | ReasoningBlock] = []
        self.unread: list[str] = []
        self.remarks: list[str] = []
        self._family = family
        self._text = text
        self._thought_ends = thought_ends
        self._fence_ends: dict[str, list[tuple[int, int]]] | None = None
        self._repeated = RepeatedIds()
        self._count = 0
        self._said = 0
        self._place = 0
        self._answer = 0
        self._first_thought = 0

    def read(self, *, has_thoughts: bool = True) -> None:
        """Take the text apart; in that of a thought, tags of thoughts mean nothing.

        `_said` is how far it is taken, `_place` where to look for what comes next, and `_answer`
        where it goes on behind the last thought.
        """
        pattern = _pattern(self._family.call_begin, has_thoughts=has_thoughts)
        while mark := pattern.search(self._text, self._place):
            if mark["ends"]:
                self._take_thought_end(mark)
            elif mark["thought"]:
                self._take_thought(mark)
            elif mark["fence"]:
                self._skip_code(mark, pattern)
            elif self._begins_line(mark.start()):
                self._take_calls(mark)
            else:
                self._place = mark.end()
                self.remarks.append("what looks like a call stands inside of a line; it is text")
        self._add_text(len(self._text), is_before=False)
        if thought := self._text[: self._first_thought].strip("\r\n"):
            self.blocks.insert(0, ReasoningBlock(text=thought))

    def _take_calls(self, begin: re.Match[str]) -> None:
        calls, self._place = self._family.take_calls(self._text, begin)
        if calls:
            self._add_text(begin.start(), is_before=True)
            self._add_calls(calls)
            self._said = self._place

    def _take_thought(self, begin: re.Match[str]) -> None:
        if not self._begins_line(begin.start()):
            self._place = begin.end()
            return
        end = self._thought_end(begin.end())
        stop, after = (len(self._text),) * 2 if end is None else end
        if end is None:
            self.unread.append("what was thought has no end; there may be calls in it")
        self._add_text(begin.start(), is_before=True)
        if thought := self._text[begin.end() : stop].strip("\r\n"):
            self.blocks.append(ReasoningBlock(text=thought))
            rehearsed = _Reading(self._family, thought, ())
            rehearsed.read(has_thoughts=False)
            self._tell_rehearsed(rehearsed.blocks)
        self._said = self._place = self._answer = after

    def _take_thought_end(self, end: re.Match[str]) -> None:
        if self._thought_end(end.start()) == end.span():
            self._was_thought(end.start(), end.end())
        else:
            self._place = end.end()

    def _was_thought(self, stop: int, after: int) -> None:
        """Find that all so far was thought: what looked like calls were none."""
        self._tell_rehearsed(self.blocks)
        self.blocks.clear()
        self.unread.clear()
        self._repeated = RepeatedIds()
        self._count = 0
        self._first_thought = stop
        self._said = self._place = self._answer = after

    def _tell_rehearsed(self, blocks: Sequence[MessageBlock]) -> None:
        if any(isinstance(block, CallBlock) for block in blocks):
            self.remarks.append(_REHEARSED)

    def _thought_end(self, place: int) -> tuple[int, int] | None:
        """Where the first end of thoughts from here on begins and ends."""
        following = bisect_left(self._thought_ends, (place, 0))
        return self._thought_ends[following] if following < len(self._thought_ends) else None

    def _skip_code(self, fence: re.Match[str], pattern: re.Pattern[str]) -> None:
        end = self._fence_end(fence)
        if end is None and (thought := self._thought_end(fence.end())):
            # A code block that was begun in thoughts does not go on behind them.
            self._was_thought(*thought)
            return
        self._place = len(self._text) if end is None else end
        for inside in pattern.finditer(self._text, fence.end(), self._place):
            if not (inside["fence"] or inside["thought"]):
                self.remarks.append("what looks like a call stands in a code block; it is text")
                return

    def _fence_end(self, fence: re.Match[str]) -> int | None:
        """Where the code block ends that begins here."""
        if self._fence_ends is None:
            self._fence_ends = _last_fence_ends(self._text)
        mark = fence["fence"]
        last = self._fence_ends.get(mark[0], [])
        of_length = bisect_left(last, (len(mark), 0))
        # Looked for only where there is one: else each fence would go through the whole rest.
        if of_length == len(last) or last[of_length][1] < fence.end():
            return None
        closing = re.compile(rf"^ {{0,3}}{mark[0]}{{{len(mark)},}}[ \t\r]*$", re.MULTILINE)
        end = closing.search(self._text, fence.end())
        return None if end is None else end.end()

    def _begins_line(self, place: int) -> bool:
        # Going back costs no more than what stands between this mark and the one before it.
        while place > self._answer and self._text[place - 1] in " \t\r":
            place -= 1
        return place == self._answer or self._text[place - 1] == "\n"

    def _add_text(self, end: int, *, is_before: bool) -> None:
        """Take the text up to here, which stands before a call or a thought, or at the end."""
        text = self._text[self._said : end]
        if is_before:
            line = text.rfind("\n") + 1
            text = text[:line] if not text[line:].strip(" \t\r") else text
            text = _without_blank_line(text, at_end=True)
        if self._said > 0:
            text = _without_blank_line(text, at_end=False)
        if text:
            self.blocks.append(TextBlock(text=plain_text(self._family, text)))

    def _add_calls(self, found: Sequence[TextCall]) -> None:
        for one in found:
            if one.problem is not None:
                self.unread.append(f"call {self._count} is not as it should be: {one.problem}")
            self.blocks.append(self._repeated.flagged(self._call(one)))
            self._count += 1

    def _call(self, found: TextCall) -> ToolCall:
        flags: tuple[CallFlag, ...] = () if found.problem is None else ("incomplete",)
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
def _pattern(call_begin: str, *, has_thoughts: bool) -> re.Pattern[str]:
    # Without thoughts the groups are there all the same, of what matches nowhere.
    thought = _THOUGHT if has_thoughts else rf"(?!){_THOUGHT}"
    begins = f"{_FENCE}|{thought}|(?:{call_begin})"
    return re.compile(begins, re.MULTILINE | re.IGNORECASE)


def _thought_ends(text: str) -> list[tuple[int, int]]:
    """Where thoughts may end: at the tags that stand in no code inside of a line."""
    return [found.span() for found in _CODE_OR_END.finditer(text) if found["end"]]


def _last_fence_ends(text: str) -> dict[str, list[tuple[int, int]]]:
    """Of each character of fences, the lengths of the last ends of code blocks, and their places.

    An end is not among them where one of its length or more follows it.
    """
    last: dict[str, list[tuple[int, int]]] = {}
    for end in reversed([*_FENCE_END.finditer(text)]):
        known = last.setdefault(end["fence"][0], [])
        if not known or known[-1][0] < len(end["fence"]):
            known.append((len(end["fence"]), end.start()))
    return last


def _without_blank_line(text: str, *, at_end: bool) -> str:
    """Without two ends of lines at most on one side, which an exporter puts beside calls."""
    for _ in range(2):
        text = text.removesuffix("\n") if at_end else text.removeprefix("\n")
    return text
