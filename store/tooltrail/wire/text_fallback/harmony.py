"""The family `harmony`: the open models of OpenAI, gpt-oss.

Source: openai/harmony, `docs/format.md` ("Receiving tool calls", "Handling tool calls"). A call is
a message on the channel `commentary` to `functions.NAME`, which may stand in either part of the
header, and ends with `<|call|>`; a result is a message of `functions.NAME` to the assistant. There
are no ids, so names and order say what belongs together. What the model says on other channels
stays in the text as it is.
"""

import re
from collections.abc import Iterator, Sequence

from tooltrail.wire.text_fallback.family import (
    FoundResult,
    TextCall,
    TextFamily,
    TextResult,
)
from tooltrail.wire.text_fallback.markup import Escaping, blocks
from tooltrail.wire.text_fallback.markup import escape_attribute as escape_name
from tooltrail.wire.text_fallback.markup import unescape_attribute as unescape_name

_MARKS = Escaping("<", r"\|(?:start|end|message|channel|constrain|return|call)\|>")
_MARK = re.compile(r"<\|(start|end|message|channel|constrain|return|call)\|>", re.IGNORECASE)
_NAMESPACE = "functions."
_RESULT_BEGIN = re.compile(
    r"^<\|start\|>functions\.(?P<name>[^ \t\r\n<]+) to=assistant"
    r"<\|channel\|>commentary<\|message\|>",
    re.MULTILINE,
)
_RESULT_END = re.compile(r"<\|end\|>", re.IGNORECASE)


def _write_calls(calls: Sequence[TextCall]) -> str:
    return "\n\n".join(
        f"<|start|>assistant<|channel|>commentary to={_name(call.tool_name)} "
        f"<|constrain|>json<|message|>{_MARKS.escape(call.arguments)}<|call|>"
        for call in calls
    )


def _write_results(results: Sequence[TextResult]) -> str:
    return "\n\n".join(
        f"<|start|>{_name(result.tool_name)} to=assistant<|channel|>commentary"
        f"<|message|>{_MARKS.escape(result.text)}<|end|>"
        for result in results
    )


def _name(tool_name: str) -> str:
    # A header is words between spaces and marks.
    words = "&#32;".join(escape_name(tool_name).split(" "))
    return f"{_NAMESPACE}{words}"


def _take_calls(text: str, begin: re.Match[str]) -> tuple[list[TextCall], int]:
    name = unescape_name(begin["name_1"] or begin["name_2"])
    end = _MARK.search(text, begin.end())
    stop = len(text) if end is None else end.start()
    is_whole = end is not None and end[1].lower() == "call"
    arguments = _MARKS.unescape(text[begin.end() : stop])
    call = TextCall(name, None, arguments, problem=None if is_whole else "it has no end")
    return [call], end.end() if end is not None and is_whole else stop


def _find_results(text: str) -> Iterator[FoundResult]:
    for begin, body, end in blocks(text, _RESULT_BEGIN, _MARK, _RESULT_END):
        name = unescape_name(begin["name"])
        yield FoundResult(begin.start(), end, _MARKS.unescape(body), tool_name=name)


_TO = r"to=functions\.(?P<name_{}>[^ \t\r\n<]+)"
_CHANNEL = r"<\|channel\|>commentary"
FAMILY = TextFamily(
    name="harmony",
    write_calls=_write_calls,
    write_results=_write_results,
    call_begin=(
        rf"(?:<\|start\|>assistant)?(?: {_TO.format(1)}{_CHANNEL}|{_CHANNEL} {_TO.format(2)})"
        r"\s*(?:<\|constrain\|>\w+)?<\|message\|>"
    ),
    take_calls=_take_calls,
    find_results=_find_results,
    marks=_MARKS,
    follows_marks=True,
)
