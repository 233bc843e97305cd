"""How a store remembers its artifact root, and how the root is marked as the store's own."""

from pathlib import Path
from typing import Final
from uuid import UUID

from tooltrail.records.errors import InvalidRecordError
from tooltrail.records.plain_text import storable
from tooltrail.store.engines.targets import SqliteTarget, Target, absolute_path

ARTIFACTS_FOLDER: Final = "artifacts"

MARK_PREFIX: Final = "store-"
"""How the path of every mark begins, relative to its artifact root."""


def mark_path(store_id: UUID) -> str:
    """Where the mark of a store is, relative to its artifact root."""
    return f"{MARK_PREFIX}{store_id}"


def is_mark(path: str) -> bool:
    """Whether an object is the mark of some store."""
    return path.startswith(MARK_PREFIX)


def resolve_root(target: Target, root: str) -> str:
    """The artifact root as a URL or an absolute path."""
    if "://" in root or not isinstance(target, SqliteTarget):
        return root
    return str(target.path.parent / root)


def remembered_root(target: Target, artifacts: str | None) -> str:
    """What a store remembers: a folder beside an SQLite file relative to that file.

    Raises:
        InvalidRecordError: no root was named where there is no default, or its name is not text.
    """
    if artifacts is None:
        if not isinstance(target, SqliteTarget):
            raise InvalidRecordError(
                "a PostgreSQL store needs an artifact root: name one (--artifacts)"
            )
        return ARTIFACTS_FOLDER
    root = named_root(artifacts)
    if storable(root) != root:
        raise InvalidRecordError(f"the name of an artifact root must be valid text: {root!r}")
    path = Path(root)
    if (
        "://" not in root
        and isinstance(target, SqliteTarget)
        and path.is_relative_to(target.path.parent)
    ):
        return str(path.relative_to(target.path.parent))
    return root


def named_root(artifacts: str) -> str:
    """What the caller named; a path from the current folder is made absolute."""
    return artifacts if "://" in artifacts else str(absolute_path(artifacts))
