"""The interface of storage for objects.

A sink stores opaque bytes under relative paths. It neither compresses nor checks them: the archive
does that for every sink. `SinkCapabilities` has the differences between sinks.
"""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Protocol

from tooltrail.records.frozen import Frozen

FRAME_SIZE = 256 * 1024
"""Plain bytes in a full frame: larger frames compress no better, smaller ones read no faster.

A sink whose reads are requests wants larger frames; see `SinkCapabilities.frame_size`.
"""


class SinkCapabilities(Frozen):
    """The promises of one kind of sink.

    Attributes:
        durable: after `put` has returned, the object survives a power loss.
        cross_process: another process that opens the same URL sees the same objects.
        frame_size: plain bytes in a frame for the best read speed: small for a disk, larger if
            each read is a request.
        concurrent_puts: number of puts at once for the best speed: 1 for a disk, more if each put
            waits for a remote answer.
    """

    durable: bool
    cross_process: bool
    frame_size: int
    concurrent_puts: int = 1


class ObjectStat(Frozen):
    """One stored object.

    Attributes:
        path: path of the object, relative to the root of the sink.
        stored_size: size of the stored, compressed bytes.
        modified_at: time at which the object was published, aware, in UTC.
    """

    path: str
    stored_size: int
    modified_at: datetime


class ArtifactSink(Protocol):
    """Stored objects under relative paths; `tooltrail.artifacts.testing` has tests for sinks.

    Every method MUST refuse a path that `check_path` refuses, with its errors, and MUST raise
    `UnavailableError` if the storage is unavailable. Several threads MAY call methods at once. An
    object is written once: callers can delete it, but not change it.
    """

    @property
    def capabilities(self) -> SinkCapabilities:
        """The promises of this sink. They never change."""
        ...

    @property
    def url(self) -> str:
        """The URL that opens this sink again; MUST NOT contain credentials."""
        ...

    def put(self, path: str, source: Path) -> bool:
        """Publish the bytes of a local file as one object.

        The call MUST be exclusive and atomic: an existing object at `path` MUST NOT change, and a
        reader MUST see all of the new object or nothing. On a durable sink the object MUST be
        durable when the call returns, also if it returns False. The call is idempotent: a repeated
        put of the same bytes returns False and changes nothing.

        The caller deletes the source, and MUST NOT write to it afterwards: a sink on the same disk
        MAY share its storage, make it read-only and change who may read it.

        Returns:
            True if this call created the object, False if an object has this path already.

        Raises:
            InvalidRecordError: the source is not a regular file, or the path is invalid.
        """
        ...

    def open(self, path: str) -> BinaryIO:
        """Open the stored bytes of an object for reading; the caller closes the file.

        Reading an object of any size MUST use constant memory, and opening MUST NOT read more than
        a few MiB ahead. A read that fails raises OSError.

        Raises:
            MissingArtifactError: no object has this path.
        """
        ...

    def read(self, path: str, start: int, stop: int | None = None) -> bytes:
        """Read the stored bytes from offset `start` up to `stop`.

        An object store SHOULD send one ranged request. A range is shortened to the end of the
        object. A range that starts at or after the end is empty, like one with `start == stop`.

        Args:
            path: path of the object.
            start: offset in stored bytes. A negative `start` reads the last `-start` bytes, or all
                if the object has fewer; then `stop` must be None.
            stop: offset after the last byte; None reads to the end.

        Raises:
            MissingArtifactError: no object has this path; also raised for an empty range.
            InvalidRecordError: `stop` is less than `start`, or given with a negative start.
        """
        ...

    def stat(self, path: str) -> ObjectStat:
        """The stored size and the time of one object, without reading it.

        Raises:
            MissingArtifactError: no object has this path.
        """
        ...

    def exists(self, path: str) -> bool:
        """Whether an object has this path."""
        ...

    def delete(self, path: str) -> None:
        """Remove one object.

        Raises:
            MissingArtifactError: no object has this path.
        """
        ...

    def list(self, prefix: str = "") -> Iterator[ObjectStat]:
        """Every object whose path starts with `prefix`, sorted by path.

        Unfinished objects MUST NOT appear. Objects that appear or vanish during the call MAY.
        """
        ...
