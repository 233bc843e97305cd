"""Policies that differ from the default one."""

from tooltrail.records import Policy, default_families, load_policy


def policy_with(*, inline_bytes: int = 16 * 1024, **families: dict[str, int]) -> Policy:
    """The default policy with other numbers for some families."""
    document = {"inline_bytes": inline_bytes, "families": families}
    return load_policy(document, default_families())
