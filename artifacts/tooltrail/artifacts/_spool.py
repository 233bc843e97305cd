"""The file of one running capture: whole frames, or nothing."""

import contextlib
from io import FileIO
from pathlib import Path

from tooltrail.artifacts._private import create_private, make_private_folders
from tooltrail.artifacts.codec import FrameWriter


class SpoolFile:
    """Created at `create`, grown by frames, and never raises `OSError`.

    The file and the folders that are made for it are their owner's alone: 0600 and 0700.

    Attributes:
        path: where the file is, or would be.
        failure: why nothing more can be written, as the system words it; None while all is well.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.failure: str | None = None
        self._raw: FileIO | None = None
        self._writer: FrameWriter | None = None
        self._is_sound = False

    @property
    def stored_size(self) -> int:
        """Bytes of the frames completed so far: the size that a sound file has when closed."""
        return self._writer.stored_size if self._writer else 0

    def create(self) -> None:
        """Make the file and its folders, unless that was tried before."""
        if self._raw is not None or self.failure is not None:
            return
        try:
            make_private_folders(self.path.parent)
            # Exclusive: what lies there may be all that is left of a run that was killed.
            self._raw = create_private(self.path)
        except OSError as error:
            self.failure = error.strerror or str(error)
        else:
            self._writer = FrameWriter(self._raw)
            self._is_sound = True

    def append(self, block: memoryview) -> bool:
        """Add one frame; False when it could not be, now and ever after."""
        if self._writer is None or self.failure is not None:
            return False
        try:
            self._writer.write(block)
        except OSError as error:
            self._give_up(error, self._writer.stored_size)
        return self.failure is None

    def close(self) -> Path | None:
        """The file, when it holds at least one frame and nothing but frames."""
        if self._raw is None or self._writer is None:
            return None
        try:
            self._raw.close()
        except OSError as error:
            # Network file systems report here that they could not keep earlier writes.
            self.failure = error.strerror or str(error)
            self._is_sound = False
        return self.path if self._is_sound and self._writer.stored_size else None

    def remove(self) -> None:
        """Delete the file if this object made it; one that cannot be deleted is left behind."""
        if self._raw is not None:
            # Nothing refers to it, and clean-up finds it by its place.
            with contextlib.suppress(OSError):
                self.path.unlink(missing_ok=True)

    def _give_up(self, error: OSError, stored_size: int) -> None:
        """Cut the unfinished frame off, so that what remains is a valid object."""
        self.failure = error.strerror or str(error)
        try:
            assert self._raw is not None
            self._raw.truncate(stored_size)
        except OSError:
            self._is_sound = False
