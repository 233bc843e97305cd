"""The sink over any backend: checks paths, translates OSError and walks folders."""

import contextlib
import errno
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import BinaryIO

from tooltrail.artifacts._backends import Backend
from tooltrail.artifacts._entries import FileFacts
from tooltrail.artifacts._ranges import check_range
from tooltrail.artifacts.paths import check_path, check_prefix
from tooltrail.artifacts.sink import ObjectStat, SinkCapabilities
from tooltrail.records.errors import (
    DamageError,
    InvalidRecordError,
    MissingArtifactError,
    UnavailableError,
)

_MISSING = (FileNotFoundError, NotADirectoryError, IsADirectoryError)
"""Errors by which backends report that no object has this name."""

_REPLACED = (errno.ELOOP, errno.ESPIPE)
"""Errors of a local file system for a link and for a pipe in place of an object."""


class FsspecSink:
    """An `ArtifactSink` over one fsspec file system; made by `open_sink` or `defer_sink`.

    Safe for threads. `capabilities` says whether it is durable and safe for processes.
    """

    def __init__(
        self,
        url: str,
        capabilities: SinkCapabilities,
        open_backend: Callable[[], Backend],
        mark: str | None = None,
    ) -> None:
        """Open the backend on first use; each use retries until it is open.

        Args:
            url: URL that opens the sink again.
            capabilities: the promises of the backend.
            open_backend: opens the backend; two threads may both call it.
            mark: see `defer_sink`.
        """
        self._url = url
        self._capabilities = capabilities
        self._open_backend = open_backend
        self._opened: Backend | None = None
        self._mark = mark
        self._is_marked = mark is None

    @property
    def capabilities(self) -> SinkCapabilities:
        """The promises of this sink."""
        return self._capabilities

    @property
    def url(self) -> str:
        """The URL that opens this sink again."""
        return self._url

    def put(self, path: str, source: Path) -> bool:
        """See `ArtifactSink.put`."""
        target = self._backend.locate(check_path(path))
        if not source.is_file():
            raise InvalidRecordError(f"there is no file {source} to publish")
        try:
            self._need_mark()
            return self._backend.publish(source, target)
        except OSError as error:
            raise self._unavailable("publish", path, error) from error

    def open(self, path: str) -> BinaryIO:
        """See `ArtifactSink.open`."""
        with self._reading(path) as target:
            return self._backend.open(target)

    def read(self, path: str, start: int, stop: int | None = None) -> bytes:
        """See `ArtifactSink.read`; one request, or two on Azure if `start` is negative."""
        check_range(start, stop)
        with self._reading(path) as target:
            return self._backend.read(target, start, stop)

    def stat(self, path: str) -> ObjectStat:
        """See `ArtifactSink.stat`."""
        with self._reading(path) as target:
            return _stat_of(path, self._backend.facts(target))

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
            self._backend.delete(target)

    def list(self, prefix: str = "") -> Iterator[ObjectStat]:
        """See `ArtifactSink.list`; keeps the names of one folder per level in memory."""
        return self._list(check_prefix(prefix))

    @property
    def _backend(self) -> Backend:
        if self._opened is None:
            try:
                self._opened = self._open_backend()
            except InvalidRecordError as error:
                # A caller that records must retry, and must not drop the record as invalid.
                raise UnavailableError(str(error)) from error
        return self._opened

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
        """The entries of a folder by path; paths of folders end in a slash, for the sort order."""
        try:
            return {
                folder + name + ("/" if facts is None else ""): facts
                for name, facts in self._backend.children(folder)
            }
        except (FileNotFoundError, NotADirectoryError):
            # Deleted since its name was read, or never made: object stores have no empty folders.
            self._check_root()
            return {}

    @contextlib.contextmanager
    def _reading(self, path: str) -> Generator[str]:
        target = self._backend.locate(check_path(path))
        try:
            yield target
        except _MISSING as error:
            self._need_root(path)
            raise MissingArtifactError(
                f"artifact {path} is missing from {self._url}", path=path
            ) from error
        except OSError as error:
            if error.errno in _REPLACED:
                problem = f"artifact {path} is damaged: a link or a pipe is in its place"
                raise DamageError(problem, path=path) from error
            raise self._unavailable("read", path, error) from error

    def _need_root(self, path: str) -> None:
        try:
            self._check_root()
        except OSError as error:
            raise self._unavailable("read", path, error) from error

    def _need_mark(self) -> None:
        # A disk can be unmounted at any time, since no file on it stays open. A bucket cannot.
        if not self._is_marked or self._backend.may_be_replaced:
            self._check_root()
            self._is_marked = True

    def _check_root(self) -> None:
        """Raise unless the root exists and contains the mark.

        Raises:
            OSError: the root does not exist.
            UnavailableError: the mark is missing.
        """
        self._backend.check_root()
        if self._mark is None:
            return
        try:
            self._backend.facts(self._backend.locate(self._mark))
        except _MISSING as error:
            raise UnavailableError(
                f"{self._url} is not the artifact root of this store: its file {self._mark}"
                " is missing (is a disk not mounted?)"
            ) from error

    def _unavailable(self, verb: str, path: str, error: OSError) -> UnavailableError:
        return UnavailableError(f"cannot {verb} {path or 'objects'} in {self._url}: {why(error)}")


def why(error: OSError) -> str:
    """The reason of an error, with the name of the file if the error has one."""
    reason = error.strerror or type(error).__name__
    return f"{reason}: {error.filename}" if error.filename else reason


def _is_path(path: str) -> bool:
    """Whether a sink accepts the path: False for the name of a part, for instance."""
    try:
        check_path(path)
    except InvalidRecordError:
        return False
    return True


def _stat_of(path: str, facts: FileFacts) -> ObjectStat:
    return ObjectStat(path=path, stored_size=facts.size, modified_at=facts.modified_at)
