"""What `artifact grep` searches for, as its options say it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from tooltrail.cli._options import Decorated, stacked

if TYPE_CHECKING:
    from tooltrail.artifacts import ArtifactReader, Match

_NUMBER = click.IntRange(min=0)


@dataclass(frozen=True, slots=True)
class Search:
    """One search; see `ArtifactReader.grep`."""

    literal: bool
    ignore_case: bool
    invert: bool
    before: int
    after: int
    max_count: int | None

    def matches(self, reader: "ArtifactReader", pattern: str) -> "Iterator[Match]":
        """The lines that were found, and their context."""
        return reader.grep(
            pattern,
            literal=self.literal,
            ignore_case=self.ignore_case,
            invert=self.invert,
            before=self.before,
            after=self.after,
            max_count=self.max_count,
        )

    def count(self, reader: "ArtifactReader", pattern: str) -> int:
        """How many lines were found."""
        return reader.count_matches(
            pattern,
            literal=self.literal,
            ignore_case=self.ignore_case,
            invert=self.invert,
            max_count=self.max_count,
        )


def search_options(function: Decorated) -> Decorated:
    """The options of a search, handed on as one `search`."""

    @wraps(function)
    def with_search(
        *args: Any,
        literal: bool,
        ignore_case: bool,
        invert: bool,
        before: int | None,
        after: int | None,
        around: int,
        max_count: int | None,
        **kwargs: Any,
    ) -> Any:
        search = Search(
            literal=literal,
            ignore_case=ignore_case,
            invert=invert,
            before=around if before is None else before,
            after=around if after is None else after,
            max_count=max_count,
        )
        return function(*args, search=search, **kwargs)

    return _OPTIONS(with_search)


def _flag(*names: str, text: str) -> Callable[[Decorated], Decorated]:
    return click.option(*names, is_flag=True, help=text)


_OPTIONS = stacked(
    _flag("-F", "--fixed-strings", "literal", text="Search for PATTERN as plain text."),
    _flag("-i", "--ignore-case", text="Ignore the case of ASCII letters."),
    _flag("-v", "--invert-match", "invert", text="Print the lines that do not match."),
    click.option(
        "-B", "--before-context", "before", type=_NUMBER, help="Lines of context before each match."
    ),
    click.option(
        "-A", "--after-context", "after", type=_NUMBER, help="Lines of context after each match."
    ),
    click.option(
        "-C",
        "--context",
        "around",
        type=_NUMBER,
        default=0,
        help="Lines of context before and after.",
    ),
    click.option("-m", "--max-count", type=_NUMBER, help="Stop after this many matches."),
)
