"""Families with other receipts, as of an older or a newer version of this program."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tooltrail.records import Budget, CanonicalResult, FamilyRegistry, default_families


def reworded(
    name: str,
    words: str | Callable[[CanonicalResult, Any], str],
    *,
    version: int = 0,
    budget: Budget | None = None,
) -> FamilyRegistry:
    """The current families, one of which has other receipts.

    Args:
        name: name of the family, which is also the name of its renderer.
        words: the receipt of every success, or a function that makes it.
        version: version of the renderer.
        budget: default budget of the family; None for the current one.
    """

    def render(canonical: CanonicalResult, numbers: Budget) -> str:
        return words if isinstance(words, str) else words(canonical, numbers)

    families = {family.name: family for family in default_families()}
    old = families[name]
    families[name] = replace(old, render=render, version=version, budget=budget or old.budget)
    return FamilyRegistry(*families.values())


def without(name: str) -> FamilyRegistry:
    """The current families except one."""
    return FamilyRegistry(*(family for family in default_families() if family.name != name))
