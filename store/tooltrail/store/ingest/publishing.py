"""Publishes the spooled streams of a batch before the commit that refers to them."""

import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tooltrail.artifacts import ArtifactArchive, CapturedStream, SpoolReader, StoredArtifact
from tooltrail.records import InvalidRecordError, StreamRecord, UnavailableError
from tooltrail.records.digests import Digest
from tooltrail.records.facts import StreamFact

SCRATCH: Final = "publishing"
"""Folder of the spool for temporary files of the ingester."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A stream that waits in the spool, and why."""

    stream: StreamFact
    reason: str


@dataclass
class Published:
    """What became of the streams of a batch.

    Attributes:
        stored: artifacts in the sink, by digest.
        pending: streams that wait, by digest.
        unsent: content in memory that could not be published; it is stored as a body.
    """

    stored: dict[Digest, StoredArtifact] = field(default_factory=dict[Digest, StoredArtifact])
    pending: dict[Digest, Pending] = field(default_factory=dict[Digest, Pending])
    unsent: dict[Digest, bytes] = field(default_factory=dict[Digest, bytes])


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
            InvalidRecordError: the file is missing, or is shorter than the fact says.
            UnavailableError: the file cannot be read now.
        """
        path = self._path_of(stream)
        head, tail, size = b"", b"", 0
        try:
            with path.open("rb") as stored:
                for block in SpoolReader(stored, str(path)):
                    size += len(block)
                    if len(head) < edge_bytes:
                        head += block[: edge_bytes - len(head)]
                    tail = (tail + block)[-edge_bytes:]
        except FileNotFoundError as error:
            raise InvalidRecordError(f"stream {stream.role}: {path} is missing") from error
        except OSError as error:
            raise UnavailableError(f"{path} cannot be read: {error.strerror}") from error
        if size != stream.size:
            raise InvalidRecordError(
                f"stream {stream.role}: {path} holds {size:,} bytes, not {stream.size:,}"
            )
        rest = max(0, size - len(head))
        return StreamRecord(
            role=stream.role,
            digest=stream.digest,
            size=stream.size,
            line_count=stream.line_count,
            head=head,
            tail=tail[-rest:] if rest else b"",
            produced_size=stream.produced_size,
            produced_line_count=stream.produced_line_count,
            loss_reason=stream.loss_reason,
        )

    def publish(self, spooled: Iterable[StreamFact], hidden: Iterable[StreamRecord]) -> Published:
        """Make streams durable in the sink; what it does not take now is pending.

        Args:
            spooled: streams in the spool.
            hidden: content in memory.
        """
        found, away = Published(), ""
        for stream in spooled:
            if stream.digest in found.stored or stream.digest in found.pending:
                continue
            away = away or self._put(found, self._captured(stream))
            if away:
                found.pending[stream.digest] = Pending(stream, away)
        for record in hidden:
            if record.digest in found.stored:
                continue
            away = away or self._put(found, CapturedStream(record, None))
            if away:
                found.unsent[record.digest] = record.content or b""
        with suppress(OSError):
            shutil.rmtree(self._spool / SCRATCH, ignore_errors=True)
        return found

    def discard(self, calls: Iterable[str], kept: Mapping[Digest, Pending]) -> None:
        """Remove the spool folders of calls that are committed, but for streams that wait.

        Args:
            calls: names of the folders.
            kept: what waits.
        """
        waiting = {Path(one.stream.spooled or "").parts[0] for one in kept.values()}
        for name in calls:
            if name not in waiting:
                shutil.rmtree(self._spool / name, ignore_errors=True)

    def _put(self, found: Published, captured: CapturedStream) -> str:
        """Publish one stream; why that is not possible now, or an empty text."""
        try:
            stored = self._archive.publish(captured, scratch=self._spool / SCRATCH)
        except UnavailableError as error:
            return str(error)
        found.stored[stored.digest] = stored
        return ""

    def _captured(self, stream: StreamFact) -> CapturedStream:
        record = StreamRecord(
            role=stream.role,
            digest=stream.digest,
            size=stream.size,
            line_count=stream.line_count,
            head=b"",
            produced_size=stream.produced_size,
            produced_line_count=stream.produced_line_count,
            loss_reason=stream.loss_reason,
        )
        return CapturedStream(record, self._path_of(stream))

    def _path_of(self, stream: StreamFact) -> Path:
        from tooltrail.artifacts import check_path  # noqa: PLC0415

        return self._spool / check_path(stream.spooled or "")
