"""Staged files as they are found, whatever was known of them when their captures were closed.

A call that put a file into full frames may have been interrupted before anybody got its result, and
any file can be altered on a disk. Frames and digests tell what is there.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from io import SEEK_END
from pathlib import Path

from tooltrail.artifacts._decoding import read_frame
from tooltrail.artifacts.capture import CapturedStream
from tooltrail.artifacts.codec import READ_SIZE, count_newlines, open_plain, write_whole
from tooltrail.artifacts.frame_index import Frame, FrameIndex, IndexBuilder, read_index
from tooltrail.artifacts.frame_spans import iter_spans
from tooltrail.records.digests import Digest, hex_of
from tooltrail.records.errors import DamageError, InvalidRecordError, UnavailableError


def plain_blocks(staged: Path, digest: Digest, size: int = READ_SIZE) -> Iterator[bytes]:
    """The plain bytes of a staged file, which are compared with a digest at their end.

    Args:
        staged: the file.
        digest: that they must have.
        size: of each block but the last.

    Raises:
        DamageError: they are others.
        UnavailableError: the file cannot be read any further.
        OSError: it cannot be opened.
    """
    hasher = sha256()
    with open_plain(staged.open("rb"), path=str(staged)) as plain:
        while block := plain.read(size):
            hasher.update(block)
            yield block
    if hasher.hexdigest() != hex_of(digest):
        raise DamageError(
            f"staged file {staged} is damaged: its content has another digest than was captured",
            path=str(staged),
        )


def is_sound(staged: Path, index: FrameIndex | None, digest: Digest) -> bool:
    """Whether a file has the plain bytes of a digest, and ends with an index, if it is to.

    Raises:
        UnavailableError: it cannot be read.
    """
    try:
        if index != _own_index(staged):
            return False
        for _ in plain_blocks(staged, digest):
            pass
    except DamageError:
        return False
    except OSError as error:
        raise _unreadable(staged, error) from error
    return True


def as_it_stands(captured: CapturedStream) -> CapturedStream:
    """A closed capture with the size and the index that its staged file has now.

    While the size is that which its capture left it with, the file is not read: that finds what a
    crash or a clean-up cuts. Of another size it must have the same content in other frames.

    Raises:
        InvalidRecordError: there is no staged file.
        DamageError: it has other content.
        UnavailableError: it cannot be read.
    """
    staged, digest = captured.staged, captured.record.digest
    assert staged is not None
    try:
        found = staged.stat().st_size
        if captured.stored_size in (None, found):
            return captured
        with suppress(DamageError):
            index = _own_index(staged)
            if index and index.object_size == found and is_sound(staged, index, digest):
                return replace(captured, stored_size=found, index=index)
    except FileNotFoundError as error:
        raise InvalidRecordError(f"there is no file {staged} to publish") from error
    except OSError as error:
        raise _unreadable(staged, error) from error
    raise DamageError(
        f"staged file {staged} is damaged: it has {found} bytes,"
        f" and had {captured.stored_size} when its capture was closed",
        path=str(staged),
    )


@dataclass(frozen=True, slots=True)
class FoundFrames:
    """The whole frames at the beginning of a file.

    Attributes:
        index: of these frames.
        problem: why there are no more where there should be, in one sentence; None when the file
            ends behind them, or goes on with an index or a part of one.
    """

    index: FrameIndex
    problem: str | None = None


def find_frames(staged: Path) -> FoundFrames:
    """Decode a file up to the first frame that is not whole, one frame in memory at a time.

    Raises:
        OSError: it cannot be read.
    """
    builder, stop = IndexBuilder(), 0
    with staged.open("rb") as stored:
        try:
            for span in iter_spans(stored, str(staged)):
                if not span.is_data:
                    return FoundFrames(builder.build())
                data, plain = read_frame(stored, span, str(staged))
                builder.add(Frame(data, len(plain), count_newlines(plain)))
                stop = span.stop
        except DamageError as error:
            return FoundFrames(builder.build(), str(error))
        stored.seek(stop)
        rest = stored.read(1)
    is_cut = rest and rest[0] >> 4 != _SKIPPABLE
    problem = f"{staged} is damaged: it ends inside the frame at byte {stop:,}"
    return FoundFrames(builder.build(), problem if is_cut else None)


def add_index(staged: Path) -> FrameIndex:
    """Write the index behind the frames of a file that was closed on a full disk.

    Raises:
        DamageError: the file does not hold whole frames, and nothing else.
        UnavailableError: it cannot be read, or there is still no room.
    """
    try:
        found = find_frames(staged)
        size = staged.stat().st_size
        if found.problem is not None or size != found.index.frames_size:
            reason = found.problem or f"it goes on behind its frames at byte {size:,}"
            raise DamageError(f"staged file {staged} is damaged: {reason}", path=str(staged))
        with staged.open("ab", buffering=0) as stored:
            try:
                write_whole(stored, found.index.to_bytes())
            except OSError:
                stored.truncate(size)
                raise
    except OSError as error:
        raise UnavailableError(f"no index for {staged}: {error.strerror}") from error
    return found.index


_SKIPPABLE = 5
"""Upper half of the first byte of a frame without data, which an index begins with."""


def _own_index(staged: Path) -> FrameIndex | None:
    with staged.open("rb") as stored:

        def read_end(size: int) -> bytes:
            stored.seek(max(0, stored.seek(0, SEEK_END) - size))
            return stored.read(size)

        return read_index(read_end, str(staged))


def _unreadable(staged: Path, error: OSError) -> UnavailableError:
    return UnavailableError(f"cannot read {staged}: {error.strerror}")
