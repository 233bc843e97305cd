"""Texts for a receipt: JSON is laid out as far as there is room, and said to be cut when it is."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence

_INDENT = "  "
_OPENING = ("[", "{")
_CLOSING = ("]", "}")
_STRUCTURE = frozenset("[]{},:")

_LEXEME = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|[\[\]{},:]|[^ \t\n\r"\[\]{},:]+', re.DOTALL)
"""A lexeme of JSON; a string may lack its end where the text ends. Nothing but space is between."""

_SPACE = re.compile(r"[ \t\n\r]*")

_START = re.compile(r'\s*(?:\{\s*["}]|\[\s*(?:[\[{"\]\d-]|true\b|false\b|null\b))')
"""How JSON starts; a log line such as `[INFO] …` must not be taken for it."""

_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*(?:"|\\?\Z)')
"""A document that is one string, whole or cut; quoted prose goes on behind the quote."""

_BYTE_ORDER_MARK = "\ufeff"
_COLOR = re.compile(r"\x1b\[[0-9;:]*m")
"""What sets colors; JSON itself holds no raw escape, so that none of its own can be meant."""

_LITERALS = ("true", "false", "null", "NaN", "Infinity", "-Infinity")
_STUMP = re.compile(r"\.?|[eE][+-]?|u[0-9a-fA-F]{0,4}")
"""What a cut leaves of a number or of an escape that a parser cannot read."""

_NOTICE = re.compile(r"(?:\A|\n)\[output (?:truncated|incomplete): ")
"""How the notice begins that stands in a preview where something is missing."""

_PARTIAL_LEVELS = (3, 2, 1)
"""Levels that are broken into lines when there is no room to break all, best first."""


def readable(texts: Iterable[tuple[str, bool]], room: int) -> list[str]:
    """Texts for a receipt: JSON is laid out as far as there is room, and named when it is cut.

    With less room only the outermost levels are broken into lines, with too little none. Of JSON
    that was cut, what stands before the marker is laid out. The notice about it is not counted.

    Args:
        texts: each with whether it was cut.
        room: characters for all of them; only what they leave is used to lay out.
    """
    pairs = list(texts)
    spare = room - sum(len(text) for text, _ in pairs)
    bodies: list[str] = []
    for text, truncated in pairs:
        lay_out = _cut_json if truncated else _whole_json
        body, notice = lay_out(text, len(text) + spare)
        # The notice stands in the frame, so that no cut can go without it.
        spare -= len(body) - len(text)
        bodies.append(body + notice)
    return bodies


def indent_json(text: str) -> str:
    """Lay valid JSON out over lines without changing any of its lexemes.

    Numbers keep their spelling and repeated keys stay, which a parser would not promise.
    """
    lexemes = _LEXEME.findall(text)
    return "".join(_parts(lexemes, len(lexemes))) + "\n"


def _whole_json(text: str, room: int) -> tuple[str, str]:
    mark, document = _split_mark(text)
    if _START.match(document) is None:
        return text, ""
    try:
        json.loads(document)
    except (ValueError, RecursionError):
        return text, ""
    laid_out = _laid_out(document, room - len(mark) - 1)
    return (text if laid_out is None else f"{mark}{laid_out}\n"), ""


def _cut_json(text: str, room: int) -> tuple[str, str]:
    notice = _NOTICE.search(text)
    beginning, rest = (text[: notice.start()], text[notice.start() :]) if notice else (text, "")
    mark, document = _split_mark(beginning)
    plain = _COLOR.sub("", document)
    if not _is_json_beginning(plain.rstrip()):
        return text, ""
    # What is in color is laid out by whoever colored it.
    laid_out = _laid_out(document, room - len(mark) - len(rest)) if plain == document else None
    body = text if laid_out is None else mark + laid_out + rest
    separator = "" if body.endswith("\n") else "\n"
    return body, f"{separator}[the JSON above is incomplete]\n"


def _split_mark(text: str) -> tuple[str, str]:
    """The byte order mark of a text, if it has one, and what comes after it."""
    document = text.removeprefix(_BYTE_ORDER_MARK)
    return text[: len(text) - len(document)], document


def _is_json_beginning(text: str) -> bool:
    """Whether JSON, or one JSON document after the other, could go on where `text` ends."""
    if _STRING.fullmatch(text):
        return True
    decoder = json.JSONDecoder()
    start = _past_space(text, 0)
    while start < len(text):
        if _START.match(text, start) is None:
            return text[start:] in _OPENING
        try:
            _, end = decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            return error.msg.startswith("Unterminated") or _is_stump(text[error.pos :])
        except (ValueError, RecursionError):
            return True  # a number too long or a nesting too deep for Python is still JSON
        start = _past_space(text, end)
    return start > 0


def _past_space(text: str, index: int) -> int:
    match = _SPACE.match(text, index)
    return match.end() if match else index


def _is_stump(text: str) -> bool:
    """Whether a cut may have left `text` of a lexeme."""
    return _STUMP.fullmatch(text) is not None or any(word.startswith(text) for word in _LITERALS)


def _laid_out(text: str, room: int) -> str | None:
    """JSON, or its beginning, with all levels broken into lines or as many of the outermost as fit.

    None when none do. Less than all is not taken when the text itself is in as many lines.
    """
    lexemes = _LEXEME.findall(text)
    if not _is_one_document(lexemes):
        return None
    laid_out = _joined(_parts(lexemes, len(lexemes)), room)
    if laid_out is not None:
        return laid_out
    lines = text.strip().count("\n")
    for levels in _PARTIAL_LEVELS:
        laid_out = _joined(_parts(lexemes, levels), room)
        if laid_out is not None and laid_out.count("\n") > lines:
            return laid_out
    return None


def _is_one_document(lexemes: Sequence[str]) -> bool:
    """Whether space between the lexemes may go: no two words meet, and nothing follows the end."""
    depth, previous = 0, ","
    for position, lexeme in enumerate(lexemes):
        if position and not depth:
            return False
        if lexeme not in _STRUCTURE and previous not in _STRUCTURE:
            return False
        depth += (lexeme in _OPENING) - (lexeme in _CLOSING)
        previous = lexeme
    return True


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
