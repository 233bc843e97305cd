"""Makes the parts of the fact that a call ended: its name, its streams, and what was shown."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

from tooltrail.artifacts import (
    Capture,
    CapturedStream,
    digest_of_path,
)
from tooltrail.journal.log import Entry
from tooltrail.records import (
    CanonicalResult,
    CompleteOutput,
    InvalidRecordError,
    Projection,
    Receipt,
    StreamRecord,
    ToolCall,
    UnavailableError,
)
from tooltrail.records.counted_streams import INLINE_BYTES
from tooltrail.records.digests import Digest, digest_of
from tooltrail.records.facts import (
    ArtifactFact,
    OmissionFact,
    Shown,
    StreamFact,
)

_EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_AHEAD: Final = timedelta(days=1)
"""By which the clocks of two machines may differ."""


@dataclass(frozen=True, slots=True)
class Ended:
    """What a call came to, before it is appended.

    Attributes:
        entry: the fact with its bodies.
        canonical: the canonical result.
        receipt: what to show to the model.
    """

    entry: Entry
    canonical: CanonicalResult
    receipt: Receipt


def under_full_name(call: ToolCall, output: CompleteOutput) -> CompleteOutput:
    """The output by the name under which its call is recorded.

    Raises:
        InvalidRecordError: the output is of another tool.
    """
    name = call.full_name
    if output.tool_name not in {name, call.tool_name}:
        raise InvalidRecordError(f"the call is of {name!r}, not of {output.tool_name!r}")
    return output if output.tool_name == name else output.model_copy(update={"tool_name": name})


class Placed(NamedTuple):
    """Where the bytes of some streams are.

    Attributes:
        facts: what a fact says of each stream.
        bodies: streams that travel with the fact.
        files: streams in the spool.
    """

    facts: tuple[StreamFact, ...]
    bodies: list[bytes]
    files: tuple[Path, ...]


def place_streams(
    streams: Sequence[StreamRecord],
    captured: Mapping[Digest, CapturedStream],
    published: Collection[Digest],
    folder: Path,
) -> Placed:
    """Let streams in memory travel with the fact; the others are files in a folder of the spool.

    An artifact that was captured stays a file: a disk that is full may still take a short fact.

    Raises:
        InvalidRecordError: the bytes of a stream are not at hand.
        UnavailableError: the spool cannot be written.
    """
    facts, bodies, files = list[StreamFact](), list[bytes](), list[Path]()
    for stream in streams:
        spooled, known = None, captured.get(stream.digest)
        is_file = known is not None and known.staged is not None and stream.digest in published
        if is_file or stream.content is None or stream.size > INLINE_BYTES:
            path = _spooled_file(folder, stream, known)
            files.append(path)
            spooled = str(path.relative_to(folder.parent))
        else:
            _check_digest(stream)
            bodies.append(stream.content)
        facts.append(StreamFact.of(stream, spooled))
    return Placed(tuple(facts), bodies, tuple(files))


def shown_of(
    projection: Projection, canonical: Digest, receipt: Receipt, hidden: tuple[StreamFact, ...]
) -> Shown:
    """What the caller gets, as the fact says it."""
    return Shown(
        canonical=canonical,
        receipt=digest_of(receipt.to_bytes()),
        renderer=receipt.renderer_name,
        renderer_version=receipt.renderer_version,
        omissions=tuple(
            OmissionFact(**one.model_dump()) for one in (*projection.omissions, *receipt.omissions)
        ),
        artifacts=tuple(
            ArtifactFact(role=one.role, digest=digest_of_path(one.reference.path))
            for one in projection.artifacts
        ),
        hidden=hidden,
    )


def check_times(started_at: datetime | None, finished_at: datetime | None, now: datetime) -> None:
    """Refuse times that cannot be those of a call.

    Raises:
        InvalidRecordError: a time has no zone or is far off, or the end is before the start.
    """
    for name, moment in (("started_at", started_at), ("finished_at", finished_at)):
        if moment is None:
            continue
        if moment.utcoffset() is None:
            raise InvalidRecordError(f"{name} has no time zone: {moment}")
        if not _EARLIEST <= moment <= now + _MOST_AHEAD:
            raise InvalidRecordError(f"{name} is far off: {moment}")
    if started_at and finished_at and finished_at < started_at:
        raise InvalidRecordError(f"finished_at {finished_at} is before started_at {started_at}")


def _check_digest(stream: StreamRecord) -> None:
    if stream.content is not None and digest_of(stream.content) != stream.digest:
        raise InvalidRecordError(f"stream {stream.role!r} has another content than its digest")


def _spooled_file(folder: Path, stream: StreamRecord, captured: CapturedStream | None) -> Path:
    """The spool file of a stream; content in memory is written there."""
    if captured is not None and captured.staged is not None:
        return captured.staged
    if stream.content is None:
        raise InvalidRecordError(
            f"stream {stream.role!r} was not captured for this call: its bytes are not at hand"
        )
    _check_digest(stream)
    path = folder / f"{stream.role}.zst"
    with Capture(stream.role, path, edge_bytes=0) as capture:
        capture.write(stream.content)
    written = capture.close()
    if written.staged is None or written.record.digest != stream.digest:
        reason = written.record.loss_reason or "it was cut"
        raise UnavailableError(f"stream {stream.role!r} cannot be kept in {folder}: {reason}")
    return written.staged
