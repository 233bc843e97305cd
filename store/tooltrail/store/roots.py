"""The locations of a store outside its database: artifact root and spool.

The artifact root has the mark of the store; see `marks`. The spool is the folder of the journal and
of output that is being captured.
"""

import os
import re
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

from tooltrail.journal.segments import JOURNAL_FOLDER
from tooltrail.records.digests import sha256
from tooltrail.records.errors import InvalidRecordError, check_type
from tooltrail.records.plain_text import storable
from tooltrail.store.engines.targets import SqliteTarget, Target, absolute_path

MARK_PREFIX: Final = "store-"
"""Prefix of the path of every mark, relative to its artifact root."""

_DIGITS: Final = 12
_SEARCH_PATH: Final = r"(?i)search[_-]path *= *([^\s,]+)"
"""The first schema that the options in the URL of a server name."""

_MISSPELT: Final = "(?i)(s3|gs|az|file|memory)(:/|//)"


def mark_path(store_id: UUID) -> str:
    """The path of the mark of a store, relative to its artifact root."""
    return f"{MARK_PREFIX}{store_id}"


def named_root(artifacts: str | Path) -> str:
    """The artifact root that the caller named; a relative path is made absolute.

    Raises `InvalidRecordError` for a misspelt URL, which would be a folder such as `s3:`, and for a
    value that is neither a text nor a path.
    """
    check_type("artifacts", artifacts, str, Path)
    if "://" not in str(artifacts) and (found := re.match(_MISSPELT, str(artifacts))) is not None:
        raise InvalidRecordError(f"{str(artifacts)!r} is not a URL; write {found[1].lower()}://…")
    return str(artifacts) if "://" in str(artifacts) else str(absolute_path(artifacts))


def remembered_root(target: Target, artifacts: str | Path | None) -> str:
    """The root in the form that the store keeps: a folder beside an SQLite file stays relative.

    Without a name, the root of `trail.db` is the folder `trail.db-artifacts` beside the file.

    Raises:
        InvalidRecordError: no root was named and there is no default, or the name is not text.
    """
    file = target.path if isinstance(target, SqliteTarget) else None
    if artifacts is None:
        if file is None:
            message = "a PostgreSQL store needs an artifact root: name one (--artifacts)"
            raise InvalidRecordError(message)
        return f"{storable(file.name)}-artifacts"
    root = named_root(artifacts)
    if storable(root) != root:
        raise InvalidRecordError(f"the name of an artifact root must be valid text: {root!r}")
    if "://" not in root and file is not None and Path(root).is_relative_to(file.parent):
        return str(Path(root).relative_to(file.parent))
    return root


def resolve_root(target: Target, root: str) -> str:
    """The artifact root that a store keeps, as a URL or an absolute path."""
    if "://" in root or not isinstance(target, SqliteTarget):
        return root
    return str(target.path.parent / root)


def real_root(root: str) -> str:
    """The real path of a folder, or the URL without a slash at its end."""
    if "://" in root and not root.startswith("file://"):
        return root.rstrip("/")
    return os.path.realpath(root.removeprefix("file://"))


def refuse_nested(one: str, other: str) -> None:
    """Raise `InvalidRecordError` if one of two folders or URLs is inside the other."""
    first, second = (f"{real_root(root).rstrip('/')}/" for root in (one, other))
    if first != second and (first.startswith(second) or second.startswith(first)):
        raise InvalidRecordError(f"one of {one} and {other} is inside the other")


def refuse_spool(spool: Path, root: str) -> None:
    """Raise `InvalidRecordError` if an artifact root is the spool, inside it or around it."""
    for folder in (spool, spool / JOURNAL_FOLDER):  # the spool itself is around its journal
        refuse_nested(str(folder), root)


def default_spool(target: Target) -> Path:
    """The spool of a store: `trail.db-spool` beside `trail.db`, else in the user's state folder.

    So every database has its own spool, and every schema that a URL names by its `search_path`. The
    state folder follows the XDG Base Directory Specification.

    Raises:
        InvalidRecordError: the user has no home folder.
    """
    if isinstance(target, SqliteTarget):
        return Path(f"{target.path}-spool")
    try:
        state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    except RuntimeError as error:
        message = "there is no home folder for the spool; name one (--spool)"
        raise InvalidRecordError(message) from error
    options = parse_qs(urlsplit(target.url).query).get("options", [])
    schema = re.findall(_SEARCH_PATH, " ".join(options))[-1:]
    name = sha256(" ".join([str(target), *schema]).encode()).hex()[:_DIGITS]
    return Path(state) / "tooltrail" / f"spool-{name}"
