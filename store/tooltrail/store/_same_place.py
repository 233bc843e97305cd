"""Whether two roots are one place under two names, as a whole or in one of their folders.

A folder can be mounted twice, also below a root, and a bucket can have an alias: no URL says so,
and what is found at the one root is what is at the other. To delete it at either is to lose it. So
an object is put there that nobody else can have put, at the root, and in each folder in which
something is found at the new root that this run has not put there.
"""

import secrets
from contextlib import suppress
from pathlib import Path

from tooltrail.artifacts import ArtifactSink
from tooltrail.records import InvalidRecordError, MissingArtifactError, UnavailableError
from tooltrail.store._root_marks import put_text

_PROBE = "same-place-"
"""Begins the name of the object by which it is found out; gc calls one that stays foreign."""

_LOCAL = "file://"


class TwoPlaces:
    """Makes sure that two roots are two places, folder by folder, each once. One thread.

    Args:
        old: root at which an object is looked for.
        new: root at which it is put for a moment.
        scratch: folder for a temporary file, which is made when it is missing.
    """

    def __init__(self, old: ArtifactSink, new: ArtifactSink, scratch: Path) -> None:
        self._old = old
        self._new = new
        self._scratch = scratch
        self._found: set[str] = set()

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
        if self._sees_what_is_put(folder):
            old, new = (f"{sink.url}/{folder}".rstrip("/") for sink in (self._old, self._new))
            raise InvalidRecordError(
                f"the artifacts are in {new} already: it is the same place as {old}"
            )
        self._found.add(folder)

    def _sees_what_is_put(self, folder: str) -> bool:
        name = f"{_PROBE}{secrets.token_hex(16)}"
        probe = f"{folder}/{name}" if folder else name
        words = "Put to find out whether two roots are one. Delete it.\n"
        put_text(self._new, probe, words, self._scratch)
        try:
            return self._old.exists(probe)
        finally:
            self._take_back(probe)

    def _take_back(self, probe: str) -> None:
        try:
            with suppress(MissingArtifactError):
                self._new.delete(probe)
        except UnavailableError as error:
            raise UnavailableError(f"{probe} stays in {self._new.url}: {error}") from error


def has_same_name(one: ArtifactSink, other: ArtifactSink) -> bool:
    """Whether two roots are one by their URLs, or as folders by device and inode."""
    if one.url.rstrip("/") == other.url.rstrip("/"):
        return True
    if not (one.url.startswith(_LOCAL) and other.url.startswith(_LOCAL)):
        return False
    with suppress(OSError):
        folders = (Path(sink.url.removeprefix(_LOCAL)) for sink in (one, other))
        return next(folders).samefile(next(folders))
    return False
