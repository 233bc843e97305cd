"""The family `hermes`: Hermes of Nous Research, Qwen 2.5 and 3, and models trained like them.

Source: the chat templates of Qwen 2.5 and Qwen 3 (`tokenizer_config.json`), and the README of
NousResearch/Hermes-Function-Calling. A call is `<tool_call>` around JSON with `name` and
`arguments`; the results of a batch stand in one message of the user, each in `<tool_response>`, as
plain text (Qwen; Hermes itself writes JSON with `name` and `content` there). Neither has an id, and
a result has no name, so they belong together by their order.
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
    after_white,
    members_of,
    read_arguments,
    spelled_arguments,
    spelled_text,
    text_of,
)
from tooltrail.wire.text_fallback.markup import blocks, body_in, tags

_CALL, _RESULT = "tool_call", "tool_response"
_MARKS = tags(_CALL, _RESULT)
_CALL_END = re.compile(rf"</{_CALL}\s*>", re.IGNORECASE)
_RESULT_BEGIN = re.compile(rf"^<{_RESULT}\s*>", re.IGNORECASE | re.MULTILINE)
_RESULT_TAG = re.compile(rf"</?{_RESULT}", re.IGNORECASE)
_RESULT_END = re.compile(rf"</{_RESULT}\s*>", re.IGNORECASE)


def _write_calls(calls: Sequence[TextCall]) -> str:
    return "\n\n".join(
        f'<{_CALL}>\n{{"name": {spelled_text(call.tool_name, _MARKS)}, '
        f'"arguments": {spelled_arguments(call.arguments, _MARKS)}}}\n</{_CALL}>'
        for call in calls
    )


def _write_results(results: Sequence[TextResult]) -> str:
    return "\n\n".join(
        f"<{_RESULT}>\n{_MARKS.escape(result.text)}\n</{_RESULT}>" for result in results
    )


def _take_calls(text: str, begin: re.Match[str]) -> tuple[list[TextCall], int]:
    # The JSON says where it ends: a text in it may have the tag.
    try:
        members, end_of_json = members_of(text, after_white(text, begin.end()))
    except InvalidRecordError as error:
        return _unreadable(text, begin.end(), str(error))
    end = _CALL_END.match(text, after_white(text, end_of_json))
    name, arguments = text_of(members.get("name")), members.get("arguments")
    if end is None:
        return _unreadable(text, begin.end(), "it has no end")
    if not name or arguments is None:
        return _unreadable(text, begin.end(), "it has no name or no arguments")
    return [TextCall(name, None, read_arguments(arguments))], end.end()


def _unreadable(text: str, begin: int, problem: str) -> tuple[list[TextCall], int]:
    end = _CALL_END.search(text, begin)
    stop, after = (len(text), len(text)) if end is None else (end.start(), end.end())
    body = body_in(text[begin:stop])
    return [TextCall("", None, body, problem=problem)], after


def _find_results(text: str) -> Iterator[FoundResult]:
    for begin, body, end in blocks(text, _RESULT_BEGIN, _RESULT_TAG, _RESULT_END):
        yield FoundResult(begin.start(), end, _MARKS.unescape(body_in(body)))


FAMILY = TextFamily(
    name="hermes",
    write_calls=_write_calls,
    write_results=_write_results,
    call_begin=rf"<{_CALL}\s*>",
    take_calls=_take_calls,
    find_results=_find_results,
    marks=_MARKS,
)
