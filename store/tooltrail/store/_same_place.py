"""Whether two roots are one place under two names.

A folder can be mounted twice, and a bucket can have an alias: no URL says so, and what is found at
the one root is what is at the other. So an object is put there that nobody else can have put.
"""

import secrets
from contextlib import suppress
from pathlib import Path

from tooltrail.artifacts import ArtifactSink
from tooltrail.records import MissingArtifactError
from tooltrail.store._root_marks import put_text

_PROBE = "same-place-"
"""Begins the name of the object by which it is found out; gc calls one that stays foreign."""

_LOCAL = "file://"


def sees_what_is_put(old: ArtifactSink, new: ArtifactSink, scratch: Path) -> bool:
    """Whether what is put at a new root is seen at the old one. Nothing is left at either.

    Args:
        old: root at which an object is looked for.
        new: root at which it is put for a moment.
        scratch: folder for a temporary file, which is made when it is missing.

    Raises:
        UnavailableError: a root cannot serve, or the new one cannot be written.
    """
    probe = f"{_PROBE}{secrets.token_hex(16)}"
    put_text(new, probe, "Put to find out whether two roots are one. Delete it.\n", scratch)
    try:
        return old.exists(probe)
    finally:
        with suppress(MissingArtifactError):
            new.delete(probe)


def has_same_name(one: ArtifactSink, other: ArtifactSink) -> bool:
    """Whether two roots are one by their URLs, or as folders by device and inode."""
    if one.url.rstrip("/") == other.url.rstrip("/"):
        return True
    if not (one.url.startswith(_LOCAL) and other.url.startswith(_LOCAL)):
        return False
    with suppress(OSError):
        folders = (Path(sink.url.removeprefix(_LOCAL)) for sink in (one, other))
        return next(folders).samefile(next(folders))
    return False
