"""Prepares texts for a receipt: indents JSON if there is room, and marks JSON that was cut."""

import json
import re
from collections.abc import Iterable, Iterator

_INDENT = "  "
_OPENING = ("[", "{")
_CLOSING = ("]", "}")

_LEXEME = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^ \t\n\r"\[\]{},:]+', re.DOTALL)
"""A lexeme of JSON. Between lexemes there is only white space."""

_CUT_START = re.compile(
    r"\ufeff?\s*(?:[\[{]\s*)+"
    r'(?:"(?:[^"\\\n]|\\.)*"\s*[,:]|(?:[-+.\deE]+|true|false|null)\s*,)'
)
"""Matches the start of JSON whose end is missing, but not a log line such as `[INFO] …`."""

_INCOMPLETE = "[the JSON above is incomplete]\n"

_PARTIAL_LEVELS = (3, 2, 1)
"""Levels that are broken into lines if there is no room to break all levels, best first."""


def readable(texts: Iterable[tuple[str, bool]], room: int) -> list[str]:
    """Indent complete JSON if there is room, and add a line to JSON that was cut.

    With less room only the outermost levels are broken into lines, with too little none. The line
    that marks cut JSON does not count towards the room.

    Args:
        texts: pairs of a text and whether it was cut.
        room: characters for all texts; only the unused part is available for indentation.
    """
    pairs = list(texts)
    spare = room - sum(len(text) for text, _ in pairs)
    bodies: list[str] = []
    for text, truncated in pairs:
        if not truncated:
            bodies.append(_laid_out(text, len(text) + spare))
            spare -= len(bodies[-1]) - len(text)
        elif _CUT_START.match(text):
            bodies.append(text + ("" if text.endswith("\n") else "\n") + _INCOMPLETE)
        else:
            bodies.append(text)
    return bodies


def indent_json(text: str) -> str:
    """Indent valid JSON without changing any of its lexemes.

    Numbers keep their spelling and duplicate keys are kept, which a parser would not guarantee.
    """
    lexemes = _LEXEME.findall(text)
    return "".join(_parts(lexemes, len(lexemes))) + "\n"


def _laid_out(text: str, room: int) -> str:
    """An object or a list with all levels broken into lines, or with as many levels as fit.

    If not all levels fit, a text that already has as many lines stays as it is. Text that is not an
    object or a list also stays as it is.
    """
    if not text.lstrip().startswith(_OPENING):
        return text
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return text
    lexemes = _LEXEME.findall(text)
    lines = text.strip().count("\n")
    for levels in (len(lexemes), *_PARTIAL_LEVELS):
        laid_out = _joined(_parts(lexemes, levels), room - 1)
        if laid_out is not None and (levels == len(lexemes) or laid_out.count("\n") > lines):
            return laid_out + "\n"
    return text


def _parts(lexemes: Iterable[str], levels: int) -> Iterator[str]:
    """The lexemes, with white space where one of the outermost `levels` levels is broken."""
    depth, previous = 0, ""
    for lexeme in lexemes:
        if lexeme in _CLOSING:
            depth -= 1
            if depth < levels and previous not in _OPENING:
                yield "\n" + _INDENT * depth
        elif depth <= levels and (previous == "," or previous in _OPENING):
            yield "\n" + _INDENT * depth
        yield ": " if lexeme == ":" and depth <= levels else lexeme
        depth += lexeme in _OPENING
        previous = lexeme


def _joined(parts: Iterable[str], room: int) -> str | None:
    """The parts as one text; None if they are longer than `room`."""
    chosen: list[str] = []
    for part in parts:
        room -= len(part)
        if room < 0:
            return None
        chosen.append(part)
    return "".join(chosen)
