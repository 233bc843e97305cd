"""Paths of stored objects: relative, normalised, and made from the digest of their plain bytes.

An artifact path is `sha256/ab/<64 hex digits>.zst`. The folder `ab` is the first two digits, so a
folder has 1/256 of the objects. The digest is of the bytes *before* compression, so a path does not
depend on the version of the codec.
"""

import re

from tooltrail.records.digests import ALGORITHM, Digest, digest_from_hex, hex_of
from tooltrail.records.errors import InvalidRecordError, PathEscapeError

PART_SUFFIX = ".part"
"""Suffix of an object that is still being written; no path of an object may end with it."""

COMPONENT_BYTES = 200
"""Most bytes in a component of a path: file systems allow 255, and the name of a part adds 22."""

_ARTIFACT = rf"{ALGORITHM}/([0-9a-f]{{2}})/(\1[0-9a-f]{{62}})\.zst"
_NOT_COMPONENTS = frozenset({"", ".", ".."})


def artifact_path(digest: Digest) -> str:
    """The path of the object whose plain bytes have this digest."""
    digits = hex_of(digest)
    return f"{ALGORITHM}/{digits[:2]}/{digits}.zst"


def path_beginning(hex_digits: str) -> str:
    """The common beginning of the paths of all digests that begin with these two or more digits."""
    return f"{ALGORITHM}/{hex_digits[:2]}/{hex_digits}"


def digest_of_path(path: str) -> Digest:
    """The digest in an artifact path.

    Raises:
        PathEscapeError: the path is not relative and normalised.
        InvalidRecordError: the path is not the path of an artifact.
    """
    check_path(path)
    match = re.fullmatch(_ARTIFACT, path)
    if match is None:
        raise InvalidRecordError(f"not the path of an artifact: {path[:200]!r}")
    return digest_from_hex(match[2])


def check_path(path: str) -> str:
    """Return the path if it is relative, normalised and valid in every sink.

    Raises:
        PathEscapeError: absolute, an empty, `.` or `..` component, a backslash or a NUL.
        InvalidRecordError: not UTF-8, a component over `COMPONENT_BYTES`, or the name of a part.
    """
    components = path.split("/")
    if "\\" in path or "\0" in path or not _NOT_COMPONENTS.isdisjoint(components):
        raise PathEscapeError(f"not a relative, normalised path: {path[:200]!r}")
    try:
        longest = max(len(component.encode()) for component in components)
    except UnicodeEncodeError as error:
        raise InvalidRecordError(f"the path is not UTF-8: {path[:200]!r}") from error
    if longest > COMPONENT_BYTES:
        raise InvalidRecordError(
            f"a component of the path has more than {COMPONENT_BYTES} bytes: {path[:200]!r}"
        )
    if path.endswith(PART_SUFFIX):
        raise InvalidRecordError(f"the path is reserved for unfinished objects: {path[:200]!r}")
    return path


def check_prefix(prefix: str) -> str:
    """Return the prefix if a path that passes `check_path` can start with it.

    Raises:
        PathEscapeError: see `check_path`.
        InvalidRecordError: see `check_path`.
    """
    if prefix:
        check_path(prefix.removesuffix("/").removesuffix(PART_SUFFIX))
    return prefix
