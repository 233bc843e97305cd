"""Store plain bytes by content: name, compress and check objects around any sink.

An object's path is the digest of its plain bytes. So equal content is stored once, and a reader
can check the content. An object in a sink is never trusted for its path alone.

A damaged object that is replaced is evidence too. Its stored bytes are kept in the sink, as
`damaged/<64 hex digits of its artifact>-<8 random hex digits>.zst`, for people to examine.
"""

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from tooltrail.artifacts._checked import open_checked
from tooltrail.artifacts.captured import CapturedStream
from tooltrail.artifacts.codec import READ_SIZE
from tooltrail.artifacts.paths import artifact_path, digest_of_path
from tooltrail.artifacts.reading import ArtifactReader, open_reader
from tooltrail.artifacts.sink import ArtifactSink, ObjectStat
from tooltrail.records.digests import Digest, hex_of
from tooltrail.records.errors import DamageError, MissingArtifactError, UnavailableError
from tooltrail.records.frozen import Frozen

if TYPE_CHECKING:
    from tooltrail.artifacts._scratch import Source
    from tooltrail.records.streams import StreamRecord

HEAL_ATTEMPTS = 3
"""Attempts to replace a damaged object: one, and two more after races with other processes."""

DAMAGED = "damaged"
"""Folder of the sink for damaged objects that were replaced; no artifact path starts with it."""


class StoredArtifact(Frozen):
    """One stream that is stored in the sink.

    Attributes:
        path: path of the object, relative to the artifact root.
        digest: digest of the plain bytes.
        size: plain size in bytes.
        stored_size: stored size in bytes.
        line_count: lines in the plain bytes.
    """

    path: str
    digest: Digest
    size: int
    stored_size: int
    line_count: int


class ArtifactArchive:
    """Publishes and reads artifacts in one sink, at constant memory.

    Safe for threads and processes, and durable, if the sink is.
    """

    def __init__(self, sink: ArtifactSink) -> None:
        """Store artifacts in `sink`."""
        self._sink = sink

    @property
    def sink(self) -> ArtifactSink:
        """The sink that stores the objects."""
        return self._sink

    def move_to(self, sink: ArtifactSink) -> None:
        """Continue with another sink, to which the artifacts were moved."""
        self._sink = sink

    @property
    def frame_size(self) -> int:
        """Plain bytes in a frame of new objects; see `SinkCapabilities`."""
        return self._sink.capabilities.frame_size

    @property
    def concurrent_puts(self) -> int:
        """Streams to publish at once for the best speed; see `SinkCapabilities`."""
        return self._sink.capabilities.concurrent_puts

    def publish(self, captured: CapturedStream, *, scratch: Path | None = None) -> StoredArtifact:
        """Store a captured stream; the caller deletes the staged file afterwards.

        Idempotent: publishing the same content again finds the existing object and compares it. A
        damaged object is replaced if the captured bytes have the right digest. The damaged bytes
        are kept under `damaged/` first.

        Args:
            captured: the stream to store.
            scratch: folder for temporary files, which are needed for content in memory and for
                damaged objects. A missing folder is made with mode 0700, and is not removed. The
                caller deletes files that a killed process left in it. On the disk of the sink, no
                file is copied. The default is a new folder in the system's temporary folder.

        Raises:
            InvalidRecordError: the stream has no content, and no staged file that exists.
            DamageError: the size of the staged file differs from its size at the end of the
                capture; the object is damaged, and so is the staged file that could replace it; or
                the object is still damaged after it was replaced. A staged file is read only for a
                comparison: `verify` finds other alterations.
            UnavailableError: the sink or the staged file is unavailable.
        """
        from tooltrail.artifacts._scratch import source_of  # noqa: PLC0415  slow, not for readers

        record = captured.record
        path = artifact_path(record.digest)
        with source_of(captured, scratch, self.frame_size) as source:
            is_created = self._sink.put(path, source.file)
            if not is_created:
                self._heal(path, source, record, scratch)
        # Another source may have created the object, in other frames.
        size = source.index.object_size if is_created else self._sink.stat(path).stored_size
        return StoredArtifact(path, record.digest, record.size, size, record.line_count)

    def open(self, path: str, *, size: int | None = None) -> BinaryIO:
        """The plain bytes of an artifact, checked against the digest in its path.

        The check fails before the end of the stream is reported, and with a known `size` before
        the last bytes are returned. A caller that stops earlier has checked only the frames.

        Raises:
            MissingArtifactError: no object has this path.
            DamageError: from a read, if the object is cut or altered; `DigestMismatchError` if
                the altered object can still be decoded.
            InvalidRecordError: not the path of an artifact.
            UnavailableError: the sink is unavailable.
        """
        digest_of_path(path)
        return open_checked(self._sink.open(path), path, size)

    def reader(self, path: str, *, size: int | None = None) -> ArtifactReader:
        """Open an artifact to read parts of it; only these parts are fetched and decoded.

        The index at the end of the object is read first: one request, or two for gigabytes.

        Args:
            path: path of the artifact.
            size: expected plain size in bytes.

        Raises:
            MissingArtifactError: no object has this path.
            DamageError: the object is cut, or its index is altered or missing; `open` still reads
                the intact bytes. `DigestMismatchError` if the size differs.
            InvalidRecordError: not the path of an artifact.
            UnavailableError: the sink is unavailable.
        """
        return open_reader(self._sink, path, size=size)

    def verify(self, path: str, *, size: int | None = None, line_count: int | None = None) -> int:
        """Read all frames of an artifact and its index, and return its plain size.

        Every frame is decoded, and its size, checksum and newlines are compared with the index at
        the end of the object.

        Args:
            path: path of the artifact.
            size: expected plain size in bytes.
            line_count: expected number of lines.

        Raises:
            IndexMismatchError: the content is correct, but the newlines in the index or
                `line_count` are not.
            DamageError: a frame is cut or altered; the index is altered, missing, or of other
                frames. `DigestMismatchError` if the content has another size or digest.
            MissingArtifactError, InvalidRecordError, UnavailableError: see `open`.
        """
        from tooltrail.artifacts._verifying import verify_object  # noqa: PLC0415  slow, not for readers

        return verify_object(self._sink, path, size=size, line_count=line_count)

    def stat(self, path: str) -> ObjectStat:
        """The stored size and the time of an artifact.

        Raises:
            MissingArtifactError: no object has this path.
            InvalidRecordError: not the path of an artifact.
        """
        digest_of_path(path)
        return self._sink.stat(path)

    def exists(self, path: str) -> bool:
        """Whether an object has this path; its content is not checked.

        Raises:
            InvalidRecordError: not the path of an artifact.
        """
        digest_of_path(path)
        return self._sink.exists(path)

    def _heal(
        self, path: str, source: "Source", record: "StreamRecord", scratch: Path | None
    ) -> None:
        """Replace an object if it is damaged."""
        from tooltrail.artifacts._scratch import copy_of, is_sound  # noqa: PLC0415  slow, not for readers

        for _ in range(HEAL_ATTEMPTS):
            if not self._is_damaged(path, source.file, record.size):
                return
            if not is_sound(source, record.digest):
                problem = f"artifact {path} is damaged, and so is the file that could replace it"
                raise DamageError(problem, path=path)
            # Another process that heals this object may have deleted it first.
            with contextlib.suppress(MissingArtifactError):
                with self._sink.open(path) as stored, copy_of(stored, path, scratch) as copy:
                    name = f"{hex_of(record.digest)}-{os.urandom(4).hex()}.zst"
                    self._sink.put(f"{DAMAGED}/{name}", copy)
                self._sink.delete(path)
            if self._sink.put(path, source.file):
                return
        raise DamageError(f"artifact {path} is damaged and cannot be replaced", path=path)

    def _is_damaged(self, path: str, source: Path, size: int) -> bool:
        try:
            with source.open("rb") as ours, self._sink.open(path) as stored:
                if _equal(ours, stored):
                    return False
            # Another version of the codec may compress the same bytes differently.
            self.verify(path, size=size)
        except DamageError:
            return True
        except OSError as error:
            raise UnavailableError(
                f"artifact {path} cannot be compared: {error.strerror or error}"
            ) from error
        return False


def _equal(ours: BinaryIO, stored: BinaryIO) -> bool:
    while block := ours.read(READ_SIZE):
        if stored.read(len(block)) != block:
            return False
    return not stored.read(1)
