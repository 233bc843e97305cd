"""Where storage differs: naming, publishing, reading and looking up, one small class for each.

A place speaks OSError, and its targets are names that only it understands. fsspec is handed in as
an untyped file system and imported elsewhere. Object stores are in `_object_place`.
"""

import errno
import io
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from tooltrail.artifacts._entries import FileFacts, Info, children, facts_of
from tooltrail.artifacts._local import LocalPublisher, read_facts, read_range
from tooltrail.artifacts._private import open_without_links
from tooltrail.artifacts._ranges import clip
from tooltrail.artifacts.sink import FRAME_SIZE, SinkCapabilities
from tooltrail.records.errors import PathEscapeError

_MEMORY_LOCK = threading.Lock()
"""fsspec keeps one set of memory objects for the whole process, so one lock guards it."""


class FileSystem(Protocol):
    """As much of fsspec's folders as is used here, with types."""

    def open(self, path: str, mode: str) -> object: ...
    def info(self, path: str) -> Info: ...
    def ls(self, path: str, *, detail: bool) -> list[Info]: ...
    def isdir(self, path: str) -> bool: ...
    def isfile(self, path: str) -> bool: ...
    def makedirs(self, path: str, *, exist_ok: bool) -> None: ...
    def pipe_file(self, path: str, value: bytes, *, mode: str) -> None: ...
    def rm_file(self, path: str) -> None: ...


class Place(Protocol):
    """What differs between kinds of storage; chosen once, when a sink is opened.

    All methods but `locate` raise OSError; FileNotFoundError when there is no such object.
    """

    @property
    def capabilities(self) -> SinkCapabilities:
        """See `ArtifactSink.capabilities`."""
        ...

    @property
    def may_be_replaced(self) -> bool:
        """Whether the root can go, and another folder be in its place, while it is used."""
        ...

    def locate(self, path: str) -> str:
        """The target that stands for a path, or InvalidRecordError."""
        ...

    def publish(self, source: Path, target: str) -> bool:
        """See `ArtifactSink.put`."""
        ...

    def open(self, target: str) -> BinaryIO:
        """See `ArtifactSink.open`."""
        ...

    def read(self, target: str, start: int, stop: int | None) -> bytes:
        """See `ArtifactSink.read`; the range has been checked."""
        ...

    def facts(self, target: str) -> FileFacts:
        """What is known of an object."""
        ...

    def delete(self, target: str) -> None:
        """See `ArtifactSink.delete`."""
        ...

    def children(self, folder: str) -> Iterator[tuple[str, FileFacts | None]]:
        """See `_entries.children`; `folder` is relative to the root, empty or ends in a slash."""
        ...

    def check_root(self) -> None:
        """Raise unless the root is there, as when a disk is not mounted or a bucket is gone."""
        ...


class LocalPlace:
    """A folder of this machine."""

    may_be_replaced = True
    capabilities = SinkCapabilities(
        durable=True,
        exclusive_create=True,
        cross_process=True,
        seekable=True,
        frame_size=FRAME_SIZE,
    )

    def __init__(self, filesystem: FileSystem, root: Path) -> None:
        self._filesystem = filesystem
        self._root = root
        self._publisher = LocalPublisher(root)

    def locate(self, path: str) -> str:
        """Follows no symbolic link out of the root."""
        target = self._root / path
        # Path.resolve answers a loop of links with RuntimeError.
        if not Path(os.path.realpath(target)).is_relative_to(self._root):
            raise PathEscapeError(f"a symbolic link leads {path!r} out of the artifact root")
        return str(target)

    def publish(self, source: Path, target: str) -> bool:
        return self._publisher.publish(source, Path(target))

    def open(self, target: str) -> BinaryIO:
        return io.BufferedReader(open_without_links(Path(target)))

    def read(self, target: str, start: int, stop: int | None) -> bytes:
        return read_range(Path(target), start, stop)

    def facts(self, target: str) -> FileFacts:
        return read_facts(Path(target))

    def delete(self, target: str) -> None:
        self.facts(target)
        Path(target).unlink()

    def children(self, folder: str) -> Iterator[tuple[str, FileFacts | None]]:
        target = f"{self._root}/{folder}"
        # Not even links that stay inside are followed: each object is listed once.
        if os.path.realpath(target) != target.rstrip("/"):
            raise _not_there(target)
        return children(self._filesystem.ls(target, detail=True), target)

    def check_root(self) -> None:
        if not self._root.is_dir():
            raise _not_there(str(self._root))


class MemoryPlace:
    """Objects in the memory of this process, for tests and for stores that need not last."""

    may_be_replaced = False
    capabilities = SinkCapabilities(
        durable=False,
        exclusive_create=True,
        cross_process=False,
        seekable=True,
        frame_size=FRAME_SIZE,
    )

    def __init__(self, filesystem: FileSystem, root: str) -> None:
        self._filesystem = filesystem
        self._root = root

    def make_root(self) -> None:
        """Make the root folder when it is not there."""
        with _MEMORY_LOCK:
            self._filesystem.makedirs(self._root, exist_ok=True)

    def locate(self, path: str) -> str:
        return f"{self._root}/{path}"

    def publish(self, source: Path, target: str) -> bool:
        data = source.read_bytes()
        with _MEMORY_LOCK:
            if self._filesystem.isfile(target):
                return False
            self._filesystem.pipe_file(target, data, mode="create")
        return True

    def open(self, target: str) -> BinaryIO:
        return io.BytesIO(self.read(target, 0, None))

    def read(self, target: str, start: int, stop: int | None) -> bytes:
        with _MEMORY_LOCK:
            if not self._filesystem.isfile(target):
                raise FileNotFoundError(target)
            # fsspec hands the stored file itself to every reader, position and all.
            shared = cast("io.BytesIO", self._filesystem.open(target, "rb"))
            with shared.getbuffer() as view:
                first, end = clip(start, stop, len(view))
                return bytes(view[first:end])

    def facts(self, target: str) -> FileFacts:
        with _MEMORY_LOCK:
            return facts_of(self._filesystem.info(target))

    def delete(self, target: str) -> None:
        with _MEMORY_LOCK:
            facts_of(self._filesystem.info(target))
            self._filesystem.rm_file(target)

    def children(self, folder: str) -> Iterator[tuple[str, FileFacts | None]]:
        target = f"{self._root}/{folder}"
        with _MEMORY_LOCK:
            return children(self._filesystem.ls(target, detail=True), target)

    def check_root(self) -> None:
        with _MEMORY_LOCK:
            if not self._filesystem.isdir(self._root):
                raise _not_there(self._root)


def _not_there(name: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
