"""The differences between kinds of storage: one small class for folders, one for memory.

A backend raises OSError, and only the backend interprets its targets. Folders need no fsspec. For
memory, the caller passes a file system of fsspec. `_object_backend` has the object stores.
"""

import contextlib
import errno
import io
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from tooltrail.artifacts._entries import FileFacts, Info, children, facts_of
from tooltrail.artifacts._local import LocalPublisher, read_facts, read_range
from tooltrail.artifacts._ranges import clip
from tooltrail.artifacts.private_files import open_without_links
from tooltrail.artifacts.sink import FRAME_SIZE, SinkCapabilities
from tooltrail.records.errors import DamageError

_MEMORY_LOCK = threading.Lock()
"""fsspec has one set of memory objects per process, so one lock guards it."""


class FileSystem(Protocol):
    """The part of fsspec that is used here, with types."""

    def open(self, path: str, mode: str) -> object: ...
    def info(self, path: str) -> Info: ...
    def ls(self, path: str, *, detail: bool) -> list[Info]: ...
    def isdir(self, path: str) -> bool: ...
    def isfile(self, path: str) -> bool: ...
    def makedirs(self, path: str, *, exist_ok: bool) -> None: ...
    def pipe_file(self, path: str, value: bytes, *, mode: str) -> None: ...
    def rm_file(self, path: str) -> None: ...


class Backend(Protocol):
    """One kind of storage; chosen once, when a sink is opened.

    All methods but `locate` raise OSError, and FileNotFoundError if the object does not exist.
    """

    @property
    def may_be_replaced(self) -> bool:
        """Whether another folder can replace the root while the sink is in use."""
        ...

    def locate(self, path: str) -> str:
        """The target for a path; raises InvalidRecordError."""
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
        """The size and time of an object."""
        ...

    def delete(self, target: str) -> None:
        """See `ArtifactSink.delete`."""
        ...

    def children(self, folder: str) -> Iterator[tuple[str, FileFacts | None]]:
        """See `_entries.children`; `folder` is relative to the root, empty or ends in a slash."""
        ...

    def check_root(self) -> None:
        """Raise unless the root exists: a disk may not be mounted, or a bucket may be deleted."""
        ...


class LocalBackend:
    """A folder on this machine."""

    may_be_replaced = True
    capabilities = SinkCapabilities(
        durable=True,
        cross_process=True,
        frame_size=FRAME_SIZE,
    )

    def __init__(self, root: Path) -> None:
        self._root = root
        self._publisher = LocalPublisher(root)

    def locate(self, path: str) -> str:
        """Refuse a path that a symbolic link leads out of the root."""
        target = self._root / path
        # Path.resolve raises RuntimeError for a loop of links.
        if not Path(os.path.realpath(target)).is_relative_to(self._root):
            problem = f"a symbolic link leads {path!r} out of the artifact root"
            raise DamageError(problem, path=path)
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
        # Links inside the root are not followed either: each object is listed once.
        if os.path.realpath(target) != target.rstrip("/"):
            raise _missing(target)
        with os.scandir(target) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    yield entry.name, None
                elif entry.is_file(follow_symlinks=False):
                    with contextlib.suppress(FileNotFoundError):  # deleted meanwhile
                        yield entry.name, read_facts(Path(entry.path))

    def check_root(self) -> None:
        if not self._root.is_dir():
            raise _missing(str(self._root))


class MemoryBackend:
    """Objects in the memory of this process, for tests and for temporary stores."""

    may_be_replaced = False
    capabilities = SinkCapabilities(
        durable=False,
        cross_process=False,
        frame_size=FRAME_SIZE,
    )

    def __init__(self, filesystem: FileSystem, root: str) -> None:
        self._filesystem = filesystem
        self._root = root

    def make_root(self) -> None:
        """Make the root folder if it is missing."""
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
            # fsspec returns the same file object, with its position, to every reader.
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
                raise _missing(self._root)


def _missing(name: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
