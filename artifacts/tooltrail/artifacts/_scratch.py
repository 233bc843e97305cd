"""Local files that a sink can take stored objects from."""

import contextlib
import io
import os
import secrets
import shutil
import tempfile
from collections.abc import Generator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from tooltrail.artifacts._local import sync_folder
from tooltrail.artifacts._private import create_private, make_private_folders
from tooltrail.artifacts._repacking import is_scattered, repack
from tooltrail.artifacts._staged import add_index, as_it_stands
from tooltrail.artifacts.capture import CapturedStream
from tooltrail.artifacts.codec import READ_SIZE, encode_into
from tooltrail.artifacts.frame_index import FrameIndex
from tooltrail.artifacts.limits import DEFAULT_LIMITS, CaptureLimits
from tooltrail.artifacts.spool_folders import SCRATCH_PREFIX
from tooltrail.records.errors import DamageError, InvalidRecordError, UnavailableError


@dataclass(frozen=True, slots=True)
class Source:
    """A local file with a stored object.

    Attributes:
        file: with the object.
        index: of the object, None when it has none.
        is_damaged: whether it was found to hold something else than was captured; a staged file
            that stays as it is was not looked through.
    """

    file: Path
    index: FrameIndex | None
    is_damaged: bool = False


@contextlib.contextmanager
def source_of(
    captured: CapturedStream, scratch: Path | None, frame_size: int, limits: CaptureLimits
) -> Generator[Source]:
    """A local file with the stored object of a stream; see `ArtifactArchive.publish`."""
    staged = captured.staged
    if staged is not None:
        captured = as_it_stands(captured)
        if captured.index is None:
            captured = replace(captured, index=add_index(staged))
        with contextlib.ExitStack() as stack:
            yield _best_of(
                captured, staged, scratch, frame_size=frame_size, limits=limits, stack=stack
            )
        return
    content = captured.record.content
    if content is None:
        raise InvalidRecordError(f"there are no bytes of {captured.record.role} to publish")
    with _temporary(scratch) as file:
        with _writing(f"temporary file for {captured.record.role}"), create_private(file) as raw:
            index = encode_into(raw, content, frame_size)
        yield Source(file, index)


@contextlib.contextmanager
def copy_of(stored: BinaryIO, path: str, scratch: Path | None) -> Generator[Path]:
    """A local file with the bytes of a stream; `path` names it in errors."""
    with _temporary(scratch) as copy:
        with _writing(f"copy of {path}"), io.BufferedWriter(create_private(copy)) as file:
            shutil.copyfileobj(stored, file, READ_SIZE)
        yield copy


def in_full_frames(
    captured: CapturedStream, frame_size: int, limits: CaptureLimits = DEFAULT_LIMITS
) -> CapturedStream:
    """A closed capture whose staged file takes less room, if that came slowly in many small frames.

    The new file is synced and takes the place of the old one at once; who has that open reads it to
    its end. What cannot be done, for want of room or since the file is damaged, is left as it is.
    Idempotent: for a capture whose file was replaced by a call that was interrupted, the file is
    read, and its size and its index are given.

    Args:
        captured: what was captured.
        frame_size: plain bytes in a full frame.
        limits: what must stay free on the disk.
    """
    staged = captured.staged
    if staged is None:
        return captured
    with (
        contextlib.suppress(OSError, DamageError, InvalidRecordError, UnavailableError),
        contextlib.ExitStack() as stack,
    ):
        captured = as_it_stands(captured)
        best = _best_of(
            captured, staged, staged.parent, frame_size=frame_size, limits=limits, stack=stack
        )
        if best.file != staged and best.index is not None:
            _take_the_place(best.file, staged)
            return replace(captured, stored_size=best.index.object_size, index=best.index)
    return captured


def _best_of(
    captured: CapturedStream,
    staged: Path,
    scratch: Path | None,
    *,
    frame_size: int,
    limits: CaptureLimits,
    stack: contextlib.ExitStack,
) -> Source:
    """A staged object in full frames, until the stack ends; itself when it is as good as it is.

    Itself too when it is damaged: all frames but one may be good, and `verify` says which one.

    Raises:
        UnavailableError: it cannot be read.
    """
    itself = Source(staged, captured.index)
    if not is_scattered(captured.index, frame_size):
        return itself
    with contextlib.ExitStack() as own:
        try:
            file = own.enter_context(_temporary(scratch))
        except UnavailableError:
            return itself
        try:
            # No room for records is taken for what saves some room.
            if limits.refusal(file.parent, staged.stat().st_size) is not None:
                return itself
            index = repack(staged, file, captured.record.digest, frame_size)
        except OSError:
            return itself
        except DamageError:
            return replace(itself, is_damaged=True)
        stack.push(own.pop_all())
    return Source(file, index)


def _take_the_place(file: Path, staged: Path) -> None:
    """Replace a staged file, so that after a power loss one of both is there, and whole.

    Raises:
        OSError: it was not replaced.
    """
    with file.open("rb") as new:
        os.fsync(new.fileno())
    file.replace(staged)
    # Which of both it is then, nobody needs to know.
    with contextlib.suppress(OSError):
        sync_folder(staged.parent)


@contextlib.contextmanager
def _temporary(scratch: Path | None) -> Generator[Path]:
    """The name for one file in a private folder, which is removed at the end."""
    with contextlib.ExitStack() as stack:
        with _writing("temporary file"):
            if scratch is None:
                private = tempfile.TemporaryDirectory(
                    prefix=SCRATCH_PREFIX, ignore_cleanup_errors=True
                )
                folder = Path(stack.enter_context(private))
            else:
                make_private_folders(scratch)
                folder = scratch
        # Without the suffix of a stream, as which it would be found in a spool.
        file = folder / f"{SCRATCH_PREFIX}{secrets.token_hex(8)}"
        stack.callback(_remove, file)
        yield file


def _remove(file: Path) -> None:
    # What was published is not to be reported as failed because of a leftover.
    with contextlib.suppress(OSError):
        file.unlink(missing_ok=True)


@contextlib.contextmanager
def _writing(what: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise UnavailableError(f"no {what}: {error.strerror}") from error
