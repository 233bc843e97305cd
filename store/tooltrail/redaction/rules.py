"""Rules: what counts as a secret, and the automaton that finds where one may be."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache, cached_property
from typing import Final

from ahocorasick_rs import BytesAhoCorasick, Implementation

from tooltrail.records.errors import InvalidRecordError
from tooltrail.redaction.credentials import RULES, Rule

LEAST_OF_VALUE: Final = 8
"""Shortest value in bytes that is replaced wherever it occurs. A shorter one would hit words."""

_MOST_NESTED: Final = 4
"""How deep a value is found in JSON that is a text in JSON."""

_NAME: Final = r"[a-z0-9][a-z0-9-]{0,63}"


class RuleSet:
    """Rules that are searched for together. Immutable; safe for threads.

    Args:
        rules: the rules.

    Attributes:
        rules: the rules, in the given order.
        unmarked: the rules without markers.
        margin: bytes at the end of a stream in which a match may begin whose marker is incomplete.
        is_marked_by_line: whether no marker holds a newline.
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rules)
        self.unmarked = tuple(rule for rule in self.rules if not rule.markers)
        by_marker: defaultdict[bytes, list[Rule]] = defaultdict(list)
        for rule in self.rules:
            for marker in rule.markers:
                by_marker[marker].append(rule)
        self._of_marker = [*by_marker.values()]
        # The fastest of its implementations, for a few hundred kilobytes of memory.
        self._automaton = BytesAhoCorasick([*by_marker], implementation=Implementation.DFA)
        before = max((max(rule.distances) for rule in self.rules), default=0)
        self.margin = before + max(map(len, by_marker), default=0)
        self.is_marked_by_line = not any(b"\n" in marker for marker in by_marker)

    @cached_property
    def parts(self) -> "tuple[RuleSet, RuleSet]":
        """The rules with markers, and those without."""
        if not self.unmarked:
            return self, RuleSet(())
        return RuleSet(one for one in self.rules if one.markers), RuleSet(self.unmarked)

    def may_match(self, data: bytes) -> bool:
        """Whether a rule may match: it has no marker, or its marker is in the data."""
        return bool(self.unmarked or self._automaton.find_matches_as_indexes(data))

    def marked(self, data: bytes) -> Iterator[tuple[Rule, int]]:
        """Each rule with a marker in `data`, and the offset of the marker, in order."""
        for index, start, _ in self._automaton.find_matches_as_indexes(data, overlapping=True):
            for rule in self._of_marker[index]:
                yield rule, start

    def extended(
        self, *, patterns: Mapping[str, str] = {}, values: Mapping[str, str] = {}
    ) -> "RuleSet":
        """These rules, and those of a user.

        Args:
            patterns: regular expressions by the name of their rule. They match bytes, in a stream
                at most `MOST_OF_PATTERN` bytes.
            values: secrets by the name of their rule, such as the values of environment variables.
                They are also found as they are spelled in JSON and in URLs.

        Raises:
            InvalidRecordError: a name or an expression is invalid, an expression matches nothing
                at all, or a value is shorter than 8 bytes.
        """
        added = [_rule_of_pattern(name, text) for name, text in patterns.items()]
        added += [_rule_of_value(name, value) for name, value in values.items()]
        return RuleSet([*self.rules, *added])

    def with_marks(self) -> "RuleSet":
        """These rules, and rules that count what was replaced before: they leave each mark."""
        marks = {one.name: b"[REDACTED:%b]" % one.name.encode() for one in self.rules}
        counting = (Rule(n, re.escape(mark), (mark,), len(mark)) for n, mark in marks.items())
        return RuleSet([*self.rules, *counting])


@cache
def default_rules() -> RuleSet:
    """The rules for all well-known credential formats."""
    return RuleSet(RULES)


def refuse_short_value(value: bytes, what: str) -> None:
    """Raise `InvalidRecordError` for a value that is too short; `what` names it in the message."""
    if len(value) < LEAST_OF_VALUE:
        raise InvalidRecordError(
            f"{what} is shorter than {LEAST_OF_VALUE} bytes, and would match parts of words;"
            " leave the rule out, or use a longer value"
        )


def _rule_of_pattern(name: str, text: str) -> Rule:
    try:
        pattern = re.compile(text.encode())
    except re.error as error:
        raise InvalidRecordError(f"redaction pattern {name} is not valid: {error}") from error
    if pattern.fullmatch(b""):
        raise InvalidRecordError(f"redaction pattern {name} matches the empty text")
    return Rule(_checked(name), text.encode())


def _rule_of_value(name: str, value: str) -> Rule:
    data = value.encode("utf-8", "surrogatepass")
    refuse_short_value(data, f"the value of redaction rule {name}")
    # A program without such values does not wait for these imports.
    import json  # noqa: PLC0415
    from urllib.parse import quote, quote_plus  # noqa: PLC0415

    texts, spelled = {data}, {value}
    for _ in range(_MOST_NESTED):
        spelled = {
            json.dumps(one, ensure_ascii=yes)[1:-1] for one in spelled for yes in (True, False)
        }
        texts |= {one.encode("utf-8", "surrogatepass") for one in spelled}
    with suppress(UnicodeEncodeError):  # the bytes of a variable that is not UTF-8
        texts.add(value.encode("utf-8", "surrogateescape"))
    texts |= {one.encode() for one in (quote(data, safe=""), quote(data), quote_plus(data))}
    spellings = sorted(texts, key=len, reverse=True)
    pattern = b"|".join(map(re.escape, spellings))
    return Rule(_checked(name), pattern, tuple(spellings), len(spellings[0]))


def _checked(name: str) -> str:
    if not re.fullmatch(_NAME, name):
        raise InvalidRecordError(
            f"redaction rule {name!r} needs a name of lower-case letters, digits and hyphens"
        )
    return name
