"""A family: a group of tools that share a typed result, with its projector and its renderer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tooltrail.records.budgets import Budget
from tooltrail.records.cutting import Cutter
from tooltrail.records.envelope import CanonicalResult, FamilyOutput

Projector = Callable[[Any, Any, Cutter], Mapping[str, object]]
"""Bounds a complete result: `(result, budget, cutter) -> canonical result`.

The result is one of the family's `result_types`, and the budget has the class of the family's
`budget`. The returned mapping holds JSON types and tuples of them. A projector MUST be
deterministic, and MUST leave things out only through the cutter.
"""


@dataclass(frozen=True, slots=True)
class Family:
    """A group of tools that share a typed result.

    Attributes:
        name: the family's name, stored with each invocation.
        result_types: the models of the family's complete results.
        projector: converts a complete result to a canonical result.
        render: `(canonical, budget) -> receipt`, for a success; depends only on its inputs. The
            receipt of any result of the projector fits into `budget.receipt_chars`.
        budget: the family's default budget.
        tool_names: names of the tools that the family serves by default.
        version: version of `render`, stored with each receipt like the name; raised whenever the
            same input may give another text.
    """

    name: str
    result_types: tuple[type[FamilyOutput], ...]
    projector: Projector
    render: Callable[[CanonicalResult, Any], str]
    budget: Budget = field(default_factory=Budget)
    tool_names: frozenset[str] = frozenset()
    version: int = 1
