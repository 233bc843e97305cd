"""Sinks over fsspec, the one module that touches it.

fsspec is untyped and caches file systems and listings by itself. Here every sink has a file system
of its own and no listing is remembered, so what another process does is seen at once. What a file
system cannot do through fsspec in a safe way, which is to publish, is done by a `Place`: fsspec's
exclusive create is a race on local disks, and its transactions are shared by all threads.
"""

import contextlib
import io
import os
from collections.abc import Callable, Generator, Iterator
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, cast

from tooltrail.artifacts._local import make_durable_folders
from tooltrail.artifacts._places import FileSystem, LocalPlace, MemoryPlace, Place
from tooltrail.artifacts.paths import PART_SUFFIX, check_path, check_prefix
from tooltrail.artifacts.sink import ArtifactSink, ObjectStat, SinkCapabilities
from tooltrail.records.errors import InvalidRecordError, MissingArtifactError, UnavailableError

_MISSING = (FileNotFoundError, NotADirectoryError, IsADirectoryError)
"""How file systems say that no file has this name."""


class FsspecSink:
    """An `ArtifactSink` over one fsspec file system; made by `open_sink`.

    Safe for threads. Safe for processes, and durable, where its capabilities say so.
    """

    def __init__(self, filesystem: FileSystem, root: str, url: str, place: Place) -> None:
        """Assign; `root` is where the objects are, as the file system names it."""
        self._filesystem = filesystem
        self._root = root
        self._url = url
        self._place = place

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
            return self._place.publish(source, target)
        except OSError as error:
            raise self._unavailable("publish", path, error) from error

    def open(self, path: str) -> BinaryIO:
        """See `ArtifactSink.open`."""
        with self._reading(path) as target:
            return self._place.open(target)

    def read(self, path: str, start: int, stop: int | None) -> bytes:
        """See `ArtifactSink.read`."""
        with self.open(path) as stored:
            if start < 0:
                stored.seek(0, io.SEEK_END)
                start = max(0, stored.tell() + start)
            stored.seek(start)
            return stored.read(-1 if stop is None else max(0, stop - start))

    def stat(self, path: str) -> ObjectStat:
        """See `ArtifactSink.stat`."""
        with self._reading(path) as target, self._place.guard:
            return _stat_of(path, self._info(target))

    def exists(self, path: str) -> bool:
        """See `ArtifactSink.exists`."""
        try:
            self.stat(path)
        except MissingArtifactError:
            return False
        return True

    def delete(self, path: str) -> None:
        """See `ArtifactSink.delete`."""
        with self._reading(path) as target, self._place.guard:
            self._info(target)
            self._filesystem.rm_file(target)

    def list(self, prefix: str = "") -> Iterator[ObjectStat]:
        """See `ArtifactSink.list`; holds one folder's names at a time in memory."""
        return self._list(check_prefix(prefix))

    def _list(self, prefix: str) -> Iterator[ObjectStat]:
        try:
            yield from self._walk("", prefix)
        except OSError as error:
            raise self._unavailable("list", prefix, error) from error

    def _walk(self, folder: str, prefix: str) -> Iterator[ObjectStat]:
        entries = self._entries(folder)
        for path in sorted(entries):
            if path.endswith("/"):
                if path.startswith(prefix) or prefix.startswith(path):
                    yield from self._walk(path, prefix)
            elif path.startswith(prefix) and _is_object(path, entries[path]):
                yield _stat_of(path, entries[path])

    def _entries(self, folder: str) -> dict[str, dict[str, Any]]:
        """What is in a folder, by path; folders end in a slash, because they sort like that."""
        try:
            with self._place.guard:
                infos = self._filesystem.ls(f"{self._root}/{folder}", detail=True)
        except FileNotFoundError:
            if not folder:
                raise
            return {}  # deleted since its name was read
        return {_path_in(folder, info): info for info in infos}

    def _info(self, target: str) -> dict[str, Any]:
        info: dict[str, Any] = self._filesystem.info(target)
        if info["type"] != "file":
            raise FileNotFoundError(target)
        return info

    @contextlib.contextmanager
    def _reading(self, path: str) -> Generator[str]:
        target = self._place.locate(check_path(path))
        try:
            yield target
        except _MISSING as error:
            if not self._filesystem.isdir(self._root):
                raise self._unavailable("read", path, error) from error
            raise MissingArtifactError(
                f"artifact {path} is missing from {self._url}", path=path
            ) from error
        except OSError as error:
            raise self._unavailable("read", path, error) from error

    def _unavailable(self, verb: str, path: str, error: OSError) -> UnavailableError:
        return UnavailableError(f"cannot {verb} {path or 'objects'} in {self._url}: {_why(error)}")


def open_sink(url: str, *, create: bool = False) -> ArtifactSink:
    """Open the sink at a folder's path, a `file://` URL or a `memory://` URL.

    Args:
        url: relative folders are taken from the current one. Nothing in it is percent-decoded.
        create: make the root folder, durably and with mode 0700, when it is not there. One that
            is there keeps its mode, which says who may read what is stored below it.

    Raises:
        InvalidRecordError: the URL is empty or of another kind.
        UnavailableError: the root folder is not there, as when a disk is not mounted, or cannot
            be made.
    """
    protocol, separator, name = url.partition("://")
    if not separator:
        protocol, name = "file", str(_absolute(url)) if url else ""
    if not name:
        raise InvalidRecordError(f"not a place for artifacts: {url!r}")
    opener = _OPENERS.get(protocol)
    if opener is None:
        raise InvalidRecordError(
            f"artifacts cannot be kept at {protocol}://; known are {', '.join(_OPENERS)}"
        )
    return opener(name, create)


def _open_local(name: str, create: bool) -> FsspecSink:
    if not name.startswith("/"):
        raise InvalidRecordError(f"not an absolute folder: 'file://{name}'")
    folder = _absolute(name)
    try:
        if create:
            make_durable_folders(folder)
        root = Path(os.path.realpath(folder, strict=True))
        next(root.iterdir(), None)
    except OSError as error:
        raise UnavailableError(f"cannot use {folder} for artifacts: {_why(error)}") from error
    filesystem = _filesystem("file")
    return FsspecSink(filesystem, str(root), f"file://{folder}", LocalPlace(root))


def _open_memory(name: str, create: bool) -> FsspecSink:
    root = "/" + check_path(name.strip("/"))
    filesystem = _filesystem("memory")
    place = MemoryPlace(filesystem, root)
    with place.guard:
        if create:
            filesystem.makedirs(root, exist_ok=True)
        if not filesystem.isdir(root):
            raise UnavailableError(f"there is no folder for artifacts at memory:/{root}")
    return FsspecSink(filesystem, root, f"memory:/{root}", place)


_OPENERS: dict[str, Callable[[str, bool], FsspecSink]] = {
    "file": _open_local,
    "memory": _open_memory,
}


def _absolute(name: str) -> Path:
    # Not resolved: a symbolic link to the folder is the name that its user wants remembered.
    return Path(os.path.abspath(name))  # noqa: PTH100


def _filesystem(protocol: str) -> FileSystem:
    return cast("FileSystem", _Deferred(protocol))


class _Deferred:
    """A file system that is made when it is first used.

    Reading a local object by its name does not need it, and takes less time than to import fsspec.
    """

    def __init__(self, protocol: str) -> None:
        self._protocol = protocol

    def __getattr__(self, name: str) -> object:
        """Whatever the file system has."""
        return getattr(self._filesystem, name)

    @cached_property
    def _filesystem(self) -> object:
        import fsspec  # noqa: PLC0415  see above

        untyped: Any = fsspec
        filesystem: object = untyped.filesystem(
            self._protocol, skip_instance_cache=True, use_listings_cache=False
        )
        return filesystem


def _path_in(folder: str, info: dict[str, Any]) -> str:
    name = folder + str(info["name"]).rpartition("/")[2]
    return name + "/" if info["type"] == "directory" else name


def _is_object(path: str, info: dict[str, Any]) -> bool:
    # A symbolic link is nothing that a sink has made.
    return info["type"] == "file" and not path.endswith(PART_SUFFIX)


def _stat_of(path: str, info: dict[str, Any]) -> ObjectStat:
    return ObjectStat(path=path, stored_size=info["size"], modified_at=_modified_at(info))


def _modified_at(info: dict[str, Any]) -> datetime:
    # Local disks give seconds, memory a time or seconds, and an object is modified once.
    moment = info.get("mtime", info["created"])
    if isinstance(moment, datetime):
        return moment.astimezone(UTC)
    return datetime.fromtimestamp(moment, UTC)


def _why(error: OSError) -> str:
    """The system's words, with the file that they are about."""
    reason = error.strerror or type(error).__name__
    return f"{reason}: {error.filename}" if error.filename else reason
