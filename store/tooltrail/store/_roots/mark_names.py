"""What the marks of artifact roots are called, known without anything heavy."""

from uuid import UUID

MARK_PREFIX = "store-"
"""How the path of every mark begins, relative to its artifact root."""


def mark_path(store_id: UUID) -> str:
    """Where the mark of a store is, relative to its artifact root."""
    return f"{MARK_PREFIX}{store_id}"


def is_mark(path: str) -> bool:
    """Whether an object is the mark of some store."""
    return path.startswith(MARK_PREFIX)
