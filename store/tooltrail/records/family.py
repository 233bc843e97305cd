"""A family: the group of tools that share a typed result, how it is bounded, how it is worded."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tooltrail.records.budgets import Budget
from tooltrail.records.cutting import Cutter
from tooltrail.records.envelope import CanonicalResult, FamilyOutput

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
