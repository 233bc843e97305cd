"""The forms of a call between its tags: text, JSON, or one tag for each parameter.

Each form restores the text of the arguments exactly. A malformed body raises `InvalidRecordError`
with the reason.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from tooltrail.records import InvalidRecordError, read_json
from tooltrail.wire._clean_text import compact
from tooltrail.wire.text_fallback.markup import Escaping, tags

_STRING = r'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"'
_NUMBER = r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][-+]?[0-9]++)?+"
_TOKEN = re.compile(
    rf"\s*+(?:{_STRING}|{_NUMBER}|true|false|null|NaN|-?Infinity|(?P<mark>[\]\[{{}}:,]))"
)
_MEMBER = re.compile(rf"\s*+({_STRING})\s*+:\s*+")
_BEHIND_MEMBER = re.compile(r"\s*+(?:,|(?P<end>\}\s*+\Z))")
_CLOSING = {"{": "}", "[": "]"}
_SPELLED = re.compile("[\x7f\x85\u2028\u2029\ud800-\udfff]")
"""Characters that end a line for some readers, or that cannot be sent."""

_PARAMETER_NAME = r"[a-zA-Z_][a-zA-Z0-9_.-]*"
_PARAMETER = re.compile(rf'\s*<({_PARAMETER_NAME})(\s+format="json")?>')


@dataclass(frozen=True, slots=True)
class Body:
    """The form of the text between the tags of a call.

    Attributes:
        write: returns the body, and whether the call needs the attribute `format="json"`; accepts
            the tool's name, the arguments, and the tags that the body must not contain.
        read: returns the name and the arguments; accepts the body, the values in the call's tags,
            and the tags that the body does not contain.
        is_text: whether the body may be any text; then the next start or end tag of a call ends it.
    """

    write: Callable[[str, str, tuple[str, ...]], tuple[str, bool]]
    read: Callable[[str, Mapping[str, str], tuple[str, ...]], tuple[str, str]]
    is_text: bool = False


def _write_text(_: str, arguments: str, marks: tuple[str, ...]) -> tuple[str, bool]:
    return tags(*marks).escape(arguments), False


def _read_text(body: str, said: Mapping[str, str], marks: tuple[str, ...]) -> tuple[str, str]:
    return said.get("name", ""), tags(*marks).unescape(body)


def _write_json(name: str, arguments: str, marks: tuple[str, ...]) -> tuple[str, bool]:
    escaping = tags(*marks)
    spelled = _spelled_arguments(arguments, escaping)
    return f'{{"name": {_json_string(name, escaping)}, "arguments": {spelled}}}', False


def _spelled_arguments(arguments: str, escaping: Escaping) -> str:
    """Arguments as a JSON member: unchanged if they are an object without tags, else a string."""
    try:
        is_object = isinstance(read_json(arguments), dict)
    except InvalidRecordError:
        is_object = False
    if is_object and arguments == arguments.strip() and not escaping.has_marks(arguments):
        return arguments
    return _json_string(arguments, escaping)


def _json_string(text: str, escaping: Escaping) -> str:
    spelled = json.dumps(text, ensure_ascii=False)
    return escaping.respell(_SPELLED.sub(lambda found: f"\\u{ord(found[0]):04x}", spelled))


def _read_json(body: str, _: Mapping[str, str], __: tuple[str, ...]) -> tuple[str, str]:
    members = _members(body)
    name, arguments = members.get("name", ""), members.get("arguments")
    if not name.startswith('"') or arguments is None:
        raise InvalidRecordError("it has no name or no arguments")
    is_text = arguments.startswith('"')
    return json.loads(name), json.loads(arguments) if is_text else arguments


def _members(body: str) -> dict[str, str]:
    """The members of a JSON object by name, each as its unchanged JSON text."""
    members: dict[str, str] = {}
    place = 1 if body.startswith("{") else len(body)
    while member := _MEMBER.match(body, place):
        end = end_of_json(body, member.end())
        behind = None if end is None else _BEHIND_MEMBER.match(body, end)
        key = json.loads(member[1])
        if behind is None or key in members:
            break
        members[key] = body[member.end() : end]
        if behind["end"]:
            return members
        place = behind.end()
    raise InvalidRecordError("it is not a JSON object")


def end_of_json(text: str, place: int) -> int | None:
    """The end of the JSON value that begins at `place`, at any depth; None if there is none.

    Only tokens and brackets are checked. Python's decoder fails on deeply nested values, and
    counts the lines of the complete text for each invalid value.
    """
    closing: list[str] = []
    while token := _TOKEN.match(text, place):
        mark, place = token["mark"] or "", token.end()
        if mark in _CLOSING:
            closing.append(_CLOSING[mark])
        elif mark and (not closing or (mark in "}]" and closing.pop() != mark)):
            return None
        if not closing:
            return place
    return None


def _write_tags(_: str, arguments: str, marks: tuple[str, ...]) -> tuple[str, bool]:
    try:
        value = read_json(arguments)
    except InvalidRecordError:
        value = None
    if isinstance(value, dict) and compact(value) == arguments:
        names_are_tags = all(re.fullmatch(_PARAMETER_NAME, name) for name in value)
        if names_are_tags:
            return "\n".join(_tagged(name, one, marks) for name, one in value.items()), False
    return tags(*marks).escape(arguments), True


def _tagged(name: str, value: JsonValue, marks: tuple[str, ...]) -> str:
    shown, text = ("", value) if isinstance(value, str) else (' format="json"', compact(value))
    return f"<{name}{shown}>{tags(*marks, name).escape(text)}</{name}>"


def _read_tags(body: str, said: Mapping[str, str], marks: tuple[str, ...]) -> tuple[str, str]:
    if said.get("format") == "json":
        return said["name"], tags(*marks).unescape(body)
    return said["name"], compact(dict(_parameters(body, marks)))


def _parameters(body: str, marks: tuple[str, ...]) -> Iterator[tuple[str, JsonValue]]:
    body, place, seen = body.rstrip(), 0, set[str]()
    while place < len(body):
        begin = _PARAMETER.match(body, place)
        end = -1 if begin is None else body.find(f"</{begin[1]}>", begin.end())
        if begin is None or end < 0 or begin[1] in seen:
            raise InvalidRecordError("its parameters are not one tag each")
        seen.add(begin[1])
        text = tags(*marks, begin[1]).unescape(body[begin.end() : end])
        yield begin[1], read_json(text) if begin[2] else text
        place = end + len(f"</{begin[1]}>")


TEXT = Body(_write_text, _read_text, is_text=True)
"""Only the arguments; the name is in the call's tags."""

JSON = Body(_write_json, _read_json)
"""An object with `name` and `arguments`."""

TAGS = Body(_write_tags, _read_tags)
"""A tag for each parameter.

Such tags have no types: a parameter is read as text. So that calls are restored exactly, a value
other than text is JSON in a tag with `format="json"`, which is our addition. If the parameters
cannot be tags, all of them are one JSON text.
"""
