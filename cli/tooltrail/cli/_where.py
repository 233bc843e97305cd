"""Parses the conditions of `--where`, such as `tool = "Bash" and duration > 30s`.

    OR     = AND, "or" …                 NAME   = a column, or a document and a path:
    AND    = NOT, "and" …                         arguments.edits[0]."old text"
    NOT    = "not" NOT, "(" OR ")", or   VALUE  = a text in quotes, or one word
    NAME OPERATOR VALUE, NAME "in" "(" VALUE, … ")", NAME "is" ["not"] "null"

The kind of a value follows from its column: `30s`, `10MB` and `yesterday` need no quotes.
"""

import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from difflib import get_close_matches
from functools import cache
from typing import Any, Final, cast
from uuid import UUID

from lark import Lark, Token, Transformer, UnexpectedInput, UnexpectedToken, v_args
from lark.exceptions import VisitError

from tooltrail.cli._filters import OUTCOMES, STATES
from tooltrail.cli._output import printable
from tooltrail.cli._times import parse_moment
from tooltrail.store.expressions import (
    COLUMNS,
    DOCUMENTS,
    PRESENT,
    Comparison,
    Every,
    Expression,
    Not,
    Some,
    Value,
    operators_of,
)

_GRAMMAR: Final = r"""
?start: some
?some: every (_OR every)*
?every: negation (_AND negation)*
?negation: _NOT negation -> negated
    | "(" some ")"
    | NAME OPERATOR value -> compared
    | NAME _IN "(" value ("," value)* ")" -> listed
    | NAME _IS _NULL -> absent
    | NAME _IS _NOT _NULL -> present
?value: TEXT | WORD

_OR.2: /or(?![\w.\[-])/i
_AND.2: /and(?![\w.\[-])/i
_NOT.2: /not(?![\w.\[-])/i
_IN.2: /in(?![\w.\[-])/i
_IS.2: /is(?![\w.\[-])/i
_NULL.2: /null(?![\w.\[-])/i
NAME: /[a-z_][\w-]*(\.([\w-]+|"[^"\\]*")|\[\d{1,9}\])*/i
OPERATOR: /!=|<=|>=|[=<>~]/
TEXT: /"([^"\\]|\\.)*"|'[^']*'/s
WORD: /[^\s()\[\],"'=<>!~]+/
%ignore /\s+/
"""

_EXPECTED: Final = {
    "NAME": "a name such as tool or arguments.command",
    "OPERATOR": "an operator (= != < <= > >= ~ in is)",
    "WORD": "a value",
    "_NULL": "`null`",
    "_AND": "`and`",
    "_OR": "`or`",
    "COMMA": "a comma",
    "LPAR": "`(`",
    "RPAR": "`)`",
}
"""What to say for a terminal of the grammar. The others never stand alone, or go without saying."""

_ALIASES: Final = {"args": "arguments"}
_STEP: Final = re.compile(r'\.(?:"(?P<quoted>[^"]*)"|(?P<key>[\w-]+))|\[(?P<index>\d+)\]')
_AMOUNT: Final = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)([a-z]*)", re.IGNORECASE)
_INTEGER: Final = re.compile(r"-?\d{1,18}")
_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
_DURATIONS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_PREFIXES: Final = "kmgt"
_SIZES: Final = {
    "": 1,
    "b": 1,
    **{f"{one}b": 1000 ** (n + 1) for n, one in enumerate(_PREFIXES)},
    **{f"{one}ib": 1024 ** (n + 1) for n, one in enumerate(_PREFIXES)},
}
_WINDOW: Final = 60
"""Most characters of a condition that an error shows, on each side."""


class _WrongError(Exception):
    """A mistake, and its position in the text."""

    def __init__(self, at: int, message: str) -> None:
        super().__init__(message)
        self.at = at


def parse_where(text: str) -> Expression:
    """Parse a condition.

    Raises:
        ValueError: the text is no condition; the message shows the place of the mistake.
    """
    try:
        return cast("Expression", _Builder().transform(_parser().parse(text)))
    except UnexpectedInput as error:
        at, problem = _unexpected(text, error)
    except VisitError as error:
        if not isinstance(error.orig_exc, _WrongError):
            raise
        at, problem = error.orig_exc.at, str(error.orig_exc)
    raise ValueError(f"{problem}\n{_pointed(text, at)}")


@cache
def _parser() -> Lark:
    return Lark(_GRAMMAR, parser="lalr", maybe_placeholders=False)


@v_args(inline=True)
class _Builder(Transformer[Token, Any]):
    """Builds the expression bottom up."""

    def some(self, *parts: Expression) -> Expression:
        return Some(parts)

    def every(self, *parts: Expression) -> Expression:
        return Every(parts)

    def negated(self, part: Expression) -> Expression:
        return Not(part)

    def compared(self, name: Token, operator: Token, value: Token) -> Expression:
        return _comparison(name, str(operator), value)

    def listed(self, name: Token, *values: Token) -> Expression:
        return Some(tuple(_comparison(name, "=", value) for value in values))

    def present(self, name: Token) -> Expression:
        return _comparison(name, PRESENT, None)

    def absent(self, name: Token) -> Expression:
        return Not(_comparison(name, PRESENT, None))


def _comparison(spelled: Token, operator: str, value: Token | None) -> Comparison:
    name, path = _named(spelled)
    accepted = operators_of(name)
    if operator not in accepted:
        known = ", ".join(one for one in accepted if one != PRESENT)
        raise _WrongError(
            _start(spelled), f"{name} {operator} is no comparison; {name} has {known}"
        )
    return Comparison(name, operator, None if value is None else _value(name, value), path)


def _named(spelled: Token) -> tuple[str, tuple[str | int, ...]]:
    """The column or document, and the path in the document."""
    name = re.split(r"[.\[]", spelled, maxsplit=1)[0]
    path = tuple(
        int(step["index"]) if step["index"] else step["key"] or step["quoted"] or ""
        for step in _STEP.finditer(spelled, len(name))
    )
    name = _ALIASES.get(name.lower(), name.lower())
    if name not in COLUMNS and name not in DOCUMENTS:
        known = (*COLUMNS, *DOCUMENTS)
        near = get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
        raise _WrongError(_start(spelled), f"unknown name {name}; {hint}")
    if path and name in COLUMNS:
        raise _WrongError(_start(spelled), f"{name} has no members; {', '.join(DOCUMENTS)} have")
    return name, path


def _value(name: str, token: Token) -> Value:
    """The value of a token, by the kind of the column."""
    text = _unquoted(token)
    if name in DOCUMENTS:
        return text if token.type == "TEXT" else _json_value(text)
    read, what = _READERS[COLUMNS[name]]
    try:
        return read(text)
    except (ValueError, OverflowError, KeyError):
        raise _WrongError(_start(token), f"{token} is not {what}") from None


def _unquoted(token: Token) -> str:
    if token.type == "WORD" or token.startswith("'"):
        return token.strip("'")
    try:
        return str(json.loads(token, strict=False))
    except ValueError:
        problem = r"a backslash in double quotes begins an escape; write \\ or use single quotes"
        raise _WrongError(_start(token), problem) from None


def _json_value(word: str) -> Value:
    """A number, `true` or `false`; any other word is a text."""
    if _INTEGER.fullmatch(word):
        return int(word)
    if _NUMBER.fullmatch(word):
        return float(word)
    return {"true": True, "false": False}.get(word, word)


def _integer(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise ValueError(text)
    return int(text)


def _signal(text: str) -> int:
    from signal import Signals  # noqa: PLC0415  few conditions need it

    is_number = _INTEGER.fullmatch(text)
    return int(text) if is_number else Signals[f"SIG{text.upper().removeprefix('SIG')}"].value


def _amount(units: Mapping[str, int]) -> Callable[[str], Value]:
    def read(text: str) -> Value:
        found = _AMOUNT.fullmatch(text.replace(" ", ""))
        if found is None:
            raise ValueError(text)
        exact = float(found[1]) * units[found[2].lower()]
        return int(exact) if exact == int(exact) else exact

    return read


def _one_of(choices: tuple[str, ...]) -> tuple[Callable[[str], Value], str]:
    return {one: one for one in choices}.__getitem__, f"one of {', '.join(choices)}"


def _session(text: str) -> Value:
    try:
        return UUID(text)
    except ValueError:
        return text


_READERS: Final[Mapping[str, tuple[Callable[[str], Value], str]]] = {
    "text": (str, "a text"),
    "session": (_session, "a session"),
    "state": _one_of(STATES),
    "outcome": _one_of(OUTCOMES),
    "integer": (_integer, "an integer"),
    "signal": (_signal, "a signal such as SIGKILL, or its number"),
    "duration": (_amount(_DURATIONS), "a duration such as 200ms, 30s, 5m or 1.5h"),
    "size": (_amount(_SIZES), "a size such as 512, 10kB, 10MB or 1GiB"),
    "time": (
        lambda text: parse_moment(text, datetime.now().astimezone()),
        "a time: RFC 3339, a date, 2h, 3d, today or yesterday",
    ),
}
"""How to read a value of each kind, and what to call the kind."""


def _unexpected(text: str, error: UnexpectedInput) -> tuple[int, str]:
    """The place of a mistake, and what is expected there."""
    names: object
    if isinstance(error, UnexpectedToken):
        at = len(text) if error.token.type == "$END" else _start(error.token)
        names = error.accepts
    else:
        at, names = error.pos_in_stream or 0, getattr(error, "allowed", None)
    known = names if isinstance(names, set) else set[str]()
    if "WORD" in known and text[at : at + 1] in ("'", '"'):
        return at, "this quote has no end"
    *first, last = [words for name, words in _EXPECTED.items() if name in known] or ["a condition"]
    return at, f"expected {', '.join(first)}{' or ' if first else ''}{last}"


def _start(token: Token) -> int:
    return token.start_pos or 0


def _pointed(text: str, at: int) -> str:
    """The text around a place, with a mark below the place."""
    first = max(0, at - _WINDOW)
    before, behind = printable(text[first:at]), printable(text[at : at + _WINDOW])
    return f"  {before}{behind}\n  {' ' * len(before)}^"
