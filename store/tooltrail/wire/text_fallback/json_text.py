"""JSON in the middle of text: where it ends, and what its members are, spelled as they came."""

import json
import re

from tooltrail.records import InvalidRecordError, read_json
from tooltrail.wire.text_fallback.markup import Escaping

_WHITE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()
_SPELLED = re.compile("[\x7f\x85\u2028\u2029\ud800-\udfff]")


def after_white(text: str, begin: int) -> int:
    """Where the first character stands that is no white space of JSON."""
    found = _WHITE.match(text, begin)
    return begin if found is None else found.end()


def end_of_value(text: str, begin: int) -> int:
    """Where the JSON value that begins here ends.

    Raises:
        InvalidRecordError: no JSON value begins here.
    """
    try:
        _, end = _DECODER.raw_decode(text, begin)
    except RecursionError as error:
        raise InvalidRecordError("nested too deep") from error
    except ValueError as error:
        raise InvalidRecordError(str(error)) from error
    return end


def members_of(text: str, begin: int) -> tuple[dict[str, str], int]:
    """The members of the JSON object that begins here, each as it is spelled, and where it ends.

    Raises:
        InvalidRecordError: no JSON object begins here, or a key stands in it twice.
    """
    members: dict[str, str] = {}
    if not text.startswith("{", begin):
        raise InvalidRecordError(f"no JSON object begins at {begin}")
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
            raise InvalidRecordError(f"expecting ',' or '}}' at {place}")
        place = after_white(text, place + 1)


def _key(text: str, begin: int) -> tuple[str, int]:
    if not text.startswith('"', begin):
        raise InvalidRecordError(f"expecting a key at {begin}")
    end = end_of_value(text, begin)
    place = after_white(text, end)
    if not text.startswith(":", place):
        raise InvalidRecordError(f"expecting ':' at {place}")
    return text_of(text[begin:end]) or "", after_white(text, place + 1)


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
