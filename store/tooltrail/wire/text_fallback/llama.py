"""The family `llama3`: Llama 3.1 to 3.3 with tools of one's own, as JSON.

Source: the prompt formats in meta-llama/llama-models (`models/llama3_1` to `llama3_3`,
"JSON based tool calling") and the chat template of Llama 3.1. A call is a JSON object with `name`
and `parameters`, and perhaps `type`, with `<|python_tag|>` in front where the environment is
`ipython`. A result is a message of the role `ipython`, written here with its header, since no other
role of a chat is meant for it. There are no ids, so order says what belongs together.

A JSON object without the tag is a call if it has these members and no others, and begins a line.
"""

import re
from collections.abc import Iterator, Sequence

from tooltrail.records import InvalidRecordError
from tooltrail.wire.text_fallback.family import (
    FoundResult,
    TextCall,
    TextFamily,
    TextResult,
)
from tooltrail.wire.text_fallback.json_text import (
    NoJsonError,
    after_white,
    end_of_value,
    members_of,
    read_arguments,
    spelled_arguments,
    spelled_text,
    text_of,
)
from tooltrail.wire.text_fallback.markup import Escaping, LineEscaping, blocks

_MARKS = Escaping("<", r"\|(?:python_tag|start_header_id|end_header_id|eot_id|eom_id)\|>")
_HEADER = "<|start_header_id|>ipython<|end_header_id|>\n\n"
_END = "<|eot_id|>"
_ENDS = re.compile(r"[ \t\r\n]*<\|(?:eom|eot)_id\|>")
_RESULT_BEGIN = re.compile(f"^{re.escape(_HEADER)}", re.MULTILINE)
_RESULT_MARK = re.compile(r"<\|(?:start_header_id|eot_id)\|>", re.IGNORECASE)
_RESULT_END = re.compile(re.escape(_END))
_REQUIRED = {"name", "parameters"}
_MEMBERS = {*_REQUIRED, "type"}


def _write_calls(calls: Sequence[TextCall]) -> str:
    return "\n\n".join(
        f'{{"name": {spelled_text(call.tool_name, _MARKS)}, '
        f'"parameters": {spelled_arguments(call.arguments, _MARKS)}}}'
        for call in calls
    )


def _write_results(results: Sequence[TextResult]) -> str:
    return "\n\n".join(f"{_HEADER}{_MARKS.escape(result.text)}{_END}" for result in results)


def _take_calls(text: str, begin: re.Match[str]) -> tuple[list[TextCall], int]:
    has_tag = begin[0].startswith("<")
    start = after_white(text, begin.end()) if has_tag else begin.end() - 1
    try:
        members, end = members_of(text, start)
    except InvalidRecordError as error:
        return _no_call(text, start, str(error), has_tag=has_tag)
    name = text_of(members.get("name"))
    if not name or not members.keys() >= _REQUIRED or members.keys() - _MEMBERS:
        return _no_call(text, start, "it has not the members of a call", has_tag=has_tag)
    spelled = members["parameters"]
    if spelled[0] not in '{"':
        return _no_call(text, start, "its parameters are no object", has_tag=has_tag)
    closing = _ENDS.match(text, end)
    call = TextCall(name, None, read_arguments(spelled))
    return [call], end if closing is None else closing.end()


def _no_call(text: str, start: int, problem: str, *, has_tag: bool) -> tuple[list[TextCall], int]:
    """What is no call is text, unless the tag says that it was to be one."""
    if has_tag:
        return [TextCall("", None, text[start:], problem=problem)], len(text)
    try:
        return [], end_of_value(text, start)
    except NoJsonError as error:
        # What stands in an object that has no end is no call of its own.
        return [], max(error.place, start + 1)


def _find_results(text: str) -> Iterator[FoundResult]:
    for begin, body, end in blocks(text, _RESULT_BEGIN, _RESULT_MARK, _RESULT_END):
        yield FoundResult(begin.start(), end, _MARKS.unescape(body))


FAMILY = TextFamily(
    name="llama3",
    write_calls=_write_calls,
    write_results=_write_results,
    call_begin=r"<\|python_tag\|>|^\{",
    take_calls=_take_calls,
    find_results=_find_results,
    marks=_MARKS,
    line_marks=(LineEscaping(r"\{"),),
)
