"""The family `tool_result`: blocks between tags with the id, the name and the status.

It is of no family of models, and understood by those that read XML-like text:
`<tool_call id="a" name="now">` around the arguments, and
`<tool_result id="a" name="now" status="ok">` around the text, each on lines of their own.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import get_args

from tooltrail.records import ResultStatus
from tooltrail.wire.text_fallback.family import (
    FoundResult,
    TextCall,
    TextFamily,
    TextResult,
)
from tooltrail.wire.text_fallback.markup import (
    blocks,
    body_in,
    escape_attribute,
    tags,
    unescape_attribute,
)

_CALL, _RESULT = "tool_call", "tool_result"
_MARKS = tags(_CALL, _RESULT)
# It begins where white space does: else what has only that would be gone through from each of it.
_ATTRIBUTE = re.compile(r'(?<!\s)\s++([a-z]++)="([^"<>]*+)"')
_CALL_TAG = re.compile(rf"</?{_CALL}\b", re.IGNORECASE)
_CALL_END = re.compile(rf"</{_CALL}\s*>", re.IGNORECASE)
_RESULT_BEGIN = re.compile(rf"^<{_RESULT}\b(?P<attributes>[^<>]*)>", re.IGNORECASE | re.MULTILINE)
_RESULT_TAG = re.compile(rf"</?{_RESULT}", re.IGNORECASE)
_RESULT_END = re.compile(rf"</{_RESULT}\s*>", re.IGNORECASE)
_STATUSES: Mapping[str, ResultStatus] = {one: one for one in get_args(ResultStatus)}


def _write_calls(calls: Sequence[TextCall]) -> str:
    return "\n\n".join(
        _tagged(
            _CALL,
            {
                "id": call.call_id,
                "name": call.tool_name,
                "kind": None if call.kind == "function" else call.kind,
            },
            call.arguments,
        )
        for call in calls
    )


def _write_results(results: Sequence[TextResult]) -> str:
    return "\n\n".join(
        _tagged(
            _RESULT,
            {"id": result.call_id, "name": result.tool_name, "status": result.status},
            result.text,
        )
        for result in results
    )


def _tagged(tag: str, attributes: Mapping[str, str | None], text: str) -> str:
    spelled = "".join(
        f' {name}="{escape_attribute(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    return f"<{tag}{spelled}>\n{_MARKS.escape(text)}\n</{tag}>"


def _take_calls(text: str, begin: re.Match[str]) -> tuple[list[TextCall], int]:
    attributes = _attributes(begin["attributes"])
    following = _CALL_TAG.search(text, begin.end())
    end = None if following is None else _CALL_END.match(text, following.start())
    if end is None:
        # An answer that was cut off, or another call: a block cannot hold one.
        stop = len(text) if following is None else following.start()
        body, problem = text[begin.end() : stop], "it has no end"
    else:
        stop, body, problem = end.end(), text[begin.end() : end.start()], None
    if not attributes.get("name"):
        problem = problem or "it has no name"
    call = TextCall(
        tool_name=attributes.get("name", ""),
        call_id=attributes.get("id"),
        arguments=_MARKS.unescape(body_in(body)),
        kind="custom" if attributes.get("kind") == "custom" else "function",
        problem=problem,
    )
    return [call], stop


def _find_results(text: str) -> Iterator[FoundResult]:
    for begin, body, end in blocks(text, _RESULT_BEGIN, _RESULT_TAG, _RESULT_END):
        attributes = _attributes(begin["attributes"])
        yield FoundResult(
            begin.start(),
            end,
            _MARKS.unescape(body_in(body)),
            call_id=attributes.get("id"),
            tool_name=attributes.get("name"),
            status=_STATUSES.get(attributes.get("status", ""), "unknown"),
        )


def _attributes(spelled: str) -> dict[str, str]:
    found = _ATTRIBUTE.findall(spelled)
    return {name.lower(): unescape_attribute(value) for name, value in found}


FAMILY = TextFamily(
    name="tool_result",
    write_calls=_write_calls,
    write_results=_write_results,
    call_begin=rf"<{_CALL}\b(?P<attributes>[^<>]*)>",
    take_calls=_take_calls,
    find_results=_find_results,
    marks=_MARKS,
    tells_ids=True,
    tells_kinds=True,
    tells_errors=True,
    tells_status=True,
)
