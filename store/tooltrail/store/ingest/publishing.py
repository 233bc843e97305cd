"""Publishes the artifacts of a batch before the commit that refers to them."""

import hashlib
import io
import os
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from tooltrail.artifacts import (
    ArtifactArchive,
    CapturedStream,
    SpoolReader,
    StoredArtifact,
    check_path,
    open_without_links,
)
from tooltrail.records import DamageError, InvalidRecordError, StreamRecord, UnavailableError
from tooltrail.records.digests import ALGORITHM, Digest
from tooltrail.records.facts import StreamFact

SCRATCH: Final = "publishing"
"""Folder of the spool for temporary files of the ingester."""

_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class PendingArtifact:
    """An artifact whose bytes are not in the sink yet.

    Attributes:
        role: what it is for.
        digest: of the content.
        size: its bytes.
        line_count: its lines.
        spooled: its file, relative to the spool; None for content in memory.
        reason: why it waits.
    """

    role: str
    digest: Digest
    size: int
    line_count: int
    spooled: str | None
    reason: str


@dataclass
class Published:
    """What became of the artifacts of a batch.

    Attributes:
        stored: artifacts in the sink, by digest.
        waiting: content that waits, by digest.
        unsent: the bytes of waiting content that is in no file; they are stored as a body.
    """

    stored: dict[Digest, StoredArtifact] = field(default_factory=dict[Digest, StoredArtifact])
    waiting: dict[Digest, PendingArtifact] = field(default_factory=dict[Digest, PendingArtifact])
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
            InvalidRecordError: the file is missing, or holds other bytes than the fact says.
            UnavailableError: the file cannot be read now.
        """
        path = self._path_of(stream.spooled or "")
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
        return StreamRecord(
            role=stream.role,
            digest=stream.digest,
            size=size,
            line_count=stream.line_count,
            head=head,
            tail=tail[len(tail) - rest :],
            produced_size=stream.produced_size,
            produced_line_count=stream.produced_line_count,
            loss_reason=stream.loss_reason,
        )

    def publish(self, spooled: Iterable[StreamFact], attached: Iterable[StreamRecord]) -> Published:
        """Make content durable in the sink; what the sink does not take now waits.

        Args:
            spooled: streams in the spool.
            attached: content in memory.

        Raises:
            InvalidRecordError: a file of the spool is missing, or is named by no proper path.
        """
        found, away = Published(), ""
        for stream in spooled:
            if stream.digest not in found.stored and stream.digest not in found.waiting:
                waiting = PendingArtifact(
                    stream.role, stream.digest, stream.size, stream.line_count, stream.spooled, away
                )
                away = self._try(found, waiting, None)
        for record in attached:
            if record.digest not in found.stored and record.digest not in found.waiting:
                waiting = PendingArtifact(
                    record.role, record.digest, record.size, record.line_count, None, away
                )
                away = self._try(found, waiting, record.content)
        shutil.rmtree(self._spool / SCRATCH, ignore_errors=True)
        return found

    def send(self, waiting: PendingArtifact, content: bytes | None) -> StoredArtifact:
        """Publish one stream.

        Args:
            waiting: which.
            content: its bytes; None where they are in the spool.

        Raises:
            InvalidRecordError: its file is missing.
            DamageError: its file, or the object that stands in the sink, is damaged.
            UnavailableError: the sink or the file cannot serve now.
        """
        record = StreamRecord(
            role=waiting.role,
            digest=waiting.digest,
            size=waiting.size,
            line_count=waiting.line_count,
            head=b"",
            content=content,
            produced_size=waiting.size,
            produced_line_count=waiting.line_count,
        )
        captured = CapturedStream(record, self._check(waiting))
        return self._archive.publish(captured, scratch=self._spool / SCRATCH)

    def folders(self) -> list[str]:
        """Names of the folders of calls.

        Raises:
            UnavailableError: the spool cannot be read.
        """
        try:
            names = os.listdir(self._spool)  # noqa: PTH208  names are enough
        except OSError as error:
            raise UnavailableError(
                f"spool {self._spool} cannot be read: {error.strerror}"
            ) from error
        return sorted(name for name in names if _ID.fullmatch(name))

    def discard(self, folders: Iterable[str]) -> None:
        """Remove folders of the spool. One that cannot be removed is tried again later."""
        for name in folders:
            shutil.rmtree(self._spool / name, ignore_errors=True)

    def _try(self, found: Published, waiting: PendingArtifact, content: bytes | None) -> str:
        """Publish one stream unless the sink is away; why the sink is away, or an empty text."""
        away = waiting.reason
        if not away:
            try:
                found.stored[waiting.digest] = self.send(waiting, content)
            except UnavailableError as error:
                away = str(error)
            except DamageError as error:
                # Of this one alone: the object in the sink is damaged and was not replaced.
                self._wait(found, waiting, content, str(error))
                return ""
        if away:
            self._wait(found, waiting, content, away)
        return away

    def _wait(
        self, found: Published, waiting: PendingArtifact, content: bytes | None, reason: str
    ) -> None:
        self._check(waiting)
        found.waiting[waiting.digest] = replace(waiting, reason=reason)
        if content is not None:
            found.unsent[waiting.digest] = content

    def _check(self, waiting: PendingArtifact) -> Path | None:
        """The file of a stream, which must be there; None for content in memory."""
        if waiting.spooled is None:
            return None
        path = self._path_of(waiting.spooled)
        if not path.is_file():
            raise InvalidRecordError(f"stream {waiting.role}: {path} is missing")
        return path

    def _path_of(self, spooled: str) -> Path:
        return self._spool / check_path(spooled)
