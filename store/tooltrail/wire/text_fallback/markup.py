"""Escaping of text between tags, so that no output can end its own block or begin another.

A backslash goes between `<` and the tag, one more where there are some already; so the text stays
readable, and taking one backslash away gives it back exactly. Letters of either case are meant,
since models read tags loosely.
"""

import re
from functools import cache
from html import unescape

_ATTRIBUTE = str.maketrans(
    {
        "&": "&amp;",
        "<": "&lt;",
        ">": "&gt;",
        '"': "&quot;",
        **{chr(code): f"&#{code};" for code in (9, 10, 13)},
        **dict.fromkeys(map(chr, [*range(9), 11, 12, *range(14, 32), 127]), "\ufffd"),
    }
)


def escape_body(text: str, tag: str) -> str:
    """The text without the beginning or the end of a block of this tag."""
    return _plain(tag).sub(r"<\\\1\2", text)


def unescape_body(text: str, tag: str) -> str:
    """The text that was escaped."""
    return _escaped(tag).sub(r"<\1\2", text)


def escape_attribute(text: str) -> str:
    """The value of an attribute, to stand between double quotes."""
    return text.translate(_ATTRIBUTE)


def unescape_attribute(text: str) -> str:
    """The value that was escaped."""
    return unescape(text)


@cache
def _plain(tag: str) -> re.Pattern[str]:
    return re.compile(rf"<(\\*)(/?{re.escape(tag)})", re.IGNORECASE)


@cache
def _escaped(tag: str) -> re.Pattern[str]:
    return re.compile(rf"<\\(\\*)(/?{re.escape(tag)})", re.IGNORECASE)
