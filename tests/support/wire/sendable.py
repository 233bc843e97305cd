"""Checks that every client sends and every server accepts a value: types and characters."""

# Untyped JSON of other programs.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

JsonObject = Mapping[str, Any]

_UNSENDABLE = re.compile("[\x00\ud800-\udfff]")
"""NUL and lone surrogates. Servers or clients reject them, and then also every later request of
the session."""


def value_problems(value: Any, where: str = "") -> Iterator[str]:
    """Parts of a value that are not JSON or cannot be sent."""
    if isinstance(value, dict | list):
        yield from _within(value, where)
    elif isinstance(value, str):
        if found := _UNSENDABLE.search(value):
            yield f"{where} has the character U+{ord(found[0]):04X}, which cannot be sent"
    elif isinstance(value, float):
        if not math.isfinite(value):
            yield f"{where} is {value}, which is not a number of JSON"
    elif not isinstance(value, int | None):
        yield f"{where} is {type(value).__name__}, which is no type of JSON"


def _within(value: dict[Any, Any] | list[Any], where: str) -> Iterator[str]:
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from value_problems(item, f"{where}/{number}")
        return
    for key, member in value.items():
        if not isinstance(key, str):
            yield f"{where} has the key {key!r}, which is not a string"
        yield from value_problems(key, f"a key of {where}")
        yield from value_problems(member, f"{where}/{key}")


def escape_problems(text: Any, where: str) -> Iterator[str]:
    """Problems in the decoded escapes of a text that should be JSON; numbers are read as text.

    A text that is not JSON has no escapes; the model is informed about it.
    """
    try:
        decoded = json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
        yield from value_problems(decoded, f"{where} (decoded)")
    except (ValueError, TypeError, RecursionError):
        return


def name_problems(name: Any, legal: re.Pattern[str], where: str) -> Iterator[str]:
    """Problems of the name of a tool."""
    if not isinstance(name, str) or not legal.fullmatch(name):
        yield f"{where}: the name {name!r} is not legal"


def repeated(names: Iterable[Any], what: str) -> Iterator[str]:
    """Names that should be unique but are not."""
    for name, count in Counter(names).items():
        if count > 1:
            yield f"the {what} {name!r} stands {count} times"
