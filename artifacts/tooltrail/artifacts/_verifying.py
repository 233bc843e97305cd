"""Read a complete stored object, and compare it with its path, its index and its row."""

import hashlib
from typing import NamedTuple

from tooltrail.artifacts._ahead import ahead
from tooltrail.artifacts._checked import check_digest
from tooltrail.artifacts._frames import Block, Frames, open_frames
from tooltrail.artifacts.sink import ArtifactSink
from tooltrail.records.errors import DamageError, IndexMismatchError


class _CountedBlock(NamedTuple):
    plain: bytes
    newline_count: int


def verify_object(
    sink: ArtifactSink, path: str, *, size: int | None = None, line_count: int | None = None
) -> int:
    """Decode every frame of an object, and return its plain size.

    Args:
        sink: sink that stores the object.
        path: path of the object.
        size: expected plain size in bytes.
        line_count: expected number of lines.

    Raises:
        IndexMismatchError: the content is correct, but the newlines in the index or `line_count`
            are not.
        DigestMismatchError: the content has another size or digest.
        DamageError: a frame is cut or altered; the index is altered, missing, or of other frames.
        MissingArtifactError: no object has this path.
        UnavailableError: the sink is unavailable.
    """
    frames = open_frames(sink, path, size)
    found = sink.stat(path).stored_size
    if found != frames.index.object_size:
        raise DamageError(
            f"artifact {path} is damaged: it has {found:,} stored bytes, but its index describes"
            f" {frames.index.object_size:,}",
            path=path,
        )
    differences, lines = compare_content(frames, path)
    if line_count not in (None, lines):
        differences.append(f"{lines:,} lines found, {line_count:,} expected")
    if differences:
        raise IndexMismatchError(path, differences)
    return frames.index.plain_size


def compare_content(frames: Frames, path: str) -> tuple[list[str], int]:
    """Decode every frame, and compare the digest of the content with the object's path.

    Returns:
        The frames whose newlines differ from the index, in words; and the number of lines.

    Raises:
        DigestMismatchError: the content has another digest.
        DamageError, MissingArtifactError, UnavailableError: see `Frames.blocks`.
    """
    index, hasher, differences = frames.index, hashlib.sha256(), list[str]()
    newlines, end = 0, b"\n"
    for frame, block in enumerate(ahead(frames, _count_newlines)):
        hasher.update(block.plain)
        newlines += block.newline_count
        end = block.plain[-1:] or end
        if block.newline_count != index.newlines_in(frame):
            differences.append(
                f"its index: frame {frame:,}: newlines {block.newline_count:,} found,"
                f" {index.newlines_in(frame):,} expected"
            )
    check_digest(path, hasher.hexdigest())
    return differences, newlines + (end != b"\n")


def _count_newlines(block: Block) -> _CountedBlock:
    return _CountedBlock(block.plain, block.plain.count(b"\n"))
