"""The short form of arguments that a list of calls shows."""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, cast

from tooltrail.records._text_cuts import shorten
from tooltrail.records.plain_text import storable

ARGUMENTS_PREVIEW_CHARS: Final = 240
"""Characters of the arguments that a list shows."""

PREVIEWED_CHARS: Final = 16 * ARGUMENTS_PREVIEW_CHARS
"""Characters of the arguments that are read to make a preview."""

_ACTIONS: Final = (
    *("command", "cmd", "argv", "script", "code", "pattern", "query", "url", "prompt", "input"),
)
_PATHS: Final = ("file_path", "filePath", "path", "filename", "notebook_path")
_OTHERS: Final = ("text", "description")
"""The members that say what a call does: an action, its file, or else a text."""

_BETWEEN: Final = re.compile(r"[\s,:]*")
_decoder: Final = json.JSONDecoder()


def preview_arguments(text: str) -> str:
    """Arguments, or their title, on one line of at most `ARGUMENTS_PREVIEW_CHARS` characters.

    Of an object, the members that say what the call does: `make`, not `{"command": "make"}`.
    """
    # Arguments can hold a complete file; no relevant run of white space is this long.
    begin = text[:PREVIEWED_CHARS]
    line = " ".join((_action_of(begin) or begin).split())
    return shorten(storable(line), ARGUMENTS_PREVIEW_CHARS)


def _action_of(text: str) -> str:
    """What the members of an object say that the call does; empty if they do not say it."""
    if not text.startswith("{"):
        return ""
    members = _members_of(text)
    found = [_first_of(members, names) for names in (_ACTIONS, _PATHS)]
    return " ".join(filter(None, found)) or _first_of(members, _OTHERS)


def _members_of(text: str) -> dict[str, Any]:
    """The members of an object, which may be cut. The last one may be a cut text."""
    with suppress(ValueError, RecursionError):  # most texts are complete objects
        return cast("dict[str, Any]", json.loads(text))
    members: dict[str, Any] = {}
    at, name, is_value = 1, "", False
    try:
        while True:
            at = _skip(text, at)
            value, at = _decoder.raw_decode(text, at)
            if is_value:
                members[name] = value
            else:
                name = str(value)
            is_value = not is_value
    except (ValueError, RecursionError):
        if is_value and text[at : at + 1] == '"':
            members[name] = text[at + 1 :].replace(r"\n", " ")
    return members


def _skip(text: str, at: int) -> int:
    found = _BETWEEN.match(text, at)
    return at if found is None else found.end()


def _first_of(members: Mapping[str, Any], names: tuple[str, ...]) -> str:
    for name in names:
        value = members.get(name)
        if isinstance(value, list):
            import shlex  # noqa: PLC0415  few calls have a list

            value = shlex.join(map(str, value))  # pyright: ignore[reportUnknownArgumentType]
        if isinstance(value, str) and value.strip():
            return value
    return ""
