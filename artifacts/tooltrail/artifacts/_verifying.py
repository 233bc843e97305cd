"""Reads a stored object through, and compares it with its name, its index and its row."""

import hashlib
from typing import NamedTuple

from tooltrail.artifacts._ahead import ahead
from tooltrail.artifacts._checked import check_digest
from tooltrail.artifacts._frames import Block, Frames, open_frames
from tooltrail.artifacts.sink import ArtifactSink
from tooltrail.records.errors import DamageError, IndexMismatchError


class _Seen(NamedTuple):
    plain: bytes
    newline_count: int


def verify_object(
    sink: ArtifactSink, path: str, *, size: int | None = None, line_count: int | None = None
) -> int:
    """Decode every frame of an object; return its plain bytes, counted.

    Args:
        sink: where the object is.
        path: of the object.
        size: plain bytes that the object must have.
        line_count: lines that it must have.

    Raises:
        IndexMismatchError: the content is right, and the newlines in its index or `line_count` are
            not.
        DigestMismatchError: the content has another size or digest.
        DamageError: a frame is cut or altered; the index is altered, missing, or of other frames.
        MissingArtifactError: no object stands there.
        UnavailableError: the sink cannot serve.
    """
    frames = open_frames(sink, path, size)
    found = sink.stat(path).stored_size
    if found != frames.index.object_size:
        raise DamageError(
            f"artifact {path} is damaged: it has {found:,} stored bytes, and its index is of"
            f" {frames.index.object_size:,}",
            path=path,
        )
    differences, lines = _compare(frames, path)
    if line_count not in (None, lines):
        differences.append(f"{lines:,} lines found, {line_count:,} expected")
    if differences:
        raise IndexMismatchError(path, differences)
    return frames.index.plain_size


def check_content(frames: Frames, path: str) -> None:
    """Decode every frame, and compare the digest of the content with the object's name.

    Raises:
        DigestMismatchError: the content has another digest.
        DamageError, MissingArtifactError, UnavailableError: see `Frames.blocks`.
    """
    hasher = hashlib.sha256()
    for block in ahead(frames, lambda block: block):
        hasher.update(block.plain)
    check_digest(path, hasher.hexdigest())


def _compare(frames: Frames, path: str) -> tuple[list[str], int]:
    """Where the index counts other newlines than its frames have; and how many lines there are."""
    index, hasher, differences = frames.index, hashlib.sha256(), list[str]()
    newlines, end = 0, b"\n"
    for frame, seen in enumerate(ahead(frames, _look_at)):
        hasher.update(seen.plain)
        newlines += seen.newline_count
        end = seen.plain[-1:] or end
        if seen.newline_count != index.newlines_in(frame):
            differences.append(
                f"its index: frame {frame:,}: newlines {seen.newline_count:,} found,"
                f" {index.newlines_in(frame):,} expected"
            )
    check_digest(path, hasher.hexdigest())
    return differences, newlines + (end != b"\n")


def _look_at(block: Block) -> _Seen:
    return _Seen(block.plain, block.plain.count(b"\n"))
