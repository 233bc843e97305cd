"""Policies that differ from the default one."""

from tooltrail.records import Policy, default_families, load_policy


def policy_with(**families: dict[str, int]) -> Policy:
    """The default policy with changed numbers for some families."""
    return load_policy({"families": families}, default_families())
