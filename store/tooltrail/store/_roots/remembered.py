"""How a store remembers its artifact root: a URL, a path, or a path from the database file."""

from pathlib import Path

from tooltrail.records import InvalidRecordError
from tooltrail.records.tool_calls import storable
from tooltrail.store._engines.targets import SqliteTarget, Target, absolute_path

ARTIFACTS_FOLDER = "artifacts"


def resolve_root(target: Target, root: str) -> str:
    """The artifact root as a URL or an absolute path."""
    if "://" in root or not isinstance(target, SqliteTarget):
        return root
    return str(target.path.parent / root)


def remembered_root(target: Target, artifacts: str | None) -> str:
    """What a store is to remember: what lies beside an SQLite file relative to it.

    Raises:
        InvalidRecordError: no root was named where there is no default, or its name is no text.
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
    """What the caller named, a path from the current folder made absolute."""
    return artifacts if "://" in artifacts else str(absolute_path(artifacts))
