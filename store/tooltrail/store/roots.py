"""Where a store keeps what is not in its database: its artifact root, and its spool.

The artifact root is marked as the store's own; see `marks`. The spool is the folder of the journal
and of output that is being captured.
"""

import hashlib
import os
from pathlib import Path
from typing import Final
from uuid import UUID

from tooltrail.records.errors import InvalidRecordError
from tooltrail.records.plain_text import storable
from tooltrail.store.engines.targets import SqliteTarget, Target, absolute_path

MARK_PREFIX: Final = "store-"
"""How the path of every mark begins, relative to its artifact root."""

_DIGITS: Final = 12


def mark_path(store_id: UUID) -> str:
    """Where the mark of a store is, relative to its artifact root."""
    return f"{MARK_PREFIX}{store_id}"


def is_mark(path: str) -> bool:
    """Whether an object is the mark of some store."""
    return path.startswith(MARK_PREFIX)


def named_root(artifacts: str) -> str:
    """What the caller named; a path from the current folder is made absolute."""
    return artifacts if "://" in artifacts else str(absolute_path(artifacts))


def remembered_root(target: Target, artifacts: str | None) -> str:
    """What a store remembers: a folder beside an SQLite file relative to that file.

    Raises:
        InvalidRecordError: no root was named where there is no default, or its name is not text.
    """
    folder = target.path.parent if isinstance(target, SqliteTarget) else None
    if artifacts is None:
        if folder is None:
            raise InvalidRecordError(
                "a PostgreSQL store needs an artifact root: name one (--artifacts)"
            )
        return "artifacts"
    root = named_root(artifacts)
    if storable(root) != root:
        raise InvalidRecordError(f"the name of an artifact root must be valid text: {root!r}")
    if "://" not in root and folder is not None and Path(root).is_relative_to(folder):
        return str(Path(root).relative_to(folder))
    return root


def resolve_root(target: Target, root: str) -> str:
    """The artifact root that a store remembers, as a URL or an absolute path."""
    if "://" in root or not isinstance(target, SqliteTarget):
        return root
    return str(target.path.parent / root)


def default_spool(target: Target) -> Path:
    """The spool of a store: beside a database file, else in the user's state folder.

    The state folder is that of the XDG Base Directory Specification.

    Raises:
        InvalidRecordError: the user has no home folder.
    """
    if isinstance(target, SqliteTarget):
        return target.path.parent / "spool"
    try:
        state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    except RuntimeError as error:
        raise InvalidRecordError(
            "there is no home folder for the spool; name one (--spool)"
        ) from error
    # One for each database: a spool belongs to one store.
    name = hashlib.sha256(str(target).encode()).hexdigest()[:_DIGITS]
    return Path(state) / "tooltrail" / f"spool-{name}"
