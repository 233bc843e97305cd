"""The short form of arguments that a list of calls shows."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final, cast

from tooltrail.records._text_cuts import shorten
from tooltrail.records.plain_text import storable

ARGUMENTS_PREVIEW_CHARS: Final = 240
"""Characters of the arguments that a list shows."""

PREVIEWED_CHARS: Final = 16 * ARGUMENTS_PREVIEW_CHARS
"""Characters of the arguments that are read to make a preview."""

_MAIN: Final = (
    *("command", "cmd", "argv", "script", "code", "file_path", "filePath", "path", "filename"),
    *("notebook_path", "pattern", "query", "url", "prompt", "input", "text", "description"),
)
"""The members that say what a call does, in the order in which they are looked for."""

_CUT: Final = re.compile(r'"({})"\s*:\s*"((?:[^"\\]|\\.)*)'.format("|".join(_MAIN)), re.DOTALL)
"""Such a member of an object that is not complete. Its text may be cut."""


def preview_arguments(text: str) -> str:
    """Arguments, or their title, on one line of at most `ARGUMENTS_PREVIEW_CHARS` characters.

    Of an object, the member that says what the call does: `make`, not `{"command": "make"}`.
    """
    # Arguments can hold a complete file; no relevant run of white space is this long.
    begin = text[:PREVIEWED_CHARS]
    line = " ".join((_main_of(begin) or begin).split())
    return shorten(storable(line), ARGUMENTS_PREVIEW_CHARS)


def _main_of(text: str) -> str | None:
    """The main member of an object, as text; None if there is none."""
    if not text.startswith("{"):
        return None
    try:
        members: Any = json.loads(text)
    except (ValueError, RecursionError):
        found = {name: value.replace(r"\n", " ") for name, value in _CUT.findall(text)}
        return _first_of(found)
    return _first_of(cast("Mapping[str, Any]", members))


def _first_of(members: Mapping[str, Any]) -> str | None:
    for name in _MAIN:
        value = members.get(name)
        if isinstance(value, list):
            import shlex  # noqa: PLC0415  few calls have a list

            words: list[Any] = value
            value = shlex.join(map(str, words))
        if isinstance(value, str) and value.strip():
            return value
    return None
