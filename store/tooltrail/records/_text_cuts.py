"""Finds where a text may be cut: between user-perceived characters, and outside escape sequences.

The rules are the part of Unicode Annex 29 that matters for a cut: combining marks, joiners,
variation selectors, emoji modifiers and tags, flag pairs, Hangul syllables, CR LF.
"""

import re
import unicodedata
from typing import Literal

ACTING = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
"""Characters, besides ASCII controls, that move a cursor, end a line or change text direction.

Receipts must escape all of them, or a tool could make one line of a receipt look like another.
"""

_ZERO_WIDTH_JOINER = "\u200d"

_EXTENDERS = frozenset("\u200c\u200d\u0e33\u0eb3\uff9e\uff9f")
"""Extenders of a cluster that are not marks: joiners, Thai and Lao AM, half-width sound marks."""

_LOOK_BACK = 64
"""Most characters of a cluster that is kept together; longer ones are made to break layouts."""

_ANSI = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_][^\x1b]*\x1b\\|[ -/]*[0-~])"
)

REACH = 4096
"""Most characters of an escape sequence that is never cut; longer ones are made to break layouts.

Whether a cut is allowed depends on no character farther away than this, except in a row of flags.
"""


def cut_before(text: str, index: int) -> int:
    """The largest allowed cut at or before `index`."""
    return _allowed_cut(text, index, -1)


def cut_after(text: str, index: int) -> int:
    """The smallest allowed cut at or after `index`."""
    return _allowed_cut(text, index, 1)


def shorten(text: str, limit: int) -> str:
    """At most `limit` characters of a one-line text, with an ellipsis if it was cut.

    A limit of 0 or less leaves no room for the ellipsis and returns an empty text.
    """
    if len(text) <= limit:
        return text
    return text[: cut_before(text, limit - 1)] + "…" if limit > 0 else ""


def spelled_out(text: str) -> str:
    r"""The text with lone surrogates, which UTF-8 cannot hold, written as `\udxxx`."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def sequence_around(text: str, index: int) -> tuple[int, int] | None:
    """Start and end of the escape sequence that a cut at `index` would break."""
    escape = text.rfind("\x1b", max(0, index - REACH), index)
    if escape < 0:
        return None
    match = _ANSI.match(text, escape, escape + REACH)
    return match.span() if match is not None and index < match.end() else None


def _allowed_cut(text: str, index: int, step: Literal[-1, 1]) -> int:
    farthest = index + step * _LOOK_BACK
    while True:
        # Checked again after every step: a cluster may begin with the end of a sequence.
        span = sequence_around(text, index)
        if span is not None:
            index = span[step > 0]
        elif (farthest - index) * step > 0 and not _is_boundary(text, index):
            index += step
        else:
            return index


def _is_boundary(text: str, index: int) -> bool:
    if index <= 0 or index >= len(text):
        return True
    before, after = text[index - 1], text[index]
    if before < "\x80" and after < "\x80":
        return not (before == "\r" and after == "\n")
    if before == _ZERO_WIDTH_JOINER or _extends(after):
        return False
    if _is_regional(before) and _is_regional(after):
        return _regionals_before(text, index) % 2 == 0
    # A leading consonant and a composed syllable of Hangul may continue a leading consonant.
    is_hangul = _is_leading_consonant(after) or "\uac00" <= after <= "\ud7a3"
    return not (_is_leading_consonant(before) and is_hangul)


def _extends(char: str) -> bool:
    code = ord(char)
    return (
        char in _EXTENDERS
        or unicodedata.category(char) in ("Mn", "Mc", "Me")
        or 0x1F3FB <= code <= 0x1F3FF
        or 0xE0020 <= code <= 0xE007F
        # A vowel or a trailing consonant of a decomposed Hangul syllable.
        or "\u1160" <= char <= "\u11ff"
        or "\ud7b0" <= char <= "\ud7fb"
    )


def _is_leading_consonant(char: str) -> bool:
    return "\u1100" <= char <= "\u115f"


def _is_regional(char: str) -> bool:
    return 0x1F1E6 <= ord(char) <= 0x1F1FF


def _regionals_before(text: str, index: int) -> int:
    count = 0
    while count < index and _is_regional(text[index - 1 - count]):
        count += 1
    return count
