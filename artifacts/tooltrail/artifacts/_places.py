"""Where file systems differ: naming, publishing and opening, one small class for each.

fsspec is handed in as an untyped file system and imported elsewhere.
"""

import contextlib
import io
import os
import threading
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

from tooltrail.artifacts._local import LocalPublisher
from tooltrail.artifacts.sink import SinkCapabilities
from tooltrail.records.errors import PathEscapeError

_MEMORY_LOCK = threading.Lock()
"""fsspec keeps one set of memory objects for the whole process, so one lock guards it."""


class FileSystem(Protocol):
    """As much of fsspec as is used here, with types."""

    def open(self, path: str, mode: str) -> object: ...
    def info(self, path: str) -> dict[str, Any]: ...
    def ls(self, path: str, *, detail: bool) -> list[dict[str, Any]]: ...
    def isdir(self, path: str) -> bool: ...
    def isfile(self, path: str) -> bool: ...
    def makedirs(self, path: str, *, exist_ok: bool) -> None: ...
    def pipe_file(self, path: str, value: bytes, *, mode: str) -> None: ...
    def rm_file(self, path: str) -> None: ...


class Place(Protocol):
    """What differs between file systems; chosen once, when a sink is opened."""

    capabilities: SinkCapabilities
    guard: AbstractContextManager[object]
    """Held around calls that look names up or delete; enters more than once."""

    def locate(self, path: str) -> str:
        """The name by which the file system knows an object, or PathEscapeError."""
        ...

    def publish(self, source: Path, target: str) -> bool:
        """See `ArtifactSink.put`; raises OSError."""
        ...

    def open(self, target: str) -> BinaryIO:
        """See `ArtifactSink.open`; raises OSError."""
        ...


class LocalPlace:
    """A folder of this machine."""

    capabilities = SinkCapabilities(
        durable=True, exclusive_create=True, cross_process=True, seekable=True
    )
    guard: AbstractContextManager[object] = contextlib.nullcontext()

    def __init__(self, root: Path) -> None:
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
        return Path(target).open("rb")


class MemoryPlace:
    """Objects in the memory of this process, for tests and for stores that need not last."""

    capabilities = SinkCapabilities(
        durable=False, exclusive_create=True, cross_process=False, seekable=True
    )
    guard: AbstractContextManager[object] = _MEMORY_LOCK

    def __init__(self, filesystem: FileSystem, root: str) -> None:
        self._filesystem = filesystem
        self._root = root

    def locate(self, path: str) -> str:
        return f"{self._root}/{path}"

    def publish(self, source: Path, target: str) -> bool:
        data = source.read_bytes()
        with self.guard:
            if self._filesystem.isfile(target):
                return False
            self._filesystem.pipe_file(target, data, mode="create")
        return True

    def open(self, target: str) -> BinaryIO:
        with self.guard:
            if not self._filesystem.isfile(target):
                raise FileNotFoundError(target)
            # fsspec hands the stored file itself to every reader, position and all.
            shared = cast("io.BytesIO", self._filesystem.open(target, "rb"))
            return io.BytesIO(shared.getvalue())
