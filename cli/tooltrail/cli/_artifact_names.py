"""The ways in which people name an artifact."""

from typing import NamedTuple

from tooltrail.artifacts.paths import artifact_path, check_path, path_beginning
from tooltrail.records.digests import parse_digest
from tooltrail.records.errors import InvalidRecordError

MIN_PREFIX = 4


class ArtifactName(NamedTuple):
    """What a name says of an artifact's path: the whole of it, or how it begins."""

    path: str
    is_whole: bool


def parse_name(name: str) -> ArtifactName:
    """Read a path, a digest, or the first of its digits.

    Raises:
        PathEscapeError: a path that leaves the artifact root.
        InvalidRecordError: a digest that is none, or too few digits.
    """
    if name.startswith("sha256:"):
        return ArtifactName(artifact_path(parse_digest(name)), is_whole=True)
    if "/" in name or not _is_hex(name):
        return ArtifactName(check_path(name), is_whole=True)
    return ArtifactName(path_beginning(name), is_whole=False)


def _is_hex(name: str) -> bool:
    if len(name) < MIN_PREFIX:
        raise InvalidRecordError(f"{name!r} is too short to name an artifact")
    return all(c in "0123456789abcdef" for c in name)
