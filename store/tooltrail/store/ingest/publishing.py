"""Publishes the artifacts of a batch before the commit that refers to them."""

import hashlib
import io
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from tooltrail.artifacts import (
    ArtifactArchive,
    CapturedStream,
    SpoolReader,
    StoredArtifact,
    check_path,
    open_without_links,
)
from tooltrail.records import DamageError, InvalidRecordError, StreamRecord, UnavailableError
from tooltrail.records.digests import ALGORITHM
from tooltrail.records.facts import StreamFact
from tooltrail.store.references import stream_members

SCRATCH: Final = "publishing"
"""Folder of the spool for temporary files of the ingester."""


class PendingArtifact(NamedTuple):
    """An artifact whose bytes are not in the sink yet.

    Attributes:
        stream: what is known of it; where it names no file of the spool, the bytes are in memory.
        content: its bytes in memory; else None.
        reason: why it waits.
    """

    stream: StreamFact
    content: bytes | None = None
    reason: str = ""


class Published(NamedTuple):
    """What became of the artifacts of a batch.

    Attributes:
        stored: those in the sink.
        waiting: those that the sink did not take now.
    """

    stored: list[StoredArtifact]
    waiting: list[PendingArtifact]


class SpooledStreams:
    """Streams that producers captured in a spool. For one thread.

    Args:
        spool: the folder.
        archive: where artifacts go.
    """

    def __init__(self, spool: Path, archive: ArtifactArchive) -> None:
        self._spool = spool
        self._archive = archive

    def read_spooled(self, stream: StreamFact, edge_bytes: int) -> StreamRecord:
        """The record of a spooled stream with its two ends.

        Raises:
            InvalidRecordError: the file is missing, or holds other bytes than the fact says.
            UnavailableError: the file cannot be read now.
        """
        path = self._spool / check_path(stream.spooled or "")
        head, tail, size, digest = b"", b"", 0, hashlib.sha256()
        try:
            with io.BufferedReader(open_without_links(path)) as stored:
                for block in SpoolReader(stored, str(path)):
                    size += len(block)
                    digest.update(block)
                    head += block[: max(0, edge_bytes - len(head))]
                    tail = (tail + block[-edge_bytes:])[-edge_bytes:] if edge_bytes else b""
        except FileNotFoundError as error:
            raise InvalidRecordError(f"stream {stream.role}: {path} is missing") from error
        except OSError as error:
            raise UnavailableError(f"{path} cannot be read: {error.strerror}") from error
        if f"{ALGORITHM}:{digest.hexdigest()}" != stream.digest or size != stream.size:
            raise InvalidRecordError(
                f"stream {stream.role}: {path} holds {size:,} bytes, which are not the "
                f"{stream.size:,} bytes of {stream.digest}"
            )
        rest = min(len(tail), size - len(head))
        return StreamRecord(**stream_members(stream), head=head, tail=tail[len(tail) - rest :])

    def publish(self, artifacts: Iterable[PendingArtifact]) -> Published:
        """Make content durable in the sink; what the sink does not take now waits.

        Raises:
            InvalidRecordError: a file of the spool is missing, or is named by no proper path.
        """
        found, away = Published([], []), ""
        by_digest = {one.stream.digest: one for one in artifacts}
        for one in by_digest.values():
            self._file_of(one.stream)
            reason = away
            if not away:
                try:
                    found.stored.append(self.send(one))
                    continue
                except UnavailableError as error:
                    reason = away = str(error)
                except DamageError as error:
                    # Of this one alone: the object in the sink is damaged and was not replaced.
                    reason = str(error)
            found.waiting.append(one._replace(reason=reason))
        if by_digest:
            shutil.rmtree(self._spool / SCRATCH, ignore_errors=True)
        return found

    def send(self, artifact: PendingArtifact) -> StoredArtifact:
        """Publish one artifact.

        Raises:
            InvalidRecordError: its file is missing.
            DamageError: its file, or the object that stands in the sink, is damaged.
            UnavailableError: the sink or the file cannot serve now.
        """
        stream, content = artifact.stream, artifact.content
        record = StreamRecord(**stream_members(stream), head=b"", content=content)
        captured = CapturedStream(record, self._file_of(stream))
        return self._archive.publish(captured, scratch=self._spool / SCRATCH)

    def _file_of(self, stream: StreamFact) -> Path | None:
        """The file of a stream, which must be there; None for content in memory."""
        if stream.spooled is None:
            return None
        path = self._spool / check_path(stream.spooled)
        if not path.is_file():
            raise InvalidRecordError(f"stream {stream.role}: {path} is missing")
        return path
