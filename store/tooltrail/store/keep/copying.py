"""Copying stored objects from one root to another, and making sure that they arrived."""

import io
import shutil
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from tooltrail.artifacts import ArtifactArchive, create_private, make_private_folders
from tooltrail.records import DamageError, UnavailableError
from tooltrail.store._roots.same_place import TwoPlaces

_BLOCK = 1 << 20
"""Bytes that are held at once."""


class ObjectCopier:
    """Copies objects one by one, at constant memory. One thread.

    Args:
        old: from where.
        new: to where; what stands there is believed only after it was read.
        scratch: a local file for the object that is being copied. What a killed process left
            there is overwritten.
        places: makes sure that what stands there is not what is to be copied.
    """

    def __init__(
        self, old: ArtifactArchive, new: ArtifactArchive, scratch: Path, places: TwoPlaces
    ) -> None:
        self._old = old
        self._new = new
        self._scratch = scratch
        self._places = places

    def ensure(self, path: str, size: int) -> bool:
        """Make sure that an artifact stands at the new root, by reading it there to its end.

        Args:
            path: of the artifact.
            size: its plain bytes.

        Returns:
            Whether it was copied; else it was there already, and sound.

        Raises:
            MissingArtifactError: it does not stand at the old root.
            DamageError: it is damaged there; the new root does not have it then.
            InvalidRecordError: its folder at the new root is that at the old one.
            UnavailableError: a root cannot serve, or the new one gives back something else.
        """
        if self._stands_there(path):
            with suppress(DamageError):
                self._new.verify(path, size=size)
                return False
            self._new.sink.delete(path)
        self._copy(path)
        try:
            self._new.verify(path, size=size)
        except DamageError as error:
            self._new.sink.delete(path)
            self._old.verify(path, size=size)  # raises when it is the old one that is damaged
            raise UnavailableError(
                f"{self._new.sink.url} does not give back what was put at {path}"
            ) from error
        return True

    def ensure_raw(self, path: str) -> bool:
        """Make sure that an object stands at the new root with the same stored bytes.

        Returns:
            Whether it was copied; else it was there already.

        Raises:
            MissingArtifactError: it does not stand at the old root.
            InvalidRecordError: its folder at the new root is that at the old one.
            UnavailableError: a root cannot serve, or the new one gives back something else.
        """
        if self._stands_there(path):
            if self._is_same(path):
                return False
            self._new.sink.delete(path)
        self._copy(path)
        if not self._is_same(path):
            raise UnavailableError(
                f"{self._new.sink.url} does not give back what was put at {path}"
            )
        return True

    def clean_up(self) -> None:
        """Remove the local file."""
        with suppress(OSError):
            self._scratch.unlink(missing_ok=True)

    def _stands_there(self, path: str) -> bool:
        """Whether the new root has an object of that name, and one of its own."""
        if not self._new.sink.exists(path):
            return False
        self._places.ensure(str(PurePosixPath(path).parent))
        return True

    def _copy(self, path: str) -> None:
        with self._old.sink.open(path) as stored:
            with self._writing() as file:
                shutil.copyfileobj(stored, file, _BLOCK)
            if not self._new.sink.put(path, self._scratch):
                # Somebody has put it meanwhile, maybe at the old root.
                self._places.ensure(str(PurePosixPath(path).parent))

    @contextmanager
    def _writing(self) -> Generator[BinaryIO]:
        try:
            make_private_folders(self._scratch.parent)
            # What was put may share its storage: the next object needs a file of its own.
            self._scratch.unlink(missing_ok=True)
            with io.BufferedWriter(create_private(self._scratch)) as file:
                yield file
        except OSError as error:
            raise UnavailableError(f"no copy in {self._scratch}: {error.strerror}") from error

    def _is_same(self, path: str) -> bool:
        with self._old.sink.open(path) as ours, self._new.sink.open(path) as theirs:
            while block := ours.read(_BLOCK):
                if theirs.read(len(block)) != block:
                    return False
            return not theirs.read(1)
