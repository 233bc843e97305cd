"""JSON in the middle of text: where it ends, and what its members are, spelled as they came.

Python's own decoder is not asked: it counts the lines of the whole text for each value that is
none, and gives up where values are nested deep.
"""

import json
import re

from tooltrail.records import InvalidRecordError, read_json
from tooltrail.wire.text_fallback.markup import Escaping

_WHITE = re.compile(r"[ \t\r\n]*")
_STRING = r'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"'
_NUMBER = r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][-+]?[0-9]++)?+"
_TOKEN = re.compile(
    rf"[ \t\r\n]*+(?:(?P<string>{_STRING})|"
    rf"(?P<plain>{_NUMBER}|true|false|null|NaN|-?Infinity)|(?P<mark>[\]\[{{}}:,]))"
)
_CLOSING = {"{": "}", "[": "]"}
_SPELLED = re.compile("[\x7f\x85\u2028\u2029\ud800-\udfff]")


def after_white(text: str, begin: int) -> int:
    """Where the first character stands that is no white space of JSON."""
    found = _WHITE.match(text, begin)
    return begin if found is None else found.end()


def end_of_value(text: str, begin: int) -> int:
    """Where the JSON value that begins here ends, however deep it is nested.

    Raises:
        InvalidRecordError: no JSON value begins here.
    """
    open_marks: list[str] = []
    expected, place = "value", begin
    while True:
        token = _TOKEN.match(text, place)
        if token is None:
            raise _no_json(f"a {expected}", after_white(text, place))
        following = _following(token, expected, open_marks)
        if following is None:
            raise _no_json(f"a {expected}", token.start(token.lastgroup or 0))
        expected, place = following, token.end()
        if expected == "comma" and not open_marks:
            return place


def _following(token: re.Match[str], expected: str, open_marks: list[str]) -> str | None:
    """What is to follow a token; None where it is not the one that is expected.

    `value or ]` and `key or }` are expected behind the beginning of an array or an object.
    """
    mark = token["mark"]
    if mark is None:
        is_key = expected.startswith("key") and token["string"] is not None
        return "colon" if is_key else "comma" if expected.startswith("value") else None
    match mark, expected:
        case "{" | "[", "value" | "value or ]":
            open_marks.append(mark)
            return "key or }" if mark == "{" else "value or ]"
        case ":", "colon":
            return "value"
        case ",", "comma":
            return "key" if open_marks[-1] == "{" else "value"
        case ("}", "comma" | "key or }") | ("]", "comma" | "value or ]"):
            return "comma" if _CLOSING[open_marks.pop()] == mark else None
        case _:
            return None


def members_of(text: str, begin: int) -> tuple[dict[str, str], int]:
    """The members of the JSON object that begins here, each as it is spelled, and where it ends.

    Raises:
        InvalidRecordError: no JSON object begins here, or a key stands in it twice.
    """
    members: dict[str, str] = {}
    if not text.startswith("{", begin):
        raise _no_json("an object", begin)
    place = after_white(text, begin + 1)
    if text.startswith("}", place):
        return members, place + 1
    while True:
        key, place = _key(text, place)
        end = end_of_value(text, place)
        if key in members:
            raise InvalidRecordError("a key stands twice in an object")
        members[key] = text[place:end]
        place = after_white(text, end)
        if text.startswith("}", place):
            return members, place + 1
        if not text.startswith(",", place):
            raise _no_json("',' or '}'", place)
        place = after_white(text, place + 1)


def _key(text: str, begin: int) -> tuple[str, int]:
    if not text.startswith('"', begin):
        raise _no_json("a key", begin)
    end = end_of_value(text, begin)
    place = after_white(text, end)
    if not text.startswith(":", place):
        raise _no_json("':'", place)
    return text_of(text[begin:end]) or "", after_white(text, place + 1)


def _no_json(expected: str, place: int) -> InvalidRecordError:
    return InvalidRecordError(f"expecting {expected} at {place}")


def text_of(spelled: str | None) -> str | None:
    """The text that a spelled value is; None when it is another value, or missing."""
    if spelled is None or not spelled.startswith('"'):
        return None
    value = json.loads(spelled)
    return value if isinstance(value, str) else None


def spelled_text(text: str, marks: Escaping) -> str:
    """A text as JSON on one line, which can be sent, without any of the marks in it."""
    spelled = json.dumps(text, ensure_ascii=False)
    return marks.respelled(_SPELLED.sub(lambda found: f"\\u{ord(found[0]):04x}", spelled))


def spelled_arguments(arguments: str, marks: Escaping) -> str:
    """Arguments as a member of an object: themselves if they are one, else their text.

    So reading gives the same text again: of a value that is a text, that text; of any other, its
    spelling.
    """
    try:
        is_object = isinstance(read_json(arguments), dict)
    except InvalidRecordError:
        is_object = False
    if is_object and arguments == arguments.strip(" \t\r\n") and not marks.marks(arguments):
        return arguments
    return spelled_text(arguments, marks)


def read_arguments(spelled: str) -> str:
    """The text of arguments that `spelled_arguments` spelled."""
    text = text_of(spelled)
    return spelled if text is None else text
