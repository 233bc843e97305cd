"""The families that every store knows, and the policy of their default budgets."""

from tooltrail.records.families import BUILT_IN, FALLBACK
from tooltrail.records.family import Family
from tooltrail.records.policy import FamilyRegistry, Policy

_registered: list[Family] = []


def register_family(family: Family) -> None:
    """Register a family for every store that this process opens from now on.

    A store that is opened with `families=…` knows only those families.

    Raises:
        InvalidRecordError: the family's name, or one of its tools, is already registered.
    """
    default_families().register(family)
    _registered.append(family)


def default_families() -> FamilyRegistry:
    """A new registry of all built-in families and those added by `register_family`."""
    return FamilyRegistry(FALLBACK, *BUILT_IN, *_registered)


def default_policy(families: FamilyRegistry | None = None) -> Policy:
    """The policy in which every family has its default budget."""
    chosen = default_families() if families is None else families
    return Policy(families={family.name: family.budget for family in chosen})


DEFAULT_POLICY = default_policy()
"""The default budgets of the built-in families."""
