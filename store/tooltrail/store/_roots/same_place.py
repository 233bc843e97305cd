"""Whether two roots are one place under two names, as a whole or in one of their folders.

A folder can be mounted twice, also below a root or beneath another one (an overlay), and a bucket
can have an alias: no URL says so, and what is found at the one root is what is at the other. To
delete it at either is to lose it. So an object is put there that nobody else can have put: at the
new root, as a whole and in each folder in which something is found that this run has not put there;
and at the old one in each folder in which something is to be deleted.
"""

import os
import secrets
from contextlib import suppress
from pathlib import Path, PurePosixPath

from tooltrail.artifacts import ArtifactSink
from tooltrail.records import InvalidRecordError, MissingArtifactError, UnavailableError
from tooltrail.store._roots.marks import put_text

_PROBE = "same-place-"
"""Begins the name of the object by which it is found out; gc calls one that stays foreign."""

_LOCAL = "file://"


class TwoPlaces:
    """Makes sure that two roots are two places, folder by folder, each once. One thread.

    Args:
        old: root from which objects are moved.
        new: root to which they are.
        scratch: folder for a temporary file, which is made when it is missing.

    Attributes:
        old: the old root.
    """

    def __init__(self, old: ArtifactSink, new: ArtifactSink, scratch: Path) -> None:
        self.old = old
        self._new = new
        self._scratch = scratch
        self._found: set[str] = set()
        self._found_behind: set[str] = set()

    def ensure(self, folder: str = "") -> None:
        """Raise when a folder of the new root is that of the old one. Nothing is left at either.

        Args:
            folder: its path in both roots; by default the roots themselves.

        Raises:
            InvalidRecordError: it is: all that is at the old one would seem to have arrived.
            UnavailableError: a root cannot serve, or the new one cannot be written, or lets nothing
                be deleted.
        """
        if folder in self._found:
            return
        if self._is_seen(folder, put=self._new, seen=self.old):
            old, new = (f"{sink.url}/{folder}".rstrip("/") for sink in (self.old, self._new))
            raise InvalidRecordError(
                f"the artifacts are in {new} already: it is the same place as {old}"
            )
        self._found.add(folder)

    def ensure_behind(self, path: str) -> None:
        """Raise when an object is gone at the new root once it is deleted at the old one.

        Args:
            path: of the object, in both roots.

        Raises:
            InvalidRecordError: what is at the old root shows at the new one.
            UnavailableError: a root cannot serve, or the old one cannot be written, or lets nothing
                be deleted.
        """
        folder = str(PurePosixPath(path).parent)
        if folder not in self._found_behind:
            if self._is_seen(folder, put=self.old, seen=self._new):
                raise InvalidRecordError(
                    f"{self._new.url} shows what is in {self.old.url}/{folder}: the artifacts "
                    "were moved, and nothing more is deleted"
                )
            self._found_behind.add(folder)
        old, new = (_local_path(sink, path) for sink in (self.old, self._new))
        if old is not None and new is not None and _is_one_file(old, new):
            raise InvalidRecordError(
                f"{old} and {new} are one file: the artifacts were moved, and nothing more is "
                "deleted"
            )

    def _is_seen(self, folder: str, *, put: ArtifactSink, seen: ArtifactSink) -> bool:
        name = f"{_PROBE}{secrets.token_hex(16)}"
        probe = f"{folder}/{name}" if folder else name
        words = "Put to find out whether two roots are one. Delete it.\n"
        put_text(put, probe, words, self._scratch)
        try:
            return seen.exists(probe)
        finally:
            _take_back(put, probe)


def _take_back(sink: ArtifactSink, probe: str) -> None:
    try:
        with suppress(MissingArtifactError):
            sink.delete(probe)
    except UnavailableError as error:
        raise UnavailableError(f"{probe} stays in {sink.url}: {error}") from error


def _local_path(sink: ArtifactSink, path: str) -> Path | None:
    if not sink.url.startswith(_LOCAL):
        return None
    return Path(sink.url.removeprefix(_LOCAL)) / path


def _is_one_file(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file that has one name, as a mounted file has; no hard link."""
    try:
        found = one.stat()
        return found.st_nlink == 1 and os.path.samestat(found, other.stat())
    except OSError:
        return False  # it is gone, or is not deleted either


def has_same_name(one: ArtifactSink, other: ArtifactSink) -> bool:
    """Whether two roots are one by their URLs, or as folders by device and inode."""
    if one.url.rstrip("/") == other.url.rstrip("/"):
        return True
    first, second = (_local_path(sink, "") for sink in (one, other))
    if first is not None and second is not None:
        with suppress(OSError):
            return first.samefile(second)
    return False
