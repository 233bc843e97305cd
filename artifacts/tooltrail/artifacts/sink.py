"""The place where stored objects live, as its users see it.

A sink keeps opaque bytes under relative paths. It neither compresses nor checks them: the archive
does that around any sink. What sinks can do differently is said by `SinkCapabilities`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Protocol

FRAME_SIZE = 256 * 1024
"""Plain bytes in a full frame: larger compresses no better, smaller slices no faster on a disk.

Where each read costs a request a sink asks for larger ones; see `SinkCapabilities.frame_size`.
"""


@dataclass(frozen=True, slots=True)
class SinkCapabilities:
    """What one kind of sink promises.

    Attributes:
        durable: what `put` returned True or False for survives power loss.
        exclusive_create: of any number of concurrent puts of one path exactly one creates it.
        cross_process: another process that opens the same URL sees the same objects.
        seekable: what `open` returns can seek.
        frame_size: plain bytes in a frame that is read best from here: small where a read costs
            little, larger where each one is a request.
        concurrent_puts: how many it is worth doing at once: 1 where they share one disk, more where
            each one waits for an answer from far away.
    """

    durable: bool
    exclusive_create: bool
    cross_process: bool
    seekable: bool
    frame_size: int
    concurrent_puts: int = 1


@dataclass(frozen=True, slots=True)
class ObjectStat:
    """One stored object.

    Attributes:
        path: relative to the root of the sink.
        stored_size: bytes as stored, that is compressed.
        modified_at: when it was published, aware, in UTC.
    """

    path: str
    stored_size: int
    modified_at: datetime


class ArtifactSink(Protocol):
    """Stored objects under relative paths; `tooltrail.artifacts.testing` holds its tests.

    Every method MUST refuse a path that `check_path` refuses, with its errors, and MUST raise
    `UnavailableError` when the storage cannot serve. Methods MAY be called by several threads at
    once. An object is written once: there is no way to change one, only to delete it.
    """

    @property
    def capabilities(self) -> SinkCapabilities:
        """What this sink promises; constant for its life."""
        ...

    @property
    def url(self) -> str:
        """Where this sink is, in the form that opens it again; MUST NOT hold credentials."""
        ...

    def put(self, path: str, source: Path) -> bool:
        """Publish the bytes of a local file as one object.

        The call MUST be exclusive and atomic: when an object stands at `path` it MUST stay as it
        is, and a reader MUST see all of the new object or none. On a durable sink the object MUST
        be durable when the call returns, and that holds for the answer False too. The call is
        idempotent: a repeated put of the same bytes returns False and changes nothing.

        The source is left for the caller to delete and MUST NOT be written to afterwards: a sink
        on the same disk MAY share its storage, make it read-only and change who may read it.

        Returns:
            True when this call created the object, False when one stands there already.

        Raises:
            InvalidRecordError: the source is not a regular file, or the path is not one.
        """
        ...

    def open(self, path: str) -> BinaryIO:
        """Read the stored bytes from their beginning; the caller closes it.

        Reading one object through, however large, MUST take constant memory, and opening MUST
        NOT read more than a few MiB ahead. A read that fails raises OSError.

        Raises:
            MissingArtifactError: no object stands there.
        """
        ...

    def read(self, path: str, start: int, stop: int | None = None) -> bytes:
        """The stored bytes from offset `start` up to `stop`, without those outside.

        An object store SHOULD answer with one ranged request. What lies beyond the end of the
        object is left out, so a range that starts there is empty, as is one with `start == stop`.

        Args:
            path: of the object.
            start: offset in stored bytes; when it is negative, the last `-start` bytes are read,
                or all when there are fewer, and `stop` must be None.
            stop: the offset after the last byte; None reads to the end.

        Raises:
            MissingArtifactError: no object stands there, which holds for empty ranges too.
            InvalidRecordError: `stop` is less than `start`, or given with a negative start.
        """
        ...

    def stat(self, path: str) -> ObjectStat:
        """What is known of one object without reading it.

        Raises:
            MissingArtifactError: no object stands there.
        """
        ...

    def exists(self, path: str) -> bool:
        """Whether an object stands there."""
        ...

    def delete(self, path: str) -> None:
        """Remove one object.

        Raises:
            MissingArtifactError: no object stands there.
        """
        ...

    def list(self, prefix: str = "") -> Iterator[ObjectStat]:
        """Every object whose path starts with `prefix`, sorted by path.

        Unfinished objects MUST NOT appear. Objects that come or go meanwhile MAY appear.
        """
        ...
