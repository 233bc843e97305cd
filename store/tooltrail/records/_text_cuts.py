"""Where a text may be cut: between user-perceived characters, and not inside an escape sequence.

The rules are the part of Unicode Annex 29 that matters at a cut: combining marks, joiners,
variation selectors, emoji modifiers and tags, flag pairs, Hangul syllables, CR LF.
"""

import re
import unicodedata

_ZERO_WIDTH_JOINER = "\u200d"
_LOOK_BACK = 64
"""Characters of one cluster that are honoured; longer ones are made to break layouts."""

_ANSI = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_][^\x1b]*\x1b\\|[ -/]*[0-~])"
)
_ANSI_REACH = 256
"""Characters that an escape sequence may span and still be kept whole."""


def cut_before(text: str, index: int) -> int:
    """The largest allowed cut at or before `index`."""
    span = _sequence_around(text, index)
    if span is not None:
        index = span[0]
    floor = max(0, index - _LOOK_BACK)
    while index > floor and not _is_boundary(text, index):
        index -= 1
    return index


def cut_after(text: str, index: int) -> int:
    """The smallest allowed cut at or after `index`."""
    span = _sequence_around(text, index)
    if span is not None:
        index = span[1]
    ceiling = min(len(text), index + _LOOK_BACK)
    while index < ceiling and not _is_boundary(text, index):
        index += 1
    return index


def _sequence_around(text: str, index: int) -> tuple[int, int] | None:
    """The escape sequence that a cut at `index` would break."""
    escape = text.rfind("\x1b", max(0, index - _ANSI_REACH), index)
    if escape < 0:
        return None
    match = _ANSI.match(text, escape)
    if match is None or not escape < index < match.end() <= escape + _ANSI_REACH:
        return None
    return match.span()


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
    return not (_is_hangul_lead(before) and _is_hangul(after))


def _extends(char: str) -> bool:
    code = ord(char)
    return (
        char == _ZERO_WIDTH_JOINER
        or unicodedata.category(char) in ("Mn", "Mc", "Me")
        or 0x1F3FB <= code <= 0x1F3FF
        or 0xE0020 <= code <= 0xE007F
    )


def _is_regional(char: str) -> bool:
    return 0x1F1E6 <= ord(char) <= 0x1F1FF


def _regionals_before(text: str, index: int) -> int:
    count = 0
    while count < index and _is_regional(text[index - 1 - count]):
        count += 1
    return count


def _is_hangul_lead(char: str) -> bool:
    return 0x1100 <= ord(char) <= 0x11A7 or 0xAC00 <= ord(char) <= 0xD7A3


def _is_hangul(char: str) -> bool:
    return 0x1160 <= ord(char) <= 0x11FF
