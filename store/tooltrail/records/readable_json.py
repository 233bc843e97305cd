"""Texts for a receipt: JSON is laid out as far as there is room, and said to be cut when it is."""

import json
import re
from collections.abc import Iterable, Iterator

_INDENT = "  "
_OPENING = ("[", "{")
_CLOSING = ("]", "}")

_LEXEME = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^ \t\n\r"\[\]{},:]+', re.DOTALL)
"""A lexeme of JSON. Nothing but space is between."""

_CUT_START = re.compile(
    r"\ufeff?\s*(?:[\[{]\s*)+"
    r'(?:"(?:[^"\\\n]|\\.)*"\s*[,:]|(?:[-+.\deE]+|true|false|null)\s*,)'
)
"""How JSON starts of which the end is missing; a log line such as `[INFO] …` does not."""

_INCOMPLETE = "[the JSON above is incomplete]\n"

_PARTIAL_LEVELS = (3, 2, 1)
"""Levels that are broken into lines when there is no room to break all, best first."""


def readable(texts: Iterable[tuple[str, bool]], room: int) -> list[str]:
    """Texts for a receipt: whole JSON is laid out as far as there is room, cut JSON is named.

    With less room only the outermost levels are broken into lines, with too little none. The line
    that names cut JSON is not counted.

    Args:
        texts: each with whether it was cut.
        room: characters for all of them; only what they leave is used to lay out.
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
    """Lay valid JSON out over lines without changing any of its lexemes.

    Numbers keep their spelling and repeated keys stay, which a parser would not promise.
    """
    lexemes = _LEXEME.findall(text)
    return "".join(_parts(lexemes, len(lexemes))) + "\n"


def _laid_out(text: str, room: int) -> str:
    """An object or a list with all levels broken into lines, or with as many as fit.

    Less than all is not taken when the text itself is in as many lines. Other text stays as it is.
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
    """The parts as one text, None as soon as they are longer than `room`."""
    chosen: list[str] = []
    for part in parts:
        room -= len(part)
        if room < 0:
            return None
        chosen.append(part)
    return "".join(chosen)
