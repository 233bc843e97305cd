"""The work of `tooltrail artifact`: find, open, describe and verify stored objects."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from tooltrail.artifacts import ArtifactReader
from tooltrail.artifacts.paths import artifact_path, check_path, path_beginning
from tooltrail.cli._long_commands import progress_bar
from tooltrail.cli._times import shown
from tooltrail.records import (
    AmbiguousNameError,
    DamageError,
    IndexMismatchError,
    InvalidRecordError,
    MissingArtifactError,
    NotFoundError,
    UnavailableError,
)
from tooltrail.records.digests import parse_digest
from tooltrail.records.frozen import Frozen
from tooltrail.store import ArtifactView, Store

MIN_PREFIX = 4
"""Minimum digits of a digest that can name an artifact."""

_BEGINNING = re.compile(r"sha256:([0-9a-f]{,63})|([0-9a-f]+)")


class Verdict(Frozen):
    """The result of verifying one artifact.

    Attributes:
        path: path of the artifact.
        state: state of the artifact.
        size: plain bytes that the store expects.
        reason: one sentence about the problem; empty if the artifact is ok.
        differences: one sentence for each value of the object's index, or of the line count in the
            store, that differs from the content. `reason` contains the first ones.
    """

    path: str
    state: Literal["ok", "damaged", "missing", "unreadable"]
    size: int
    reason: str = ""
    differences: tuple[str, ...] = ()


def find_artifact(store: Store, name: str) -> str:
    """Find an artifact path by a path, a digest, or the unique beginning of a digest.

    Raises:
        PathEscapeError: the path leaves the artifact root.
        InvalidRecordError: the digest is invalid, or has too few digits.
        AmbiguousNameError: several digests have this beginning.
        NotFoundError: the store and the sink have no such artifact.
        UnavailableError: the sink cannot be read.
    """
    path, is_complete = _parse_name(name)
    fits = [view.path for view in store.reader.artifacts(beginning=path)]
    if is_complete and (path in fits or store.archive.exists(path)):
        return path
    if is_complete or not fits:
        raise NotFoundError(f"the store has no artifact {name}")
    if len(fits) > 1:
        raise AmbiguousNameError(name, fits)
    return fits[0]


def _parse_name(name: str) -> tuple[str, bool]:
    """The path that a name means, or its beginning, and whether the path is complete."""
    if "/" not in name and len(name.removeprefix("sha256:")) < MIN_PREFIX:
        raise InvalidRecordError(f"{name!r} is too short to name an artifact")
    if digits := _BEGINNING.fullmatch(name):
        return path_beginning(digits[1] or digits[2]), False
    if name.startswith("sha256:"):
        return artifact_path(parse_digest(name)), True
    return check_path(name), True


def open_known(store: Store, name: str) -> ArtifactReader:
    """Open the artifact with this name to read parts of it."""
    path = find_artifact(store, name)
    known = _known(store, path)
    return store.archive.reader(path, size=None if known is None else known.size)


def _known(store: Store, path: str) -> ArtifactView | None:
    """The row of an artifact; None if no record refers to the artifact."""
    return next(iter(store.reader.artifacts(beginning=path)), None)


def facts_of(store: Store, path: str) -> dict[str, Any]:
    """The members that `artifact stat` prints, from the sink and the store."""
    stat = store.archive.stat(path)
    known = _known(store, path)
    facts: dict[str, Any] = {"path": path, "stored_size": stat.stored_size}
    if known is None:
        return facts | {"referenced_by": []}
    return facts | {
        "digest": known.digest,
        "size": known.size,
        "line_count": known.line_count,
        "created_at": known.created_at,
        "referenced_by": [str(owner) for owner in store.reader.artifact_owners(path)],
    }


def fact_lines(facts: Mapping[str, Any]) -> Iterator[str]:
    """The members of `facts_of` as lines of text."""
    for name, value in facts.items():
        if name == "referenced_by":
            continue
        text = shown(value) if name.endswith("_at") else str(value)
        yield f"{name.replace('_', ' '):12} {text}"
    for owner in facts["referenced_by"]:
        yield f"{'referred by':12} {owner}"


def verify_artifacts(store: Store, paths: Sequence[str]) -> list[Verdict]:
    """Read and verify these artifacts, or all artifacts of the store if `paths` is empty."""
    known = {view.path: view for view in store.reader.artifacts()}
    chosen, verdicts, size = paths or list(known), list[Verdict](), 0
    with progress_bar("reading", len(chosen)) as update:
        for path in chosen:
            verdicts.append(_verify(store, path, known.get(path)))
            size += verdicts[-1].size
            update(len(verdicts), size)
    return verdicts


def states_of(bad: Sequence[Verdict]) -> str:
    """The number of bad artifacts in each state: `2 damaged, 1 missing`."""
    counts = Counter[str](verdict.state for verdict in bad)
    states = (state for state in ("damaged", "missing", "unreadable") if counts[state])
    return ", ".join(f"{counts[state]:,} {state}" for state in states) or "0 damaged or missing"


def _verify(store: Store, path: str, known: ArtifactView | None) -> Verdict:
    size, line_count = (None, None) if known is None else (known.size, known.line_count)
    expected = size or 0
    try:
        found = store.archive.verify(path, size=size, line_count=line_count)
    except MissingArtifactError as error:
        return Verdict(path, "missing", expected, str(error))
    except IndexMismatchError as error:
        return Verdict(path, "damaged", expected, str(error), error.differences)
    except DamageError as error:
        return Verdict(path, "damaged", expected, str(error))
    except UnavailableError as error:
        return Verdict(path, "unreadable", expected, str(error))
    return Verdict(path, "ok", found)
