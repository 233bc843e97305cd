"""The spool file of one running capture."""

import contextlib
from io import FileIO
from pathlib import Path

from tooltrail.artifacts.codec import FrameWriter
from tooltrail.artifacts.frame_index import Frame, FrameIndex
from tooltrail.artifacts.limits import DEFAULT_LIMITS, CaptureLimits
from tooltrail.artifacts.private_files import create_private, make_private_folders


class SpoolFile:
    """A spool file that grows by frames; never raises `OSError`.

    Only the owner may use the file and the folders that are made for it: modes 0600 and 0700.

    Attributes:
        path: path of the file, also before the file exists.
        failure: reason why nothing more is written, in words; None if there was no failure.
        index: index of the closed file; None if the disk was full.
    """

    def __init__(self, path: Path, limits: CaptureLimits = DEFAULT_LIMITS) -> None:
        """Prepare; `create` makes the file."""
        self.path = path
        self._limits = limits
        self.failure: str | None = None
        self.index: FrameIndex | None = None
        self._raw: FileIO | None = None
        self._writer: FrameWriter | None = None
        self._is_sound = False

    @property
    def stored_size(self) -> int:
        """Bytes of the complete frames: the size of an undamaged file when it is closed."""
        return self._writer.stored_size if self._writer else 0

    def create(self) -> None:
        """Make the file and its folders; later calls do nothing, also after a failure."""
        if self._writer is not None or self.failure is not None:
            return
        try:
            make_private_folders(self.path.parent)
            # Exclusive: an existing file may be all that is left of a killed run.
            self._raw = create_private(self.path)
        except OSError as error:
            self.failure = _why(error)
        else:
            self._is_sound = True
            self._writer = FrameWriter(self._raw)

    def extend(self, part: bytes) -> str | None:
        """Add a part of an incomplete frame; return the reason if that failed, else None.

        After a failure, call `end_with`.
        """
        if self._writer is None or self.failure is not None:
            return self.failure
        try:
            refusal = self._limits.refusal(self.path.parent, len(part))
            if refusal is None:
                self._writer.extend(part)
        except OSError as error:
            return _why(error)
        return refusal

    def append(self, frame: Frame) -> bool:
        """Add one frame, or the rest of it; False after a failure, and then for ever."""
        if self._writer is None or self.failure is not None:
            return False
        try:
            more = len(frame.data) - self._writer.open_size
            self.failure = self._limits.refusal(self.path.parent, more)
            if self.failure is None:
                self._writer.append(frame)
        except OSError as error:
            self.failure = _why(error)
        if self.failure is not None:
            self.go_back()
        return self.failure is None

    def end_with(self, frame: Frame | None, reason: str) -> bool:
        """Replace the parts of an unfinished frame by a smaller frame, and add nothing more.

        Returns:
            Whether the frame was written.
        """
        self.go_back()
        self.stop(reason)
        if frame is None or self._writer is None or not self._is_sound:
            return False
        try:
            self._writer.append(frame)
        except OSError:
            self.go_back()
            return False
        return True

    def go_back(self, frame_count: int | None = None) -> None:
        """Cut the file after the first `frame_count` frames, by default after all complete ones."""
        if self._raw is not None and self._writer is not None and not self._raw.closed:
            if frame_count is not None:
                self._writer.go_back(frame_count)
            self._writer.open_size = 0
            self._cut(self._writer.stored_size)

    def stop(self, reason: str) -> None:
        """Add nothing more, for this reason."""
        if self.failure is None:
            self.failure = reason

    def close(self) -> Path | None:
        """Close and return the file, if it contains only frames, at least one, and their index.

        After an interruption, the caller may call again.
        """
        if self._raw is None:
            return None
        if self._writer is None:  # `create` was interrupted
            self._raw.close()
            return None
        has_frames = self._writer.stored_size > 0
        if has_frames and self._is_sound and not self._raw.closed:
            self._add_index(self._writer)
        try:
            self._raw.close()
        except OSError as error:
            # Network file systems report here that earlier writes failed.
            self.failure = _why(error)
            self._is_sound = False
        return self.path if self._is_sound and has_frames else None

    def remove(self) -> None:
        """Delete the file if this object made it; a failed deletion is ignored."""
        if self._raw is not None:
            # Nothing refers to the file, and clean-up finds it in its folder.
            with contextlib.suppress(OSError):
                self.path.unlink(missing_ok=True)

    def _add_index(self, writer: FrameWriter) -> None:
        # Without an index the frames are complete but slower to find. That is not a failure.
        try:
            self.index = writer.close()
        except OSError:
            self._cut(writer.stored_size)

    def _cut(self, stored_size: int) -> None:
        try:
            assert self._raw is not None
            self._raw.truncate(stored_size)
            self._raw.seek(stored_size)
        except OSError as error:
            self.stop(_why(error))
            self._is_sound = False


def _why(error: OSError) -> str:
    return f"spool cannot be written: {error.strerror or error}"
