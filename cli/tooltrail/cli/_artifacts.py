"""What `tooltrail artifact` does with stored objects."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Literal

from tooltrail.artifacts import artifact_path, check_path, path_beginning
from tooltrail.cli._output import write_block
from tooltrail.cli._times import shown
from tooltrail.records import (
    AmbiguousNameError,
    DamageError,
    MissingArtifactError,
    NotFoundError,
    UnavailableError,
)
from tooltrail.records.digests import parse_digest
from tooltrail.records.errors import InvalidRecordError
from tooltrail.store import ArtifactView, Store

MIN_PREFIX = 4
_CANDIDATES = 5
_BLOCK = 1 << 20
"""Bytes that are held at once."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What verifying one artifact found.

    Attributes:
        path: of the artifact.
        state: how it is.
        size: plain bytes that the store expects.
        reason: one sentence, empty when it is right.
    """

    path: str
    state: Literal["ok", "damaged", "missing", "unreadable"]
    size: int
    reason: str = ""


def find_artifact(store: Store, name: str) -> str:
    """The artifact path that a name means: a path, a digest, or a unique beginning of its digits.

    Raises:
        PathEscapeError: a path that leaves the artifact root.
        AmbiguousNameError: more than one digest begins so.
        NotFoundError: none does.
    """
    if name.startswith("sha256:"):
        return artifact_path(parse_digest(name))
    if "/" in name or not _is_hex(name):
        check_path(name)
        return name
    fits = [view.path for view in store.reader.artifacts(beginning=path_beginning(name))]
    if len(fits) > 1:
        raise AmbiguousNameError(name, fits[:_CANDIDATES])
    if not fits:
        raise NotFoundError(f"the store knows no artifact {name}")
    return fits[0]


def copy_head(source: BinaryIO, target: BinaryIO, lines: int) -> None:
    """Copy the first lines at constant memory, however long a line is."""
    while lines and (block := source.read(_BLOCK)):
        end, lines = _after_lines(block, lines)
        write_block(target, block[:end])


def copy_tail(store: Store, path: str, target: BinaryIO, lines: int) -> None:
    """Copy the last lines at constant memory: the store knows how many there are in all."""
    known = _known(store, path)
    total = known.line_count if known else _count_lines(store, path)
    skip = max(total - lines, 0)
    with store.archive.open(path) as source:
        while block := source.read(_BLOCK):
            start, skip = _after_lines(block, skip)
            # What follows the last line that is skipped; of a line that is not over, nothing.
            write_block(target, b"" if skip else block[start:])


def _known(store: Store, path: str) -> ArtifactView | None:
    """What the store knows of an artifact, None when nothing refers to it."""
    return next(iter(store.reader.artifacts(beginning=path)), None)


def _after_lines(block: bytes, lines: int) -> tuple[int, int]:
    """Where so many lines of a block end, and how many of them end beyond it."""
    count = block.count(b"\n")
    if count < lines:
        return len(block), lines - count
    end = 0
    for _ in range(lines):
        end = block.index(b"\n", end) + 1
    return end, 0


def facts_of(store: Store, path: str) -> dict[str, Any]:
    """What the sink and the store know of an artifact.

    Raises:
        MissingArtifactError: the sink has no such object.
    """
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


def fact_lines(facts: Mapping[str, Any], *, utc: bool) -> Iterator[str]:
    """The facts for people, one a line."""
    for name, value in facts.items():
        if name == "referenced_by":
            continue
        text = shown(value, utc=utc) if name.endswith("_at") else str(value)
        yield f"{name.replace('_', ' '):12} {text}"
    for owner in facts["referenced_by"]:
        yield f"{'referred by':12} {owner}"


def verify_artifacts(store: Store, paths: Sequence[str]) -> list[Verdict]:
    """Read artifacts through: those named, else all that the store refers to."""
    sizes = {view.path: view.size for view in store.reader.artifacts()}
    return [_verify(store, path, sizes.get(path)) for path in (paths or sizes)]


def _verify(store: Store, path: str, size: int | None) -> Verdict:
    try:
        found = store.archive.verify(path, size=size)
    except MissingArtifactError as error:
        return Verdict(path, "missing", size or 0, str(error))
    except DamageError as error:
        return Verdict(path, "damaged", size or 0, str(error))
    except UnavailableError as error:
        return Verdict(path, "unreadable", size or 0, str(error))
    return Verdict(path, "ok", found)


def _count_lines(store: Store, path: str) -> int:
    count, last = 0, b"\n"
    with store.archive.open(path) as source:
        while block := source.read(_BLOCK):
            count, last = count + block.count(b"\n"), block[-1:]
    return count + (last != b"\n")


def _is_hex(name: str) -> bool:
    if len(name) < MIN_PREFIX:
        raise InvalidRecordError(f"{name!r} is too short to name an artifact")
    return all(c in "0123456789abcdef" for c in name)
