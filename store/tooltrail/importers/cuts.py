"""Outputs that an agent cut before it wrote them.

The agent puts a marker where it cut: at the end, or in the middle with a part of the same length on
both sides. A text that only quotes such a marker has it elsewhere, and is complete.
"""

import re
from collections.abc import Mapping
from typing import Final

from tooltrail.importers.parts import encoded

_IN_THE_MIDDLE: Final = re.compile(
    r"…(\d{1,15}) chars truncated…|\n\n\.\.\. \[(\d{1,15}) characters truncated\] \.\.\.\n\n"
)
_AT_THE_END: Final = re.compile(r"\n\n\.\.\. \[\d+ lines truncated\] \.\.\.\s*\Z")

_MOST_UNEQUAL: Final = 16
"""How much longer one part may be: a cut is between characters, and a status may come first."""


def streams_of(texts: Mapping[str, str]) -> tuple[dict[str, bytes], dict[str, int]]:
    """The bytes of each text, and the size before the cut of each text that was cut.

    Args:
        texts: texts by role.
    """
    sizes = {role: size_before_cut(text) for role, text in texts.items()}
    streams = {role: encoded(text) for role, text in texts.items()}
    return streams, {role: size for role, size in sizes.items() if size is not None}


def size_before_cut(text: str) -> int | None:
    """The bytes of an output before it was cut, at least; 0 if unknown, None if it was not cut.

    A marker counts characters, each of which has at least one byte.
    """
    if " truncated" not in text:
        return None
    for found in _IN_THE_MIDDLE.finditer(text):
        if _is_in_the_middle(text[: found.start()], text[found.end() :]):
            marker = len(encoded(found[0]))
            return len(encoded(text)) - marker + int(found[1] or found[2])
    return 0 if _AT_THE_END.search(text) else None


def _is_in_the_middle(before: str, after: str) -> bool:
    """Whether two parts are equally long in bytes (Codex) or in UTF-16 units (Claude Code)."""
    return any(
        abs(len(before.encode(name, "surrogatepass")) - len(after.encode(name, "surrogatepass")))
        <= most
        for name, most in (("utf-8", _MOST_UNEQUAL), ("utf-16-le", 2 * _MOST_UNEQUAL))
    )
