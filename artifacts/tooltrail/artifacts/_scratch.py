"""Local files that a sink can take stored objects from."""

import contextlib
import io
import shutil
import tempfile
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from tooltrail.artifacts._private import create_private, make_private_folders
from tooltrail.artifacts._repacking import is_scattered, repack
from tooltrail.artifacts.capture import CapturedStream
from tooltrail.artifacts.codec import READ_SIZE, encode_into
from tooltrail.artifacts.frame_index import FrameIndex
from tooltrail.artifacts.limits import DEFAULT_LIMITS, CaptureLimits
from tooltrail.records.errors import DamageError, InvalidRecordError, UnavailableError


@dataclass(frozen=True, slots=True)
class Source:
    """A local file with a stored object, and its index, None when it has none."""

    file: Path
    index: FrameIndex | None


@contextlib.contextmanager
def source_of(
    captured: CapturedStream, scratch: Path | None, frame_size: int, limits: CaptureLimits
) -> Generator[Source]:
    """A local file with the stored object of a stream; see `ArtifactArchive.publish`."""
    if captured.staged is not None:
        _refuse_cut(captured.staged, captured.stored_size)
        with contextlib.ExitStack() as stack:
            packed = _packed(captured, scratch, frame_size, limits, stack)
            yield packed or Source(captured.staged, captured.index)
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

    The new file takes the place of the old one at once; who has that open reads it to its end.
    What cannot be done, for want of room or since the file is damaged, is left as it is.

    Args:
        captured: what was captured.
        frame_size: plain bytes in a full frame.
        limits: what must stay free on the disk.
    """
    staged = captured.staged
    if staged is None:
        return captured
    with contextlib.suppress(OSError, UnavailableError), contextlib.ExitStack() as stack:
        packed = _packed(captured, staged.parent, frame_size, limits, stack)
        if packed is not None and packed.index is not None:
            packed.file.replace(staged)
            return CapturedStream(captured.record, staged, packed.index.object_size, packed.index)
    return captured


def _packed(
    captured: CapturedStream,
    scratch: Path | None,
    frame_size: int,
    limits: CaptureLimits,
    stack: contextlib.ExitStack,
) -> Source | None:
    """A staged object in full frames, until the stack ends; None when it is as good as it is.

    None too when it is damaged: all frames but one may be good, and `verify` says which one.

    Raises:
        UnavailableError: it cannot be read.
    """
    staged = captured.staged
    if staged is None or not is_scattered(captured.index, frame_size):
        return None
    with contextlib.ExitStack() as own:
        try:
            file = own.enter_context(_temporary(scratch))
        except UnavailableError:
            return None
        try:
            # No room for records is taken for what saves some room.
            if limits.refusal(file.parent, 0, staged.stat().st_size) is not None:
                return None
            index = repack(staged, file, captured.record.digest, frame_size)
        except (OSError, DamageError):
            return None
        stack.push(own.pop_all())
    return Source(file, index)


def _refuse_cut(staged: Path, stored_size: int | None) -> None:
    """Compare sizes, which finds what a crash or a clean-up cuts without reading the file."""
    try:
        found = staged.stat().st_size
    except FileNotFoundError as error:
        raise InvalidRecordError(f"there is no file {staged} to publish") from error
    except OSError as error:
        raise UnavailableError(f"cannot read {staged}: {error.strerror}") from error
    if stored_size is not None and found != stored_size:
        raise DamageError(
            f"staged file {staged} is damaged: it has {found} bytes,"
            f" and had {stored_size} when its capture was closed",
            path=str(staged),
        )


@contextlib.contextmanager
def _temporary(scratch: Path | None) -> Generator[Path]:
    """The name for one file in a private folder that is removed at the end."""
    with contextlib.ExitStack() as stack:
        with _writing("temporary file"):
            if scratch is not None:
                make_private_folders(scratch)
            # What was published is not to be reported as failed because of a leftover.
            folder = tempfile.TemporaryDirectory(
                prefix="tooltrail-", dir=scratch, ignore_cleanup_errors=True
            )
            name = stack.enter_context(folder)
        yield Path(name, "object.zst")


@contextlib.contextmanager
def _writing(what: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise UnavailableError(f"no {what}: {error.strerror}") from error
