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
"""A document that is one string, whole or cut; quoted prose mostly goes on behind the quote."""

_STRING_END = re.compile(r'(?:[^"\\\x00-\x1f]|\\.)*"\s*')
_JSON_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})')
_SENTENCE_END = re.compile("[.,;:!?] |[\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f]")

_BYTE_ORDER_MARK = "\ufeff"

_TERMINAL = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*(?:[@-~]|\Z)"  # colors, erasing; the rest may be lost
    r"|\][^\x07\x1b]*(?:\x07|\x1b\\|\x1b?\Z)"  # links
    r"|[ -/]*(?:[0-Z\\^-~]|\Z))"  # character sets
)
"""What only a terminal sees. JSON holds no raw escape, so that none of its own can be meant."""

_SPELLED_BYTE = re.compile(r"(\\[^x])|\\x[0-9a-f]{2}", re.DOTALL)
"""A byte that is not UTF-8, as a preview spells it, or an escape that is one of JSON."""

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
    plain = _TERMINAL.sub("", document)
    if not _is_json_beginning(_with_bytes(plain).strip(), rest):
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


def _with_bytes(text: str) -> str:
    """The text with a character for each byte that is spelled, as JSON has no such escape."""
    return _SPELLED_BYTE.sub(lambda found: found[1] or "\ufffd", text)


def _is_json_beginning(text: str, rest: str) -> bool:
    """Whether JSON, or one JSON document after the other, could go on where `text` ends."""
    if _STRING.fullmatch(text):
        return _is_more_than_prose(text, rest)
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


def _is_more_than_prose(string: str, rest: str) -> bool:
    """Whether what begins with a quote is a JSON string rather than prose that someone quotes.

    It is when what follows the notice ends it, when it has an escape, or when it has no sentence.
    """
    if _STRING_END.fullmatch(rest.lstrip("\n").partition("\n")[2]):
        return True
    return _JSON_ESCAPE.search(string) is not None or _SENTENCE_END.search(string) is None


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
