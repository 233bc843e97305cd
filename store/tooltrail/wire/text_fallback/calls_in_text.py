"""Finds the calls in the text of an assistant, and separates them from the rest of the text.

A call begins a line and is not in a code block of Markdown; elsewhere its form is plain text (a
quotation, an example). A malformed call is flagged `incomplete`, with its body as its arguments;
the program that runs the tools answers it with an error. Blank lines next to a call belong to it.

Text in `<think>` is reasoning, including any calls in it. The start tag begins a line. A chat
template may have written the start tag already; then all text up to the end tag is reasoning. Tags
in code are text.
"""

import re
from bisect import bisect_left
from dataclasses import dataclass

from tooltrail.records import CallBlock, ReasoningBlock, TextBlock, ToolCall
from tooltrail.wire._identifiers import split_name
from tooltrail.wire._reading import numbered
from tooltrail.wire.text_fallback.family import TextCall, TextFamily, text_family
from tooltrail.wire.text_fallback.markup import FENCES, THOUGHTS

_FLAGS = re.MULTILINE | re.IGNORECASE
_FENCE = r"^ {0,3}(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})[^\n]*$"
_THOUGHT = r"<(?P<ends>/?)(?P<thought>think|thinking)>"
_LINE = r"^[ \t\r]*+"
_WHITE = re.compile(r"[ \t\r]*+")
_CODE_OR_END = re.compile(r"(?<!`)`+[^`\n]+`+|(?P<end></think(?:ing)?>)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TextWithCalls:
    """The contents of a text, in order.

    Attributes:
        blocks: the texts, calls and reasoning.
        unread: one sentence for each malformed call, and for text that may hide calls.
    """

    blocks: tuple[TextBlock | CallBlock | ReasoningBlock, ...]
    unread: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The text without calls and reasoning."""
        return "\n\n".join(one.text for one in self.blocks if isinstance(one, TextBlock))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls."""
        return tuple(one.call for one in self.blocks if isinstance(one, CallBlock))


def read_calls(text: str, family: str = "tool_result") -> TextWithCalls:
    """Find the calls in a text, and separate them from the other text.

    Raises:
        NotFoundError: no family has this name.
    """
    reading = _Reading(text_family(family), text)
    reading.read()
    blocks: list[TextBlock | CallBlock | ReasoningBlock] = []
    unread, position = list[str](), 0
    for found in reading.found:
        if not isinstance(found, TextCall):
            blocks.append(found)
            continue
        if found.problem is not None:
            unread.append(f"call {position} is not as it should be: {found.problem}")
        blocks.append(CallBlock(call=_call(found)))
        position += 1
    return TextWithCalls(tuple(numbered(blocks)), (*unread, *reading.unread))


def _call(found: TextCall) -> ToolCall:
    namespace, tool_name = split_name(found.tool_name)
    return ToolCall(
        tool_name=tool_name,
        namespace=namespace,
        call_id=found.call_id or None,
        arguments_raw=found.arguments,
        kind=found.kind,
        flags=() if found.problem is None else ("incomplete",),
    )


def marked_text(family: TextFamily, text: str, *, everywhere: bool) -> str:
    """Escape everything in the text of an assistant that could be read as a call.

    Args:
        family: the family in which the text is written.
        text: the text to write.
        everywhere: whether to escape all fences of code blocks, since they could hide a call.
    """
    return family.marks.escape(THOUGHTS.escape(FENCES.escape(text, everywhere=everywhere)))


def text_beside(text: str, *, follows: bool, precedes: bool) -> str:
    """The text after or before a call or a result, without the blank line between them."""
    if follows:
        text = text.removeprefix("\n").removeprefix("\n")
    if precedes:
        text = text.removesuffix("\n").removesuffix("\n")
    return text


class _Reading:
    def __init__(self, family: TextFamily, text: str) -> None:
        self.found: list[TextBlock | TextCall | ReasoningBlock] = []
        self.unread: list[str] = []
        self._family = family
        self._text = text
        self._marks = re.compile(
            rf"{_FENCE}|(?P<line>{_LINE})?+(?:{_THOUGHT}|{family.call_begin})", _FLAGS
        )
        self._thought_ends = [found.span() for found in _CODE_OR_END.finditer(text) if found["end"]]
        self._unclosed: dict[str, int] = {}
        self._said = 0
        self._place = 0
        self._answer = 0

    def read(self) -> None:
        """Split the text into `found`.

        `_said` is the end of the text that is already in `found`, `_place` the position of the next
        search, and `_answer` the position after the last reasoning and its white space.
        """
        while mark := self._marks.search(self._text, self._place):
            self._place = mark.end()
            begins_line = mark["line"] is not None or mark.start() == self._answer
            if mark["fence"]:
                self._skip_code(mark)
            elif mark["ends"]:
                end = self._thought_end(mark.start())
                if end and end[1] == mark.end():
                    self._all_was_thought(*end)
            elif mark["thought"]:
                if begins_line:
                    self._take_thought(mark)
            elif begins_line:
                calls, self._place = self._family.take_calls(self._text, mark)
                self._add_text(mark.start(), is_before=True)
                self.found += calls
                self._said = self._place
        self._add_text(len(self._text), is_before=False)

    def _take_thought(self, begin: re.Match[str]) -> None:
        end = self._thought_end(begin.end())
        stop, after = (len(self._text),) * 2 if end is None else end
        if end is None:
            self.unread.append("what was thought has no end; there may be calls in it")
        self._add_text(begin.start(), is_before=True)
        self._add_thought(begin.end(), stop, after)

    def _all_was_thought(self, stop: int, after: int) -> None:
        """Treat all text so far as reasoning: the calls found in it are not calls."""
        self.found.clear()
        self._add_thought(0, stop, after)

    def _add_thought(self, begin: int, stop: int, after: int) -> None:
        """Add reasoning; the rest of the text begins at `after`, the end of its end tag."""
        if text := self._text[begin:stop].strip("\r\n"):
            self.found.append(ReasoningBlock(text=text))
        white = _WHITE.match(self._text, after)
        self._said = self._place = after
        self._answer = after if white is None else white.end()

    def _thought_end(self, place: int) -> tuple[int, int] | None:
        """The begin and end of the first end tag of reasoning from this position on."""
        following = bisect_left(self._thought_ends, (place, 0))
        return self._thought_ends[following] if following < len(self._thought_ends) else None

    def _skip_code(self, fence: re.Match[str]) -> None:
        end = self._fence_end(fence)
        if end is None and (thought := self._thought_end(fence.end())):
            # A code block that begins in reasoning ends with it.
            self._all_was_thought(*thought)
            return
        self._place = len(self._text) if end is None else end

    def _fence_end(self, fence: re.Match[str]) -> int | None:
        """The end of the code block that begins with this fence; None if it has none."""
        mark = fence["fence"]
        kind, length = mark[0], len(mark)
        # Skip the search if it failed before: else each fence would scan the rest of the text.
        if length >= self._unclosed.get(kind, length + 1):
            return None
        closing = re.compile(rf"^ {{0,3}}{kind}{{{length},}}[ \t\r]*$", re.MULTILINE)
        end = closing.search(self._text, fence.end())
        if end is None:
            self._unclosed[kind] = length
            return None
        return end.end()

    def _add_text(self, end: int, *, is_before: bool) -> None:
        """Add the text up to `end`, where a call, reasoning or the end of the text begins."""
        text = self._text[self._said : end]
        if is_before and not text.strip(" \t\r"):
            return
        if text := text_beside(text, follows=self._said > 0, precedes=is_before):
            plain = self._family.marks.unescape(text)
            self.found.append(TextBlock(text=FENCES.unescape(THOUGHTS.unescape(plain))))
