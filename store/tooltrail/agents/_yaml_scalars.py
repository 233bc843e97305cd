"""What a plain scalar of YAML 1.2 stands for, by its core schema.

Only `true` and `false` are booleans, and only digits make numbers: `no`, `on`, `12:30` and
`2026-01-01` are text, where readers of YAML 1.1 make something else of them. What JSON cannot hold,
or what readers disagree about, is refused.
"""

import math
import re

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0(?:o[0-7]+|x[0-9a-fA-F]+)")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]+")

_MAX_DIGITS = 400
"""Digits of a number; more than any double needs, and far fewer than Python reads at all."""


def plain_value(text: str) -> str | int | float | bool | None:
    """The value of a scalar that stands in no quotes.

    Raises:
        ValueError: a number that JSON cannot hold, or that is spelled ambiguously; the message says
            what to write.
    """
    if text in _NULL:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if _NOT_FINITE.fullmatch(text):
        raise ValueError("infinities and `.nan` are no JSON; in quotes it is text")
    if _INTEGER.fullmatch(text):
        return _integer(text)
    if _BASED.fullmatch(text):
        _check_length(text)
        return int(text, 0)
    return _float(text) if _FLOAT.fullmatch(text) else text


def _integer(text: str) -> int:
    if _LEADING_ZERO.fullmatch(text):
        raise ValueError(
            "a number that begins with 0 is octal to some readers of YAML; leave the 0 out, or put "
            "it in quotes"
        )
    _check_length(text)
    return int(text)


def _float(text: str) -> float:
    _check_length(text)
    number = float(text)
    if math.isinf(number):
        raise ValueError("the number is beyond a double; in quotes it is text")
    return number


def _check_length(text: str) -> None:
    if len(text) > _MAX_DIGITS:
        raise ValueError(f"a number of more than {_MAX_DIGITS} digits; in quotes it is text")
