"""What an answer cost in tokens, as its provider counts them.

Counts are read and never made up: a value that is no count is passed over, and nothing here raises.
A stream repeats them, each time up to that event. The last value of each member counts.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeGuard, cast

from pydantic import JsonValue

from tooltrail.wire.members import JsonObject, object_in

MOST_TOKENS = (1 << 53) - 1
"""More is no count: JSON's numbers are exact up to here (RFC 8259, section 6)."""


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """Tokens of one answer; None where the provider does not say.

    Attributes:
        input_tokens: of all that the model was given, whether it was in a cache or not.
        output_tokens: of all that it made, thoughts included.
        cached_input_tokens: those of the input that came out of a cache.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_input_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class UsageSpelling:
    """How a format tells tokens. The count `a.b` is the member `b` of the member `a`.

    Attributes:
        find: gives the object with the counts of an answer, or of an event of a stream; else None.
        input_counts: together they are the input.
        output_counts: together they are the output.
        cached_counts: names of the count of cached input, of which a server knows one.
        thoughts: the count of what a server made besides, if the sum of all says so.
    """

    find: Callable[[JsonObject], JsonValue]
    input_counts: tuple[str, ...] = ()
    output_counts: tuple[str, ...] = ()
    cached_counts: tuple[str, ...] = ()
    thoughts: str = ""

    def read(self, counts: Mapping[str, int]) -> TokenCounts:
        """What the counts say, by their names."""
        given, made = _total(counts, *self.input_counts), _total(counts, *self.output_counts)
        # xAI counts thoughts beside the answer, all others within it; only the sum tells which.
        if thought := counts.get(self.thoughts):
            whole = (made or 0) + thought
            made = whole if counts.get("total_tokens") == (given or 0) + whole else made
        cached = next((counts[name] for name in self.cached_counts if name in counts), None)
        return TokenCounts(given, made, cached)


def usage_of(holder: str) -> Callable[[JsonObject], JsonValue]:
    """Finds `usage` in an answer, or in the member of this name that an event has one in."""
    return lambda event: event.get("usage") or object_in(event.get(holder)).get("usage")


NO_USAGE = UsageSpelling(lambda _: None)
"""Of formats that tell no tokens."""

_NOTHING = TokenCounts()


def usage_in(found: Iterable[JsonValue], spelling: UsageSpelling) -> TokenCounts | None:
    """The tokens of an answer; None where the provider does not say.

    Args:
        found: what `spelling.find` gave, in its order.
        spelling: of the format.
    """
    counts: dict[str, int] = {}
    for one in found:
        counts.update(counts_in(one))
    read = spelling.read(counts)
    return None if read == _NOTHING else read


def counts_in(value: JsonValue) -> dict[str, int]:
    """The counts among the members of an object, and of the objects in it."""
    found: dict[str, int] = {}
    for name, member in object_in(value).items():
        if isinstance(member, dict):
            parts = {f"{name}.{part}": one for part, one in member.items()}
            found |= {part: int(one) for part, one in parts.items() if _is_count(one)}
        elif _is_count(member):
            found[name] = int(member)
    return found


def _is_count(value: JsonValue) -> TypeGuard[int | float]:
    """Whether a value is a whole number; clients whose types have floats give `40.0` for 40."""
    is_whole = type(value) is int or (isinstance(value, float) and value.is_integer())
    return is_whole and 0 <= cast("float", value) <= MOST_TOKENS


def _total(counts: Mapping[str, int], *names: str) -> int | None:
    """All counts of these names together; None where there is none of them."""
    found = [counts[name] for name in names if name in counts]
    return sum(found) if found else None
