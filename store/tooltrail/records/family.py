"""A family: the group of tools that share a typed result, how it is bounded, how it is worded."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tooltrail.records._model import Record
from tooltrail.records.budgets import Budget
from tooltrail.records.cutting import Cutter
from tooltrail.records.envelope import CanonicalResult, FamilyOutput

Projector = Callable[[Any, Any, Cutter], Record]
"""Bounds a complete result: `(result, budget, cutter) -> bounded result`.

The result is one of the family's `result_types`, the budget is of the class of the family's own.
The fields of what it returns hold JSON types, tuples and records of the same. It MUST be
deterministic, and MUST leave nothing out but through the cutter.
"""


@dataclass(frozen=True, slots=True)
class Renderer:
    """Words the canonical results of one family for the model.

    Attributes:
        name: which renderer this is; stored with each receipt.
        version: raised whenever the same input may give other text.
        render: `(canonical, budget) -> text`, for a success; a function of its inputs alone. What
            it gives fits into `budget.receipt_chars`, for whatever the family's projector gives.
    """

    name: str
    version: int
    render: Callable[[CanonicalResult, Any], str]


@dataclass(frozen=True, slots=True)
class Family:
    """A group of tools that share a typed result.

    Attributes:
        name: the family's name, stored with each invocation.
        result_types: the models of its complete results.
        projector: complete result to bounded result.
        renderer: canonical result to receipt.
        budget: its default budget.
        tool_names: names of tools that it serves by default.
    """

    name: str
    result_types: tuple[type[FamilyOutput], ...]
    projector: Projector
    renderer: Renderer
    budget: Budget
    tool_names: frozenset[str] = frozenset()
