"""A family: the group of tools that share a typed result, how it is bounded, how it is worded."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tooltrail.records.budgets import Budget
from tooltrail.records.cutting import Cutter
from tooltrail.records.envelope import CanonicalResult, CompleteOutput, FamilyOutput
from tooltrail.records.errors import InvalidRecordError, NotFoundError

Projector = Callable[[Any, Any, Cutter], Mapping[str, object]]
"""Bounds a complete result: `(result, budget, cutter) -> canonical result`.

The result is one of the family's `result_types`, the budget is of the class of the family's own.
What it returns holds JSON types and tuples of the same. It MUST be deterministic, and
MUST leave nothing out but through the cutter.
"""


@dataclass(frozen=True, slots=True)
class Family:
    """A group of tools that share a typed result.

    Attributes:
        name: the family's name, stored with each invocation.
        result_types: the models of its complete results.
        projector: complete result to canonical result.
        render: `(canonical, budget) -> receipt`, for a success; a function of its inputs alone. The
            receipt fits into `budget.receipt_chars`, for whatever the projector gives.
        budget: its default budget.
        tool_names: names of tools that it serves by default.
        version: of `render`, stored with each receipt as the name is; raised whenever the same
            input may give other text.
    """

    name: str
    result_types: tuple[type[FamilyOutput], ...]
    projector: Projector
    render: Callable[[CanonicalResult, Any], str]
    budget: Budget = field(default_factory=Budget)
    tool_names: frozenset[str] = frozenset()
    version: int = 1


class FamilyRegistry:
    """The families that a store knows, by name and by the tools that they serve.

    Not safe to change while other threads record; register at start.

    Raises:
        InvalidRecordError: two of the families share a name or a tool.
    """

    def __init__(self, fallback: Family, *families: Family) -> None:
        self._fallback = fallback
        self._by_name: dict[str, Family] = {}
        self._by_tool: dict[str, Family] = {}
        for family in (fallback, *families):
            self.register(family)

    def register(self, family: Family) -> None:
        """Add a family and the tools that it serves.

        Raises:
            InvalidRecordError: its name, or one of its tools, is taken.
        """
        if family.name in self._by_name:
            raise InvalidRecordError(f"the family {family.name!r} is registered already")
        taken = family.tool_names & self._by_tool.keys()
        if taken:
            raise InvalidRecordError(f"tools that another family serves: {sorted(taken)}")
        self._by_name[family.name] = family
        self._by_tool.update(dict.fromkeys(family.tool_names, family))

    def __iter__(self) -> Iterator[Family]:
        return iter(self._by_name.values())

    def of_tool(self, tool_name: str) -> Family:
        """The family that serves a tool, `generic` when none does."""
        return self._by_tool.get(tool_name, self._fallback)

    def of_output(self, output: CompleteOutput, family: Family) -> Family:
        """Who bounds and words an output: its tool's family, or for plain content the fallback.

        Any tool may return content without the type of its family: a wrapper that knows nothing
        but text does, and the record of what ran must not fail for it.
        """
        if isinstance(output.result, family.result_types) or output.result is None:
            return family
        return self._fallback if isinstance(output.result, self._fallback.result_types) else family

    def of_receipt(self, renderer_name: str, family: Family) -> Family:
        """The family that worded a receipt: its tool's, or the fallback, see `of_output`."""
        return self._fallback if renderer_name == self._fallback.name else family

    def find(self, name: str) -> Family | None:
        """The family of this name, None when there is none."""
        return self._by_name.get(name)

    def named(self, name: str) -> Family:
        """The family of this name.

        Raises:
            NotFoundError: there is none.
        """
        family = self.find(name)
        if family is None:
            raise NotFoundError(f"no family is named {name!r}")
        return family
