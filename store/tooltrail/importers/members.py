"""Members of JSON values in the form of our records, and those that have no place in a record."""

import json
from collections.abc import Set as AbstractSet
from contextlib import suppress
from math import isfinite
from typing import Any, Final

from tooltrail.importers.values import Json
from tooltrail.records.digests import digest_of

_MOST_MS: Final = 10**15
"""A longer time, of 30,000 years, is no time at all."""

_encoder: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def names_in(spelled: str) -> frozenset[str]:
    """The names in a text, which are separated by spaces."""
    return frozenset(spelled.split())


def named_texts(value: Json, *same: str, **named: str) -> dict[str, Any]:
    """The members of a value that are texts, with their own names or with ours for them."""
    named = {**{one: one for one in same}, **named}
    found = {ours: value.get(theirs) for ours, theirs in named.items()}
    return {ours: one for ours, one in found.items() if one and isinstance(one, str)}


def without(value: Json, known: AbstractSet[str] = frozenset()) -> dict[str, Any]:
    """The members of a value that have no place in our records, except null ones."""
    return {name: one for name, one in value.items() if name not in known and one is not None}


def spelled(value: Any) -> str:
    """The arguments of a call as text: a text as it is, any other value as JSON."""
    return value if isinstance(value, str) else _encoder.encode(value)


def version_of(name: str, text: Any) -> str:
    """The name of a message for each of its texts, if the agent writes a message again and again.

    So an import in the middle of an answer hides no later text.
    """
    digest = digest_of(spelled(text).encode("utf-8", "surrogatepass"))
    return f"{name}/{digest[-16:]}"


def parsed(value: Any) -> Any:
    """The value that a text spells in JSON; any other value as it is."""
    with suppress(ValueError, RecursionError, TypeError):
        return json.loads(value, parse_constant=str, parse_float=_finite)
    return value


def _finite(spelled_float: str) -> float | str:
    number = float(spelled_float)
    return number if isfinite(number) else spelled_float


def milliseconds_of(number: Any, unit_ms: float = 1) -> int | None:
    """A time in whole milliseconds, given in units of so many; None for any other value."""
    is_number = isinstance(number, int | float) and not isinstance(number, bool)
    return round(number * unit_ms) if is_number and 0 <= number * unit_ms < _MOST_MS else None
