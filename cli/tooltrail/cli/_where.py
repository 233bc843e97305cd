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
from contextlib import suppress
from difflib import get_close_matches
from functools import cache, partial
from importlib import import_module
from operator import attrgetter, methodcaller
from typing import Any, Final, NamedTuple, cast
from uuid import UUID

from tooltrail.cli._amounts import A_DURATION, parse_milliseconds
from tooltrail.cli._output import printable
from tooltrail.cli._times import MOMENT, SIGNAL, SIZE
from tooltrail.store.expressions import (
    DOCUMENTS,
    KINDS,
    PRESENT,
    Comparison,
    Every,
    Expression,
    Not,
    Some,
    Value,
    operators_of,
)
from tooltrail.store.filters import OUTCOMES, STATES

_parsy: Any = import_module("parsy")
"""The parser library, which has no types."""

_END: Final = r"(?![\w.\[-])"
_NAME: Final = re.compile(rf"(?!(?:and|or|not|in|is|null){_END})[a-z_][\w-]*", re.IGNORECASE)
_KEY: Final = re.compile(r"""\.([\w-]+|"[^"\\]*")""")
_INDEX: Final = re.compile(r"\[(\d{1,9})\]")
_OPERATOR: Final = re.compile(r"!=|<=|>=|[=<>~]")
_TEXT: Final = re.compile(r""""([^"\\]|\\.)*"|'[^']*'""", re.DOTALL)
_WORD: Final = re.compile(r"""[^\s()\[\],"'=<>!~]+""")

_EXPECTED: Final[tuple[str, ...]] = (
    "a name such as tool or arguments.command",
    "an operator (= != < <= > >= ~ in is)",
    "a value",
    *("`null`", "`and`", "`or`", "a comma", "`(`", "`)`"),
)
"""What can be expected at a place, in the order in which an error says it."""

_A_NAME, _AN_OPERATOR, _A_VALUE, *_ = _EXPECTED

_ALIASES: Final = {"args": "arguments"}
_INTEGER: Final = re.compile(r"-?\d{1,18}")
_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
_WINDOW: Final = 60
"""Most characters of a condition that an error shows, on each side."""


class _WrongError(Exception):
    """A mistake: its position in the text, and what is wrong."""


class _Token(NamedTuple):
    """A piece of the text, and where it begins. A name may have a path in a document."""

    at: int
    text: str
    path: tuple[str | int, ...] = ()


def parse_where(text: str) -> Expression:
    """Parse a condition.

    Raises:
        ValueError: the text is no condition; the message shows the place of the mistake.
    """
    try:
        return cast("Expression", _grammar().parse(text))
    except _parsy.ParseError as error:
        at, problem = error.index, _problem(text, error.index, error.expected)
    except _WrongError as error:
        at, problem = error.args
    except RecursionError:
        at, problem = 0, "a condition has too many levels"
    first = max(0, at - _WINDOW)
    before, behind = printable(text[first:at]), printable(text[at : at + _WINDOW])
    raise ValueError(f"{problem}\n  {before}{behind}\n  {' ' * len(before)}^")


@cache
def _grammar() -> Any:
    """The parser of a condition, see the beginning of this module."""
    space = _parsy.regex(r"\s*")

    def token(pattern: re.Pattern[str], what: str, *path: Any) -> Any:
        parts = _parsy.seq(_parsy.index, _parsy.regex(pattern), *path)
        return parts.combine(_Token).desc(what) << space

    def sign(text: str, what: str) -> Any:
        return _parsy.string(text).desc(what) << space

    def keyword(name: str, what: str = "") -> Any:
        pattern = re.compile(name + _END, re.IGNORECASE)
        return token(pattern, what or f"`{name}`")

    some = _parsy.forward_declaration()
    negation = _parsy.forward_declaration()
    operator = token(_OPERATOR, _AN_OPERATOR).map(attrgetter("text"))
    key = _parsy.regex(_KEY, group=1).map(methodcaller("strip", '"'))
    path = (key | _parsy.regex(_INDEX, group=1).map(int)).many().map(tuple)
    name = token(_NAME, _A_NAME, path)
    value = token(_TEXT, _A_VALUE) | token(_WORD, _A_VALUE)
    values = sign("(", "`(`") >> value.sep_by(sign(",", "a comma"), min=1) << sign(")", "`)`")
    is_null = keyword("not", "`null`").optional() << keyword("null")
    comparison = _parsy.alt(
        _parsy.seq(name, operator, value).combine(_comparison),
        _parsy.seq(name << keyword("in", _AN_OPERATOR), values).combine(_listed),
        _parsy.seq(name << keyword("is", _AN_OPERATOR), is_null).combine(_missing),
    )
    negation.become(
        (keyword("not", _A_NAME) >> negation).map(Not)
        | sign("(", _A_NAME) >> some << sign(")", "`)`")
        | comparison
    )
    every = negation.sep_by(keyword("and"), min=1).map(partial(_joined, Every))
    some.become(every.sep_by(keyword("or"), min=1).map(partial(_joined, Some)))
    return space >> some


def _joined(kind: type[Every | Some], parts: list[Expression]) -> Expression:
    return parts[0] if len(parts) == 1 else kind(tuple(parts))


def _listed(name: _Token, values: list[_Token]) -> Expression:
    return Some(tuple(_comparison(name, "=", value) for value in values))


def _missing(name: _Token, is_not: _Token | None) -> Expression:
    present = _comparison(name, PRESENT, None)
    return present if is_not else Not(present)


def _comparison(spelled: _Token, operator: str, value: _Token | None) -> Comparison:
    name = _ALIASES.get(spelled.text.lower(), spelled.text.lower())
    if name not in KINDS:
        near = get_close_matches(name, KINDS, 3)
        hint = f"nearest: {', '.join(near)}" if near else f"there are {', '.join(KINDS)}"
        raise _WrongError(spelled.at, f"no column `{name}`; {hint}")
    if spelled.path and name not in DOCUMENTS:
        raise _WrongError(spelled.at, f"{name} has no members; {', '.join(DOCUMENTS)} have")
    accepted = operators_of(name)
    if operator not in accepted:
        known = ", ".join(one for one in accepted if one != PRESENT)
        given = "is null" if operator == PRESENT else operator
        raise _WrongError(spelled.at, f"{name} {given} is no comparison; {name} has {known}")
    return Comparison(name, operator, None if value is None else _value(name, value), spelled.path)


def _value(name: str, token: _Token) -> Value:
    """The value of a token, by the kind of the column."""
    text = _unquoted(token)
    if name in DOCUMENTS:
        return text if token.text[0] in "\"'" else _json_value(text)
    read, what = _READERS[KINDS[name]]
    try:
        return read(text)
    except (ValueError, OverflowError, KeyError):
        raise _WrongError(token.at, f"{token.text} is not {what}") from None


def _unquoted(token: _Token) -> str:
    if not token.text.startswith('"'):
        return token.text.strip("'")
    try:
        return str(json.loads(token.text, strict=False))
    except ValueError:
        problem = r"a backslash in double quotes begins an escape; write \\ or use single quotes"
        raise _WrongError(token.at, problem) from None


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


def _one_of(choices: Mapping[str, Value]) -> tuple[Callable[[str], Value], str]:
    return choices.__getitem__, f"one of {', '.join(choices)}"


def _session(text: str) -> Value:
    with suppress(ValueError):
        return UUID(text)
    return text


_READERS: Final[Mapping[str, tuple[Callable[[str], Value], str]]] = {
    "text": (str, "a text"),
    "session": (_session, "a session"),
    "state": _one_of(dict(zip(STATES, STATES, strict=True))),
    "outcome": _one_of(dict(zip(OUTCOMES, OUTCOMES, strict=True))),
    "flag": _one_of({"true": True, "false": False}),
    "integer": (_integer, "an integer"),
    "signal": (SIGNAL.read, SIGNAL.what),
    "duration": (parse_milliseconds, A_DURATION),
    "size": (SIZE.read, SIZE.what),
    "time": (MOMENT.read, f"a time: {MOMENT.what}"),
}
"""How to read a value of each kind, and what to call the kind."""


def _problem(text: str, at: int, expected: frozenset[str]) -> str:
    """What is wrong at a place."""
    if _A_VALUE in expected and text[at : at + 1] in ("'", '"'):
        return "this quote has no end"
    *first, last = [words for words in _EXPECTED if words in expected] or ["the end"]
    return f"expected {', '.join(first)}{' or ' if first else ''}{last}"
