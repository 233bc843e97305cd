"""The sink over any place: checks paths, turns OSError into the errors of a sink, walks folders."""

import contextlib
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import BinaryIO

from tooltrail.artifacts._entries import FileFacts
from tooltrail.artifacts._places import Place
from tooltrail.artifacts._ranges import check_range
from tooltrail.artifacts.paths import check_path, check_prefix
from tooltrail.artifacts.sink import ObjectStat, SinkCapabilities
from tooltrail.records.errors import InvalidRecordError, MissingArtifactError, UnavailableError

_MISSING = (FileNotFoundError, NotADirectoryError, IsADirectoryError)
"""How places say that no object has this name."""


class FsspecSink:
    """An `ArtifactSink` over one fsspec file system; made by `open_sink`.

    Safe for threads. Safe for processes, and durable, where its capabilities say so.
    """

    def __init__(self, url: str, place: Place, mark: str | None = None) -> None:
        """Assign; `url` opens the sink again, `mark` is that of `defer_sink`."""
        self._url = url
        self._place = place
        self._mark = mark
        self._is_marked = mark is None

    @property
    def capabilities(self) -> SinkCapabilities:
        """What this sink promises."""
        return self._place.capabilities

    @property
    def url(self) -> str:
        """The URL that opens it again."""
        return self._url

    def put(self, path: str, source: Path) -> bool:
        """See `ArtifactSink.put`."""
        target = self._place.locate(check_path(path))
        if not source.is_file():
            raise InvalidRecordError(f"there is no file {source} to publish")
        try:
            self._need_mark()
            return self._place.publish(source, target)
        except OSError as error:
            raise self._unavailable("publish", path, error) from error

    def open(self, path: str) -> BinaryIO:
        """See `ArtifactSink.open`."""
        with self._reading(path) as target:
            return self._place.open(target)

    def read(self, path: str, start: int, stop: int | None = None) -> bytes:
        """See `ArtifactSink.read`; one request, and two on Azure when `start` is negative."""
        check_range(start, stop)
        with self._reading(path) as target:
            return self._place.read(target, start, stop)

    def stat(self, path: str) -> ObjectStat:
        """See `ArtifactSink.stat`."""
        with self._reading(path) as target:
            return _stat_of(path, self._place.facts(target))

    def exists(self, path: str) -> bool:
        """See `ArtifactSink.exists`."""
        try:
            self.stat(path)
        except MissingArtifactError:
            return False
        return True

    def delete(self, path: str) -> None:
        """See `ArtifactSink.delete`."""
        with self._reading(path) as target:
            self._place.delete(target)

    def list(self, prefix: str = "") -> Iterator[ObjectStat]:
        """See `ArtifactSink.list`; holds one folder's names at a time in memory."""
        return self._list(check_prefix(prefix))

    def _list(self, prefix: str) -> Iterator[ObjectStat]:
        folder, slash, _ = prefix.rpartition("/")
        try:
            yield from self._walk(folder + slash, prefix)
        except OSError as error:
            raise self._unavailable("list", prefix, error) from error

    def _walk(self, folder: str, prefix: str) -> Iterator[ObjectStat]:
        entries = self._entries(folder)
        for path in sorted(entries):
            facts = entries[path]
            if facts is None:
                if path.startswith(prefix) or prefix.startswith(path):
                    yield from self._walk(path, prefix)
            elif path.startswith(prefix) and _is_path(path):
                yield _stat_of(path, facts)

    def _entries(self, folder: str) -> dict[str, FileFacts | None]:
        """What is in a folder, by path; folders end in a slash, because they sort like that."""
        try:
            return {
                folder + name + ("/" if facts is None else ""): facts
                for name, facts in self._place.children(folder)
            }
        except (FileNotFoundError, NotADirectoryError):
            # Deleted since its name was read, or never there: stores have no empty folders.
            self._check_root()
            return {}

    @contextlib.contextmanager
    def _reading(self, path: str) -> Generator[str]:
        target = self._place.locate(check_path(path))
        try:
            yield target
        except _MISSING as error:
            self._need_root(path)
            raise MissingArtifactError(
                f"artifact {path} is missing from {self._url}", path=path
            ) from error
        except OSError as error:
            raise self._unavailable("read", path, error) from error

    def _need_root(self, path: str) -> None:
        try:
            self._check_root()
        except OSError as error:
            raise self._unavailable("read", path, error) from error

    def _need_mark(self) -> None:
        # A disk can be unmounted at any moment, since nothing of it is held open. A bucket stays.
        if not self._is_marked or self._place.may_be_replaced:
            self._check_root()
            self._is_marked = True

    def _check_root(self) -> None:
        """Raise unless the root is there, and is the one that it should be.

        Raises:
            OSError: it is not there.
            UnavailableError: it is not the one.
        """
        self._place.check_root()
        if self._mark is None:
            return
        try:
            self._place.facts(self._place.locate(self._mark))
        except _MISSING as error:
            raise UnavailableError(
                f"{self._url} is not the artifact root that it should be: its file {self._mark}"
                " is not there (is a disk not mounted?)"
            ) from error

    def _unavailable(self, verb: str, path: str, error: OSError) -> UnavailableError:
        return UnavailableError(f"cannot {verb} {path or 'objects'} in {self._url}: {why(error)}")


def why(error: OSError) -> str:
    """The words of a place or the system, with the file that they are about."""
    reason = error.strerror or type(error).__name__
    return f"{reason}: {error.filename}" if error.filename else reason


def _is_path(path: str) -> bool:
    """False for the name of a part, and for what nobody can ask a sink for."""
    try:
        check_path(path)
    except InvalidRecordError:
        return False
    return True


def _stat_of(path: str, facts: FileFacts) -> ObjectStat:
    return ObjectStat(path=path, stored_size=facts.size, modified_at=facts.modified_at)
