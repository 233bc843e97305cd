"""Reads a stored object through and compares all that is told of it with what is there."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tooltrail.artifacts._content_checks import check_digest, check_size
from tooltrail.artifacts._index_checks import PlainCheck, differences, has_same_frames
from tooltrail.artifacts._walking import Walked, walk
from tooltrail.artifacts.frame_index import FrameIndex
from tooltrail.artifacts.sink import ArtifactSink
from tooltrail.records.errors import IndexMismatchError

_OWN = "its own index"
_STORED = "the index that the store has of it"


@dataclass(frozen=True, slots=True)
class Told:
    """What is told of an artifact, each None when nobody does.

    Attributes:
        size: plain bytes.
        line_count: lines of them.
        index: of its frames; bytes as `FrameIndex.to_bytes` gives them, which may be altered.
    """

    size: int | None = None
    line_count: int | None = None
    index: FrameIndex | bytes | None = None


def verify_object(sink: ArtifactSink, path: str, own: FrameIndex | None, told: Told) -> Walked:
    """Compare an object with its name, with its own index and with what is told of it.

    Raises:
        IndexMismatchError: its content is right, and something that is told of it is not.
        DigestMismatchError: its content has another size or digest.
        MissingArtifactError, DamageError, UnavailableError: see `walk`.
    """
    index = FrameIndex.unaltered(told.index)
    # Most are the same, and then there is nothing to be counted twice.
    check = None if index is None or index == own else PlainCheck(index)
    found = walk(sink, path, own, None if check is None else check.see)
    check_size(path, found.index.plain_size, told.size)
    check_digest(path, found.digits)
    wrong = [
        *_named(_OWN, () if own is None else differences(own, found.index)),
        *_named(_STORED, _wrong_in_store(told, index, check, found)),
    ]
    if wrong:
        raise IndexMismatchError(path, wrong)
    return found


def _wrong_in_store(
    told: Told, index: FrameIndex | None, check: PlainCheck | None, found: Walked
) -> Iterator[str]:
    if told.line_count not in (None, found.line_count):
        yield f"{found.line_count:,} lines found, {told.line_count:,} expected"
    if told.index is not None and index is None:
        yield "it was altered"
    if index is None:
        return
    if check is None or has_same_frames(index, found.index):
        yield from differences(index, found.index)
    else:
        # The object was replaced since, by the same content in other frames: no damage.
        yield from check.differences()


def _named(name: str, found: Iterable[str]) -> Iterator[str]:
    return (f"{name}: {difference}" for difference in found)
