"""The tokens of an answer, as its provider counts them.

Counts are read, never computed from the text: a value that is not a count is skipped, and nothing
here raises. A stream repeats its counts up to the current event; the last value of each is used.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeGuard, cast

from pydantic import JsonValue

from tooltrail.wire.members import JsonObject, object_in

MOST_TOKENS = (1 << 53) - 1
"""The largest count: JSON's integers are exact up to here (RFC 8259, section 6)."""


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """Tokens of one answer; a count is None if the provider does not report it.

    Attributes:
        input_tokens: all tokens of the input, cached or not.
        output_tokens: all tokens that the model produced, thoughts included.
        cached_input_tokens: the input tokens that were read from a cache.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_input_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class UsageSpelling:
    """How a format reports tokens. The count `a.b` is the member `b` of the member `a`.

    Attributes:
        find: returns the object with the counts of an answer or of an event of a stream, or None.
        input_counts: the counts whose sum is the input.
        output_counts: the counts whose sum is the output.
        cached_counts: the possible names of the count of cached input; a server uses one of them.
        thoughts: the count of thoughts; added to the output if the total includes it separately.
    """

    find: Callable[[JsonObject], JsonValue] = lambda _: None
    input_counts: tuple[str, ...] = ()
    output_counts: tuple[str, ...] = ()
    cached_counts: tuple[str, ...] = ()
    thoughts: str = ""

    def read(self, counts: Mapping[str, int]) -> TokenCounts:
        """The tokens from a provider's counts by name."""
        given, made = _total(counts, *self.input_counts), _total(counts, *self.output_counts)
        # xAI counts thoughts besides the output, all others within it; only the total shows which.
        if thought := counts.get(self.thoughts):
            whole = (made or 0) + thought
            made = whole if counts.get("total_tokens") == (given or 0) + whole else made
        cached = next((counts[name] for name in self.cached_counts if name in counts), None)
        return TokenCounts(given, made, cached)


def usage_of(holder: str) -> Callable[[JsonObject], JsonValue]:
    """Return a function that finds `usage` in an answer or event, or in its member `holder`."""
    return lambda event: event.get("usage") or object_in(event.get(holder)).get("usage")


def usage_in(found: Iterable[JsonValue], spelling: UsageSpelling) -> TokenCounts | None:
    """The tokens of an answer; None if the provider reports none.

    `found` has the results of `spelling.find`, in the order of the events.
    """
    counts: dict[str, int] = {}
    for one in found:
        counts.update(counts_in(one))
    read = spelling.read(counts)
    return None if read == TokenCounts() else read


def counts_in(value: JsonValue) -> dict[str, int]:
    """The counts among the members of an object and of the objects directly in it."""
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
    """The sum of the counts with these names; None if there are none."""
    found = [counts[name] for name in names if name in counts]
    return sum(found) if found else None
