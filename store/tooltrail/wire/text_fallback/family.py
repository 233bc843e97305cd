"""How families of models write calls and results: their table, and what reads its rows."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

from tooltrail.records import InvalidRecordError, NotFoundError, ResultStatus
from tooltrail.wire.capabilities import Capabilities
from tooltrail.wire.text_fallback.bodies import JSON, TAGS, TEXT, Body, end_of_json
from tooltrail.wire.text_fallback.markup import (
    body_without,
    escape_attribute,
    tags,
    unescape_attribute,
)

NAME = "text-fallback"
_ANYTHING = re.compile(r"(?s:.+)")
_ANY_LENGTH = 1_000_000
CAPABILITIES = Capabilities(
    needs_call_ids=False,
    call_id=_ANYTHING,
    call_id_length=_ANY_LENGTH,
    call_id_scope="batch",
    tool_name=_ANYTHING,
    tool_name_length=_ANY_LENGTH,
    names_servers=True,
)
"""Text can hold any id and any name; unsendable characters are escaped. It has no flags."""

TextKind = Literal["function", "custom"]

_STATUSES: Mapping[str, ResultStatus] = {one: one for one in get_args(ResultStatus)}
# Matches only at the start of white space: else a long run of it would take quadratic time.
_ATTRIBUTE = re.compile(r'(?<!\s)\s++([a-z]++)="([^"<>]*+)"')


@dataclass(frozen=True, slots=True)
class TextCall:
    """A call to be written as text, or found in a text.

    Attributes:
        tool_name: the name of the tool; empty if it cannot be read.
        call_id: the id of the call; None if it has none.
        arguments: the text of the arguments; the body of the call if it cannot be read.
        kind: whether the arguments are JSON (`function`) or free text (`custom`).
        problem: why a call that was found is malformed; None if it is not.
    """

    tool_name: str
    call_id: str | None
    arguments: str
    kind: TextKind = "function"
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class TextResult:
    """A result to be written as text, or found in a text.

    Attributes:
        tool_name: the tool of the call; None if a found block does not name it.
        call_id: the id of the call; None if it has none.
        status: the status; None if only a prefix of the text can show it.
        begin: the position at which a found block begins; it ends at `end`.
    """

    tool_name: str | None
    call_id: str | None
    status: ResultStatus | None
    text: str
    begin: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class Frame:
    """The tags around a body.

    In `begin`, `{name}` is replaced by the name of the tool, and `{attributes}` by attributes with
    these names. Readers accept any white space for a line end, and upper and lower case.
    """

    begin: str
    end: str
    attributes: tuple[str, ...] = ()

    @property
    def tags(self) -> list[str]:
        """The names of the tags before the body."""
        return re.findall(r"<(\w+)", self.begin)

    def write(self, body: str, said: Mapping[str, str | None]) -> str:
        """Write the body between its tags, with the values for which the tags have a place."""
        spelled = {name: escape_attribute(value) for name, value in said.items() if value}
        attributes = "".join(
            f' {name}="{spelled[name]}"' for name in self.attributes if name in spelled
        )
        begin = self.begin.format(name=spelled.get("name", ""), attributes=attributes)
        return f"{begin}\n{body}\n{self.end}"

    def read(self, begin: re.Match[str]) -> dict[str, str]:
        """Read the values in the tags from a match of their pattern."""
        groups = begin.groupdict()
        found = _ATTRIBUTE.findall(groups.get("attributes") or "")
        said = {name.lower(): unescape_attribute(value) for name, value in found}
        if groups.get("name") is not None:
            said["name"] = unescape_attribute(groups["name"].strip("\r\n"))
        return said


class TextFamily:
    """How one family of models writes calls and results.

    Args:
        name: the name of the family.
        call: the frame around the body of a call.
        body: the form of the body of a call.
        result: the frame around the text of a result.
        error: the frame around the text of a failure, if it differs.
        calls_in: the tag around all calls of one batch, if there is one.
        results_in: the tag around all results of one batch, if there is one.

    Attributes:
        tells_ids: whether calls and results contain the id.
        tells_kinds: whether calls are marked as free text.
        tells_status: whether results contain their exact status.
        tells_errors: whether failed results are marked; else their text has a prefix.
        marks: the tags that must be escaped in an assistant's own text.
        call_begin: a pattern of the beginning of calls, for either case.
    """

    def __init__(
        self,
        name: str,
        *,
        call: Frame,
        body: Body,
        result: Frame,
        error: Frame | None = None,
        calls_in: str | None = None,
        results_in: str | None = None,
    ) -> None:
        self.name = name
        self._call, self._body, self._result, self._error = call, body, result, error
        self._calls_in, self._results_in = calls_in, results_in
        self.tells_ids = "id" in call.attributes
        self.tells_kinds = "kind" in call.attributes
        self.tells_status = "status" in result.attributes
        self.tells_errors = self.tells_status or error is not None
        outer = calls_in or call.tags[0], results_in or result.tags[0]
        around = outer[1], *(frame.tags[-1] for frame in (result, error) if frame)
        self.marks = tags(*outer)
        self._in_calls = *outer, call.tags[-1]
        self._in_results = tags(*outer, *around)
        self.call_begin = _pattern(f"<{calls_in}>" if calls_in else call.begin)
        self._calls_mark = _compiled(rf"</{'?' if body.is_text else ''}{outer[0]}\b")
        self._calls_end = _compiled(rf"</{outer[0]}\s*>")
        self._call_begin = _compiled(rf"\s*{_pattern(call.begin)}")
        self._call_end = _compiled(_pattern(call.end))
        self._results_begin = _compiled(rf"^<{outer[1]}\s*>")
        self._results_end = _compiled(rf"\s*</{outer[1]}\s*>")
        begin, end = _pattern(result.begin), _pattern(result.end)
        if error:
            begin = rf"(?:{begin}|(?P<error>{_pattern(error.begin)}))"
            end = rf"(?(error){_pattern(error.end)}|{end})"
        before = r"\s*" if results_in else "^"
        self._result_block = _compiled(rf"{before}{begin}(?P<text>{body_without(*around)}){end}")

    def write_calls(self, calls: Sequence[TextCall]) -> str:
        """Write all calls of one batch as one text."""
        return _together(self._calls_in, [self._written(call) for call in calls])

    def _written(self, call: TextCall) -> str:
        body, is_json = self._body.write(call.tool_name, call.arguments, self._in_calls)
        said = {
            "id": call.call_id,
            "name": call.tool_name,
            "kind": None if call.kind == "function" else call.kind,
            "format": "json" if is_json else None,
        }
        return self._call.write(body, said)

    def write_results(self, results: Sequence[TextResult]) -> str:
        """Write all results of one batch as one text."""
        written: list[str] = []
        for one in results:
            failed = one.status not in {"ok", "unknown"}
            frame = self._error if self._error and failed else self._result
            said = {"id": one.call_id, "name": one.tool_name, "status": one.status}
            written.append(frame.write(self._in_results.escape(one.text), said))
        return _together(self._results_in, written)

    def take_calls(self, text: str, begin: re.Match[str]) -> tuple[list[TextCall], int]:
        """Read the calls that begin at a match of `call_begin`; also return where they end."""
        # JSON shows its own end; strings in it may contain tags.
        mark = self._calls_mark.search(text, end_of_json(text, begin.end()) or begin.end())
        end = mark and self._calls_end.match(text, mark.start())
        stop = mark.start() if mark else len(text)
        after = end.end() if end else stop
        problem = None if end else "it has no end"
        if not self._calls_in:
            return [self._read_call(begin, text[begin.end() : stop], problem)], after
        calls, place = list[TextCall](), begin.end()
        while opened := self._call_begin.match(text, place, stop):
            closed = self._call_end.search(text, opened.end(), stop)
            if closed is None:
                break
            calls.append(self._read_call(opened, text[opened.end() : closed.start()], None))
            place = closed.end()
        # The end tag is the stop sequence of such requests, so it may be missing.
        rest = text[place:stop].strip()
        if rest or not calls:
            calls.append(TextCall("", None, rest, problem=problem or "it is not a call"))
        return calls, after

    def _read_call(self, begin: re.Match[str], body: str, problem: str | None) -> TextCall:
        said, body = self._call.read(begin), _inner(body)
        try:
            name, arguments = self._body.read(body, said, self._in_calls)
            problem = problem or (None if name else "it has no name")
        except InvalidRecordError as error:
            name, arguments, problem = said.get("name", ""), body, problem or str(error)
        kind: TextKind = "custom" if said.get("kind") == "custom" else "function"
        return TextCall(name, said.get("id"), arguments, kind, problem)

    def find_results(self, text: str) -> Iterator[TextResult]:
        """Find the results in a text, in order; malformed blocks are not results."""
        if not self._results_in:
            for one in self._result_block.finditer(text):
                yield self._found(one, one.start(), one.end())
            return
        for begin in self._results_begin.finditer(text):
            batch, place, start = list[re.Match[str]](), begin.end(), begin.start()
            while block := self._result_block.match(text, place):
                batch.append(block)
                place = block.end()
            if end := self._results_end.match(text, place):
                for block in batch:
                    # The first result gets the span of the complete batch, the others an empty one.
                    yield self._found(block, start, end.end())
                    start = end.end()

    def _found(self, one: re.Match[str], begin: int, end: int) -> TextResult:
        said, status = self._result.read(one), None
        if self.tells_status:
            status = _STATUSES.get(said.get("status", ""), "unknown")
        elif self._error:
            status = "error" if one["error"] else "ok"
        text = self._in_results.unescape(_inner(one["text"]))
        return TextResult(said.get("name"), said.get("id"), status, text, begin, end)


def _pattern(spelled: str) -> str:
    """The pattern for the tags of a frame."""
    pattern = spelled.replace(">", r"\s*>").replace("\n", r"\s*")
    pattern = pattern.replace("{name}", "(?P<name>[^<>]*+)")
    return pattern.replace("{attributes}", r"\b(?P<attributes>[^<>]*+)")


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.MULTILINE)


def _together(tag: str | None, blocks: list[str]) -> str:
    return "\n".join([f"<{tag}>", *blocks, f"</{tag}>"]) if tag else "\n\n".join(blocks)


def _inner(body: str) -> str:
    """The text between two tags, without the line ends next to the tags."""
    return body.removeprefix("\n").removesuffix("\n")


_TOOL_RESULT = TextFamily(
    "tool_result",
    call=Frame("<tool_call{attributes}>", "</tool_call>", ("id", "name", "kind")),
    body=TEXT,
    result=Frame("<tool_result{attributes}>", "</tool_result>", ("id", "name", "status")),
)
"""The generic format, for models of any family that read XML-like text."""

_HERMES = TextFamily(
    "hermes",
    call=Frame("<tool_call>", "</tool_call>"),
    body=JSON,
    result=Frame("<tool_response>", "</tool_response>"),
)
"""Hermes of Nous Research, Qwen 2.5 and 3, and models trained like them.

Source: the chat templates of Qwen 2.5 and Qwen 3 (`tokenizer_config.json`), and the README of
NousResearch/Hermes-Function-Calling. The results of a batch are in one message of the user, as
plain text (Qwen; Hermes itself writes JSON with `name` and `content` there). Results are paired
with calls by order.
"""

_ANTHROPIC_XML = TextFamily(
    "anthropic-xml",
    call=Frame(
        "<invoke>\n<tool_name>{name}</tool_name>\n<parameters{attributes}>",
        "</parameters>\n</invoke>",
        ("format",),
    ),
    body=TAGS,
    result=Frame("<result>\n<tool_name>{name}</tool_name>\n<stdout>", "</stdout>\n</result>"),
    error=Frame("<error>", "</error>"),
    calls_in="function_calls",
    results_in="function_results",
)
"""Claude before the Messages API had native tools.

Source: docs.anthropic.com, "Legacy tool use" (`/claude/docs/legacy-tool-use`), and the system
prompt in that document. Results are paired with calls by name and order.
"""

FAMILIES: Mapping[str, TextFamily] = MappingProxyType(
    {family.name: family for family in (_TOOL_RESULT, _HERMES, _ANTHROPIC_XML)}
)
"""The families by name."""


def text_family(name: str) -> TextFamily:
    """Return the family with this name.

    Raises:
        NotFoundError: no family has this name.
    """
    if name not in FAMILIES:
        known = ", ".join(sorted(FAMILIES))
        raise NotFoundError(f"unknown text format {name!r}; known formats: {known}")
    return FAMILIES[name]
