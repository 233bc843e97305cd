"""Copying stored objects from one root to another, and making sure that they arrived."""

import io
from contextlib import suppress
from pathlib import Path
from typing import Final

from tooltrail.artifacts import ArtifactArchive, copy_of
from tooltrail.journal.clock import new_id
from tooltrail.records.errors import DamageError, InvalidRecordError, UnavailableError

_BLOCK: Final = 1 << 20
"""Bytes that are held at once."""


class ObjectCopier:
    """Copies objects one by one, at constant memory. For one thread.

    Args:
        old: from where.
        new: to where; what stands there is believed only after it was read.
        scratch: a local folder for the object that is being copied; see `ArtifactArchive.publish`.
    """

    def __init__(self, old: ArtifactArchive, new: ArtifactArchive, scratch: Path) -> None:
        self._old = old
        self._new = new
        self._scratch = scratch

    def ensure(self, path: str, size: int | None = None) -> bool:
        """Make sure that an object stands at the new root, by reading it there to its end.

        Args:
            path: of the object.
            size: plain bytes of an artifact, which is compared with its digest. None for an object
                that is compared with the stored bytes at the old root, such as a damaged one.

        Returns:
            Whether it was copied; else it was there already.

        Raises:
            MissingArtifactError: it does not stand at the old root.
            DamageError: the artifact is damaged there; the new root does not have it then.
            UnavailableError: a root cannot serve, or the new one gives back something else.
        """
        if self._new.sink.exists(path):
            if self._has_arrived(path, size):
                return False
            self._new.sink.delete(path)
        self._copy(path)
        if not self._has_arrived(path, size):
            self._new.sink.delete(path)
            if size is not None:
                self._old.verify(path, size=size)  # raises when it is the old one that is damaged
            raise UnavailableError(
                f"{self._new.sink.url} does not give back what was put at {path}"
            )
        return True

    def refuse_same_place(self) -> None:
        """Raise when an object that is put at the new root shows at the old one, too.

        Raises:
            InvalidRecordError: it does.
        """
        path, content = f"probe-{new_id()}", b"whether two artifact roots are one place\n"
        with copy_of(io.BytesIO(content), path, self._scratch) as copy:
            self._new.sink.put(path, copy)
        try:
            is_same = self._old.sink.exists(path)
        finally:
            self._new.sink.delete(path)
        if is_same:
            raise InvalidRecordError(
                f"the artifacts are in {self._new.sink.url} already: it is the same place as"
                f" {self._old.sink.url}"
            )

    def _copy(self, path: str) -> None:
        with self._old.sink.open(path) as stored, copy_of(stored, path, self._scratch) as copy:
            self._new.sink.put(path, copy)

    def _has_arrived(self, path: str, size: int | None) -> bool:
        if size is not None:
            with suppress(DamageError):
                self._new.verify(path, size=size)
                return True
            return False
        with self._old.sink.open(path) as ours, self._new.sink.open(path) as theirs:
            while block := ours.read(_BLOCK):
                if theirs.read(len(block)) != block:
                    return False
            return not theirs.read(1)
