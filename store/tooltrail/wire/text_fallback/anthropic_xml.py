"""The family `anthropic-xml`: Claude before it had tools of its own, in the Messages API.

Source: docs.anthropic.com, "Legacy tool use" (`/claude/docs/legacy-tool-use`), and the system
prompt that it gives. All calls stand in one `<function_calls>`, each an `<invoke>` with
`<tool_name>` and, in `<parameters>`, a tag for each parameter; all results in one
`<function_results>`, each a `<result>` with `<tool_name>` and `<stdout>`, or an `<error>`. There
are no ids, so names and order say what belongs together.

The format has no types: a parameter in a tag is read as text. So that a call reads back as it was,
what is no text is JSON under a tag with `format="json"`, which is ours; and all of the parameters
are, where they cannot be tags.
"""

import re
from collections.abc import Iterator, Sequence

from pydantic import JsonValue

from tooltrail.records import InvalidRecordError, read_json
from tooltrail.wire._clean_text import compact
from tooltrail.wire.text_fallback.family import (
    FoundResult,
    TextCall,
    TextFamily,
    TextResult,
)
from tooltrail.wire.text_fallback.json_text import after_white
from tooltrail.wire.text_fallback.markup import (
    Escaping,
    body_in,
    escape_attribute,
    tags,
    unescape_attribute,
)

_CALLS, _RESULTS = "function_calls", "function_results"
_MARKS = tags(_CALLS, _RESULTS)
_IN_RESULTS = tags(_CALLS, _RESULTS, "stdout", "error")
_IN_JSON = tags(_CALLS, _RESULTS, "parameters")
_AS_JSON = ' format="json"'

_PARAMETER_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.-]*")
_INVOKE = re.compile(
    r"<invoke\s*>\s*<tool_name\s*>([^<>]*)</tool_name\s*>\s*"
    r"<parameters(\s+format=\"json\")?\s*>",
    re.IGNORECASE,
)
_PARAMETERS_END = re.compile(r"</parameters\s*>\s*</invoke\s*>", re.IGNORECASE)
_CALLS_END = re.compile(rf"</{_CALLS}\s*>", re.IGNORECASE)
_PARAMETER = re.compile(r"<([a-zA-Z_][a-zA-Z0-9_.-]*)(\s+format=\"json\")?>")

_RESULTS_BEGIN = re.compile(rf"^<{_RESULTS}\s*>", re.IGNORECASE | re.MULTILINE)
_RESULTS_END = re.compile(rf"\s*</{_RESULTS}\s*>", re.IGNORECASE)
_RESULT_BEGIN = re.compile(
    r"\s*<(?:result\s*>\s*<tool_name\s*>([^<>]*)</tool_name\s*>\s*<(stdout)|(error))\s*>",
    re.IGNORECASE,
)
_RESULT_END = {
    "stdout": re.compile(r"</stdout\s*>\s*</result\s*>", re.IGNORECASE),
    "error": re.compile(r"</error\s*>", re.IGNORECASE),
}
_RESULT_MARK = re.compile(rf"</?(?:{_CALLS}|{_RESULTS}|stdout|error)", re.IGNORECASE)


def _write_calls(calls: Sequence[TextCall]) -> str:
    invoked = "\n".join(map(_write_call, calls))
    return f"<{_CALLS}>\n{invoked}\n</{_CALLS}>"


def _write_call(call: TextCall) -> str:
    parameters = _as_tags(call.arguments)
    if parameters is None:
        shown, parameters = _AS_JSON, _IN_JSON.escape(call.arguments)
    else:
        shown = ""
    return (
        f"<invoke>\n<tool_name>{escape_attribute(call.tool_name)}</tool_name>\n"
        f"<parameters{shown}>\n{parameters}\n</parameters>\n</invoke>"
    )


def _as_tags(arguments: str) -> str | None:
    """A tag for each parameter; None where reading them would not give the same arguments."""
    try:
        value = read_json(arguments)
    except InvalidRecordError:
        return None
    if not isinstance(value, dict) or compact(value) != arguments:
        return None
    if not all(map(_PARAMETER_NAME.fullmatch, value)):
        return None
    return "\n".join(_as_tag(name, member) for name, member in value.items())


def _as_tag(name: str, value: JsonValue) -> str:
    shown, text = ("", value) if isinstance(value, str) else (_AS_JSON, compact(value))
    return f"<{name}{shown}>{_in_parameter(name).escape(text)}</{name}>"


def _in_parameter(name: str) -> Escaping:
    return tags(_CALLS, _RESULTS, "parameters", name)


def _take_calls(text: str, begin: re.Match[str]) -> tuple[list[TextCall], int]:
    calls: list[TextCall] = []
    place = after_white(text, begin.end())
    while invoke := _INVOKE.match(text, place):
        end = _PARAMETERS_END.search(text, invoke.end())
        if end is None:
            break
        spelled = text[invoke.end() : end.start()]
        calls.append(_read_call(_name(invoke[1]), spelled, invoke[2]))
        place = after_white(text, end.end())
    end_of_calls = _CALLS_END.match(text, place)
    if calls and (end_of_calls is not None or place == len(text)):
        # The end is the stop sequence of such requests, so it may not be there.
        return calls, len(text) if end_of_calls is None else end_of_calls.end()
    stop = _CALLS_END.search(text, place)
    rest = text[place:] if stop is None else text[place : stop.start()]
    problem = "it has no end" if stop is None else "it is no invoke"
    calls.append(TextCall("", None, body_in(rest), problem=problem))
    return calls, len(text) if stop is None else stop.end()


def _name(spelled: str) -> str:
    return unescape_attribute(spelled.strip("\r\n"))


def _read_call(name: str, spelled: str, is_json: str | None) -> TextCall:
    if not name:
        return TextCall("", None, body_in(spelled), problem="it has no name")
    if is_json:
        return TextCall(name, None, _IN_JSON.unescape(body_in(spelled)))
    try:
        members = dict(_read_parameters(spelled))
    except InvalidRecordError as error:
        return TextCall(name, None, body_in(spelled), problem=str(error))
    return TextCall(name, None, compact(members))


def _read_parameters(spelled: str) -> Iterator[tuple[str, JsonValue]]:
    place = after_white(spelled, 0)
    seen: set[str] = set()
    while place < len(spelled):
        begin = _PARAMETER.match(spelled, place)
        end = -1 if begin is None else spelled.find(f"</{begin[1]}>", begin.end())
        if begin is None or end < 0 or begin[1] in seen:
            raise InvalidRecordError("its parameters are not one tag each")
        seen.add(begin[1])
        text = _in_parameter(begin[1]).unescape(spelled[begin.end() : end])
        yield begin[1], read_json(text) if begin[2] else text
        place = after_white(spelled, end + len(begin[1]) + 3)


def _write_results(results: Sequence[TextResult]) -> str:
    note = "\n".join(map(_write_result, results))
    return f"<{_RESULTS}>\n{note}\n</{_RESULTS}>"


def _write_result(result: TextResult) -> str:
    text = _IN_RESULTS.escape(result.text)
    if result.status not in {"ok", "unknown"}:
        return f"<error>\n{text}\n</error>"
    name = escape_attribute(result.tool_name)
    return f"<result>\n<tool_name>{name}</tool_name>\n<stdout>\n{text}\n</stdout>\n</result>"


def _find_results(text: str) -> Iterator[FoundResult]:
    for begin in _RESULTS_BEGIN.finditer(text):
        found: list[tuple[str | None, str, str]] = []
        place = begin.end()
        while inner := _RESULT_BEGIN.match(text, place):
            mark = _RESULT_MARK.search(text, inner.end())
            kind = (inner[2] or inner[3]).lower()
            end = None if mark is None else _RESULT_END[kind].match(text, mark.start())
            if mark is None or end is None:
                break
            said = _IN_RESULTS.unescape(body_in(text[inner.end() : mark.start()]))
            found.append((inner[1], kind, said))
            place = end.end()
        end_of_results = _RESULTS_END.match(text, place)
        if end_of_results is None:
            continue
        for number, (name, kind, said) in enumerate(found):
            # They stand in one block, which is cut out with the first of them.
            first = begin.start() if number == 0 else end_of_results.end()
            yield FoundResult(
                first,
                end_of_results.end(),
                said,
                tool_name=None if name is None else _name(name),
                status="error" if kind == "error" else "ok",
            )


FAMILY = TextFamily(
    name="anthropic-xml",
    write_calls=_write_calls,
    write_results=_write_results,
    call_begin=rf"<{_CALLS}\s*>",
    take_calls=_take_calls,
    find_results=_find_results,
    marks=_MARKS,
    tells_errors=True,
)
