"""Names of stored objects: relative, normalised, and made from the digest of their plain bytes.

An artifact path is `sha256/ab/<64 hex digits>.zst`, where `ab` are the first two digits: a folder
then holds a 256th of the objects. The digest is of the bytes *before* compression, so a path never
depends on a codec's version.
"""

import re

from tooltrail.records.digests import ALGORITHM, Digest, digest_from_hex, hex_of
from tooltrail.records.errors import InvalidRecordError, PathEscapeError

PART_SUFFIX = ".part"
"""Ends the name of an object that is still being written; no object may have such a path."""

COMPONENT_BYTES = 200
"""Longest component of a path: file systems allow 255, of which the name of a part takes 22."""

_ARTIFACT = re.compile(rf"{ALGORITHM}/([0-9a-f]{{2}})/(\1[0-9a-f]{{62}})\.zst")
_NOT_COMPONENTS = frozenset({"", ".", ".."})


def artifact_path(digest: Digest) -> str:
    """The path of the object that holds the bytes of this digest."""
    digits = hex_of(digest)
    return f"{ALGORITHM}/{digits[:2]}/{digits}.zst"


def path_beginning(hex_digits: str) -> str:
    """How the paths begin of all artifacts whose digest begins with these digits, two or more."""
    return f"{ALGORITHM}/{hex_digits[:2]}/{hex_digits}"


def digest_of_path(path: str) -> Digest:
    """The digest that an artifact path promises.

    Raises:
        PathEscapeError: the path is not relative and normalised.
        InvalidRecordError: it is, but it is not the path of an artifact.
    """
    check_path(path)
    match = _ARTIFACT.fullmatch(path)
    if match is None:
        raise InvalidRecordError(f"not the path of an artifact: {path[:200]!r}")
    return digest_from_hex(match[2])


def check_path(path: str) -> str:
    """The same path, when it is relative, normalised and storable everywhere.

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
        raise InvalidRecordError(f"a path that is not UTF-8: {path[:200]!r}") from error
    if longest > COMPONENT_BYTES:
        raise InvalidRecordError(
            f"a path with a component of more than {COMPONENT_BYTES} bytes: {path[:200]!r}"
        )
    if path.endswith(PART_SUFFIX):
        raise InvalidRecordError(f"{path[:200]!r} is a name for unfinished objects")
    return path


def check_prefix(prefix: str) -> str:
    """The same prefix, when some path that passes `check_path` can start with it.

    Raises:
        PathEscapeError: see `check_path`.
        InvalidRecordError: see `check_path`.
    """
    if prefix:
        check_path(prefix.removesuffix("/").removesuffix(PART_SUFFIX))
    return prefix
