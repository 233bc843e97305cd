"""The ways in which people name an artifact."""

import re
from typing import NamedTuple

from tooltrail.artifacts.paths import artifact_path, check_path, path_beginning
from tooltrail.records.digests import parse_digest
from tooltrail.records.errors import InvalidRecordError

MIN_PREFIX = 4
"""Fewest digits of a digest that name an artifact."""

_BEGINNING = re.compile(r"sha256:([0-9a-f]{,63})|([0-9a-f]+)")


class ArtifactName(NamedTuple):
    """What a name says of an artifact's path: the whole of it, or how it begins."""

    path: str
    is_whole: bool


def parse_name(name: str) -> ArtifactName:
    """Read a path, a digest, or how one begins, with `sha256:` or the digits alone.

    Raises:
        PathEscapeError: a path that leaves the artifact root.
        InvalidRecordError: a digest that is none, or too few digits.
    """
    if "/" not in name and len(name.removeprefix("sha256:")) < MIN_PREFIX:
        raise InvalidRecordError(f"{name!r} is too short to name an artifact")
    if digits := _BEGINNING.fullmatch(name):
        return ArtifactName(path_beginning(digits[1] or digits[2]), is_whole=False)
    if name.startswith("sha256:"):
        return ArtifactName(artifact_path(parse_digest(name)), is_whole=True)
    return ArtifactName(check_path(name), is_whole=True)
