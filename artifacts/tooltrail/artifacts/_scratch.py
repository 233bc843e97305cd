"""Local files with stored objects, for `ArtifactSink.put`."""

import contextlib
import io
import os
import shutil
import tempfile
from collections.abc import Generator
from hashlib import sha256
from io import SEEK_END
from pathlib import Path
from typing import BinaryIO

from tooltrail.artifacts._decoding import read_frame
from tooltrail.artifacts._local import read_range
from tooltrail.artifacts.captured import CapturedStream
from tooltrail.artifacts.codec import (
    READ_SIZE,
    count_newlines,
    encode_into,
    open_plain,
    write_whole,
)
from tooltrail.artifacts.frame_index import Frame, FrameIndex, IndexBuilder, read_index
from tooltrail.artifacts.frame_spans import iter_spans
from tooltrail.artifacts.private_files import create_private, make_private_folders
from tooltrail.artifacts.spool_folders import SCRATCH_PREFIX
from tooltrail.records.digests import Digest, hex_of
from tooltrail.records.errors import (
    DamageError,
    InvalidRecordError,
    UnavailableError,
    unavailable_if_failing,
)
from tooltrail.records.frozen import Frozen


class Source(Frozen):
    """A local file with a stored object, and the index at its end."""

    file: Path
    index: FrameIndex


@contextlib.contextmanager
def source_of(captured: CapturedStream, scratch: Path | None, frame_size: int) -> Generator[Source]:
    """Provide a local file with the stored object of a stream; see `ArtifactArchive.publish`."""
    if captured.staged is not None:
        _check_size(captured, captured.staged)
        yield Source(captured.staged, captured.index or _add_index(captured.staged))
        return
    content = captured.record.content
    if content is None:
        raise InvalidRecordError(f"there are no bytes of {captured.record.role} to publish")
    with _temporary(scratch) as file:
        with (
            unavailable_if_failing(f"cannot write a temporary file for {captured.record.role}"),
            create_private(file) as raw,
        ):
            index = encode_into(raw, content, frame_size)
        yield Source(file, index)


def is_sound(source: Source, digest: Digest) -> bool:
    """Whether a file has the plain bytes of a digest, and ends with its index.

    Raises:
        UnavailableError: the file cannot be read.
    """
    hasher = sha256()
    try:
        if source.index != _own_index(source.file):
            return False
        with open_plain(source.file.open("rb"), path=str(source.file)) as plain:
            while block := plain.read(READ_SIZE):
                hasher.update(block)
    except DamageError:
        return False
    except OSError as error:
        raise _unreadable(source.file, error) from error
    return hasher.hexdigest() == hex_of(digest)


def _check_size(captured: CapturedStream, staged: Path) -> None:
    """Detect a file that a crash or a clean-up cut, by its size alone."""
    try:
        found = staged.stat().st_size
    except FileNotFoundError as error:
        raise InvalidRecordError(f"there is no file {staged} to publish") from error
    except OSError as error:
        raise _unreadable(staged, error) from error
    if captured.stored_size not in (None, found):
        raise DamageError(
            f"staged file {staged} is damaged: it has {found} bytes,"
            f" but had {captured.stored_size} when its capture was closed",
            path=str(staged),
        )


def _add_index(staged: Path) -> FrameIndex:
    """Append the missing index to a file that was closed on a full disk, and return the index.

    Raises:
        DamageError: the file contains other bytes than complete frames.
        UnavailableError: the file cannot be read, or the disk is still full.
    """
    try:
        own = _own_index(staged)
        if own is not None:
            return own
        builder, stop = IndexBuilder(), 0
        with staged.open("r+b", buffering=0) as stored:
            for span in iter_spans(stored, str(staged)):
                data, plain = read_frame(stored, span, str(staged))
                builder.add(Frame(data, len(plain), count_newlines(plain)))
                stop = span.stop
            if stored.seek(0, SEEK_END) != stop:
                raise DamageError(
                    f"staged file {staged} is damaged: it ends inside a frame", path=str(staged)
                )
            index = builder.build()
            try:
                write_whole(stored, index.to_bytes())
            except OSError:
                stored.truncate(stop)
                raise
    except OSError as error:
        raise UnavailableError(f"cannot add an index to {staged}: {error.strerror}") from error
    return index


def _own_index(staged: Path) -> FrameIndex | None:
    return read_index(lambda size: read_range(staged, -size, None), str(staged))


def _unreadable(staged: Path, error: OSError) -> UnavailableError:
    return UnavailableError(f"cannot read {staged}: {error.strerror}")


@contextlib.contextmanager
def copy_of(stored: BinaryIO, path: str, scratch: Path | None) -> Generator[Path]:
    """Provide a local file with the bytes of `stored`; `path` names the object in errors."""
    with _temporary(scratch) as copy:
        with (
            unavailable_if_failing(f"cannot copy {path} to {copy.parent}"),
            io.BufferedWriter(create_private(copy)) as file,
        ):
            shutil.copyfileobj(stored, file, READ_SIZE)
        yield copy


@contextlib.contextmanager
def _temporary(scratch: Path | None) -> Generator[Path]:
    """Provide a name for one file in a private folder; the file is removed at the end."""
    with contextlib.ExitStack() as stack:
        with unavailable_if_failing("cannot write a temporary file"):
            if scratch is None:
                private = tempfile.TemporaryDirectory(
                    prefix=SCRATCH_PREFIX, ignore_cleanup_errors=True
                )
                folder = Path(stack.enter_context(private))
            else:
                make_private_folders(scratch)
                folder = scratch
        # Without the suffix of a stream: `spooled_streams` must not find this file.
        file = folder / f"{SCRATCH_PREFIX}{os.urandom(8).hex()}"
        stack.callback(_remove, file)
        yield file


def _remove(file: Path) -> None:
    # A leftover file must not make a successful publication fail.
    with contextlib.suppress(OSError):
        file.unlink(missing_ok=True)
