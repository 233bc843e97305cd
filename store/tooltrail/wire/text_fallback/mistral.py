"""The family `mistral`: models of Mistral with the tokenizer of version 3.

Source: mistralai/mistral-common, `tokens/tokenizers/instruct.py` (`InstructTokenizerV3`). The calls
of a batch are one array behind `[TOOL_CALLS]`, each with `name`, `arguments` and `id`; a result is
JSON with `content` and `call_id` between `[TOOL_RESULTS]` and `[/TOOL_RESULTS]`. The service takes
ids of nine letters and digits alone; in text any is written. Later tokenizers spell calls with
`[ARGS]`; that is not read.
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
    end_of_value,
    members_of,
    read_arguments,
    spelled_arguments,
    spelled_text,
    text_of,
)
from tooltrail.wire.text_fallback.markup import Escaping

_MARKS = Escaping("[", r"/?TOOL_(?:CALLS|RESULTS)\]")
_RESULT_BEGIN = re.compile(r"^\[TOOL_RESULTS\]", re.MULTILINE)
_RESULT_END = "[/TOOL_RESULTS]"


def _write_calls(calls: Sequence[TextCall]) -> str:
    return f"[TOOL_CALLS][{', '.join(map(_write_call, calls))}]"


def _write_call(call: TextCall) -> str:
    name = spelled_text(call.tool_name, _MARKS)
    arguments = spelled_arguments(call.arguments, _MARKS)
    call_id = "" if call.call_id is None else f', "id": {spelled_text(call.call_id, _MARKS)}'
    return f'{{"name": {name}, "arguments": {arguments}{call_id}}}'


def _write_results(results: Sequence[TextResult]) -> str:
    return "\n\n".join(map(_write_result, results))


def _write_result(result: TextResult) -> str:
    content = spelled_text(result.text, _MARKS)
    call_id = result.call_id
    named = "" if call_id is None else f', "call_id": {spelled_text(call_id, _MARKS)}'
    return f'[TOOL_RESULTS]{{"content": {content}{named}}}{_RESULT_END}'


def _take_calls(text: str, begin: re.Match[str]) -> tuple[list[TextCall], int]:
    start = after_white(text, begin.end())
    try:
        return _array(text, start)
    except InvalidRecordError as error:
        # Nobody knows whether what follows is of the calls, or how many there were to be.
        return [TextCall("", None, text[start:], problem=str(error))], len(text)


def _array(text: str, start: int) -> tuple[list[TextCall], int]:
    if not text.startswith("[", start):
        raise InvalidRecordError("it is no array")
    calls: list[TextCall] = []
    place = after_white(text, start + 1)
    while not text.startswith("]", place):
        if calls:
            if not text.startswith(",", place):
                raise InvalidRecordError("the array has no end")
            place = after_white(text, place + 1)
        members, end = members_of(text, place)
        calls.append(_read_call(members, text[place:end]))
        place = after_white(text, end)
    return calls, place + 1


def _read_call(members: dict[str, str], spelled: str) -> TextCall:
    name, arguments = text_of(members.get("name")), members.get("arguments")
    call_id = text_of(members.get("id"))
    if not name or arguments is None:
        return TextCall("", call_id, spelled, problem="it has no name or no arguments")
    return TextCall(name, call_id, read_arguments(arguments))


def _find_results(text: str) -> Iterator[FoundResult]:
    place = 0
    while begin := _RESULT_BEGIN.search(text, place):
        place = begin.end()
        try:
            start = after_white(text, place)
            members, _ = members_of(text, start)
            end = after_white(text, end_of_value(text, start))
        except InvalidRecordError:
            continue
        content = members.get("content")
        if content is None or not text.startswith(_RESULT_END, end):
            continue
        place = end + len(_RESULT_END)
        call_id = text_of(members.get("call_id"))
        yield FoundResult(begin.start(), place, read_arguments(content), call_id=call_id)


FAMILY = TextFamily(
    name="mistral",
    write_calls=_write_calls,
    write_results=_write_results,
    call_begin=r"\[TOOL_CALLS\]",
    take_calls=_take_calls,
    find_results=_find_results,
    marks=_MARKS,
    tells_ids=True,
)
