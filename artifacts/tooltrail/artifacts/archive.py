"""Plain bytes by content: names, compresses and checks what a sink only stores.

An object's path is the digest of its plain bytes, so equal content is stored once, and a reader
knows what it must find. Nothing that stands in a sink is trusted because it has the right name.

A damaged object that is replaced is evidence too: its stored bytes are kept beside the artifacts,
as `damaged/<64 hex digits of its artifact>-<8 random hex digits>.zst`, for people to look at. So
are those of a damaged source that cannot heal a damaged object.
"""

import contextlib
import io
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal, NamedTuple

from tooltrail.artifacts._checked import CheckedReader
from tooltrail.artifacts._scratch import Source, copy_of, is_sound, source_of
from tooltrail.artifacts._verifying import verify_object
from tooltrail.artifacts.captured import CapturedStream
from tooltrail.artifacts.codec import READ_SIZE, PlainReader
from tooltrail.artifacts.frame_index import FrameIndex, read_index
from tooltrail.artifacts.paths import artifact_path, digest_of_path
from tooltrail.artifacts.reading import ArtifactReader, open_reader
from tooltrail.artifacts.sink import ArtifactSink, ObjectStat
from tooltrail.records.digests import Digest, hex_of
from tooltrail.records.errors import DamageError, MissingArtifactError, UnavailableError

if TYPE_CHECKING:
    from tooltrail.records.streams import StreamRecord

HEAL_ATTEMPTS = 3
"""Replacements of a damaged object before giving up: one, and two races lost to other healers."""

DAMAGED = "damaged"
"""Folder of the sink for damaged objects that were replaced; no artifact path starts with it."""

Outcome = Literal["created", "existed", "healed"]


@dataclass(frozen=True, slots=True)
class StoredArtifact:
    """One stream that stands in the sink.

    Attributes:
        path: relative to the artifact root.
        digest: of the plain bytes.
        size: plain bytes.
        stored_size: bytes as stored.
        line_count: lines in the plain bytes.
        outcome: `created` by this call; `existed`, and has the same stored bytes or was found to be
            right, unless `damage` says otherwise; `healed` when a damaged object stood there, was
            kept under another path and was replaced.
        damage: what is known to be damaged in the object that stands there, in one sentence, since
            what was to be stored had been altered after it was captured; else None.
    """

    path: str
    digest: Digest
    size: int
    stored_size: int
    line_count: int
    outcome: Outcome
    damage: str | None = None


class _Placed(NamedTuple):
    """How an object came to stand there, and what is known to be damaged in it."""

    outcome: Outcome
    damage: str | None = None


class ArtifactArchive:
    """Publishes and reads artifacts in one sink, at constant memory.

    As safe for threads and processes, and as durable, as the sink is.
    """

    def __init__(self, sink: ArtifactSink) -> None:
        """Keep artifacts in `sink`."""
        self._sink = sink

    @property
    def sink(self) -> ArtifactSink:
        """The sink underneath."""
        return self._sink

    def move_to(self, sink: ArtifactSink) -> None:
        """Go on with another sink, to which the same artifacts were moved."""
        self._sink = sink

    @property
    def frame_size(self) -> int:
        """Plain bytes in a frame of new objects; see `SinkCapabilities`."""
        return self._sink.capabilities.frame_size

    @property
    def concurrent_puts(self) -> int:
        """How many streams it is worth publishing at once; see `SinkCapabilities`."""
        return self._sink.capabilities.concurrent_puts

    def publish(self, captured: CapturedStream, *, scratch: Path | None = None) -> StoredArtifact:
        """Store a captured stream; the staged file is left for the caller to delete.

        Idempotent: publishing the same content again finds it there. An object that is there is
        compared, and one that is damaged is replaced when these bytes have the digest that it
        should have. The damaged bytes are kept under `damaged/` first.

        Args:
            captured: what to store.
            scratch: folder for temporary files, which are needed for content in memory and for
                damaged objects. It is made, with mode 0700, when it is missing,
                and stays; what a killed process left in it is the caller's to delete. On the disk
                of the sink nothing is copied. By default a folder of the system's temporary one.

        Raises:
            InvalidRecordError: the stream has neither content nor a staged file that is there.
            DamageError: the staged file has another size than its capture left it with; or the
                object stays damaged although it was replaced. A staged file is read only when it
                is compared: `verify` finds what was altered in it.
            UnavailableError: the sink or the staged file cannot serve.
        """
        record = captured.record
        path = artifact_path(record.digest)
        with source_of(captured, scratch, self.frame_size) as source:
            placed = self._place(path, source, record, scratch)
        return StoredArtifact(
            path=path,
            digest=record.digest,
            size=record.size,
            stored_size=self._stored_size(path, source, placed),
            line_count=record.line_count,
            outcome=placed.outcome,
            damage=placed.damage,
        )

    def open(self, path: str, *, size: int | None = None) -> BinaryIO:
        """The plain bytes of an artifact, checked against the digest in its path.

        The check fails before the end of the stream is reported, and with a known `size` before
        the last bytes are handed out. Who stops reading earlier has checked the frames only.

        Raises:
            MissingArtifactError: no object stands there.
            DamageError: from a read, when the object is cut or altered; `DigestMismatchError`
                when it can be decoded all the same.
            InvalidRecordError: not the path of an artifact.
            UnavailableError: the sink cannot serve.
        """
        return io.BufferedReader(self._checked(path, size), READ_SIZE)

    def reader(self, path: str, *, size: int | None = None) -> ArtifactReader:
        """Any part of an artifact, at the cost of that part.

        The index at the end of the object is read first: one request, two for gigabytes.

        Args:
            path: of the artifact.
            size: plain bytes that were stored, to be compared.

        Raises:
            MissingArtifactError: no object stands there.
            DamageError: the object is cut, or its index is altered or missing; `open` reads all
                the same what can be read. `DigestMismatchError` when the size differs.
            InvalidRecordError: not the path of an artifact.
            UnavailableError: the sink cannot serve.
        """
        return open_reader(self._sink, path, size=size)

    def index_of(self, path: str) -> FrameIndex | None:
        """The index at the end of an artifact, None when it has none.

        Raises:
            MissingArtifactError: no object stands there.
            DamageError: the index was altered.
            InvalidRecordError: not the path of an artifact.
            UnavailableError: the sink cannot serve.
        """
        digest_of_path(path)
        return read_index(lambda size: self._sink.read(path, -size, None), path)

    def verify(self, path: str, *, size: int | None = None, line_count: int | None = None) -> int:
        """Read an artifact through, frames and index, and return its plain size.

        Every frame is decoded, and its size, checksum and newlines are compared with the index at
        the end of the object.

        Args:
            path: of the artifact.
            size: plain bytes that were stored.
            line_count: lines that were stored.

        Raises:
            IndexMismatchError: the content is right, and newlines or lines are not.
            DamageError: a frame is cut or altered; the index is altered, missing, or of other
                frames. `DigestMismatchError` when the content has another size or digest.
            MissingArtifactError, InvalidRecordError, UnavailableError: see `open`.
        """
        return verify_object(self._sink, path, size=size, line_count=line_count)

    def stat(self, path: str) -> ObjectStat:
        """What the sink knows of an artifact.

        Raises:
            MissingArtifactError: no object stands there.
            InvalidRecordError: not the path of an artifact.
        """
        digest_of_path(path)
        return self._sink.stat(path)

    def exists(self, path: str) -> bool:
        """Whether an object has this path; says nothing of its content.

        Raises:
            InvalidRecordError: not the path of an artifact.
        """
        digest_of_path(path)
        return self._sink.exists(path)

    def _checked(self, path: str, size: int | None) -> CheckedReader:
        digest_of_path(path)
        return CheckedReader(PlainReader(self._sink.open(path), path), path, size)

    def _stored_size(self, path: str, source: Source, placed: _Placed) -> int:
        """Asked of the sink unless it was created just now, since an older one may be pruned."""
        if placed.outcome == "created":
            return source.index.object_size
        return self._sink.stat(path).stored_size

    def _place(
        self, path: str, source: Source, record: "StreamRecord", scratch: Path | None
    ) -> _Placed:
        if self._sink.put(path, source.file):
            return _Placed("created")
        outcome: Outcome = "existed"
        for _ in range(HEAL_ATTEMPTS):
            sameness = self._compare(path, source.file, record.size)
            if sameness != "damaged":
                return _Placed(outcome)
            if not is_sound(source, record.digest):
                kept = self._keep_damaged(path, source.file)
                return _Placed(
                    outcome,
                    f"artifact {path} is damaged: it was altered after it was captured, and so is"
                    f" what stands there; it is kept as {kept}",
                )
            outcome = "healed"
            # Whoever heals the same object may have deleted it first.
            with contextlib.suppress(MissingArtifactError):
                with self._sink.open(path) as stored, copy_of(stored, path, scratch) as copy:
                    self._keep_damaged(path, copy)
                self._sink.delete(path)
            if self._sink.put(path, source.file):
                return _Placed(outcome)
        raise DamageError(f"artifact {path} is damaged and cannot be replaced", path=path)

    def _keep_damaged(self, path: str, damaged: Path) -> str:
        """Keep the bytes of a damaged object under another path."""
        kept = f"{DAMAGED}/{hex_of(digest_of_path(path))}-{secrets.token_hex(4)}.zst"
        self._sink.put(kept, damaged)
        return kept

    def _compare(self, path: str, source: Path, size: int) -> Literal["equal", "sound", "damaged"]:
        try:
            with source.open("rb") as ours, self._sink.open(path) as stored:
                if _equal(ours, stored):
                    return "equal"
            # Another version of the codec may have compressed the same bytes differently.
            self.verify(path, size=size)
        except DamageError:
            return "damaged"
        except OSError as error:
            raise UnavailableError(
                f"artifact {path} cannot be compared: {error.strerror or error}"
            ) from error
        return "sound"


def _equal(ours: BinaryIO, stored: BinaryIO) -> bool:
    while block := ours.read(READ_SIZE):
        if stored.read(len(block)) != block:
            return False
    return not stored.read(1)
