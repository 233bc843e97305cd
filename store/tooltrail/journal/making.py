"""Makes facts of what a program records: the start of a call, its end, a message."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple
from uuid import UUID

from tooltrail.artifacts import (
    ArtifactNamer,
    Capture,
    CapturedStream,
    digest_of_path,
)
from tooltrail.journal.environment import environment_json
from tooltrail.journal.log import Entry
from tooltrail.records import (
    CanonicalResult,
    CompleteOutput,
    Family,
    FamilyRegistry,
    InvalidRecordError,
    Policy,
    Projection,
    Receipt,
    StreamRecord,
    ToolCall,
    UnavailableError,
    project,
    render,
)
from tooltrail.records.counted_streams import INLINE_BYTES
from tooltrail.records.digests import Digest, digest_of
from tooltrail.records.facts import (
    ArtifactFact,
    CallEnded,
    CallStarted,
    OmissionFact,
    Shown,
    StreamFact,
)

SEEN: Final = "seen"
"""Renderer of a receipt that another program made, and that the model really saw."""

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


def started_entry(
    session: UUID,
    call: ToolCall,
    family: Family,
    policy: Policy,
    *,
    invocation: UUID,
    at: datetime,
    owner: str | None,
) -> Entry:
    """The fact that a call starts.

    Raises:
        InvalidRecordError: the policy's numbers for the tool do not fit its family.
    """
    policy.budget_of(family, call.tool_name)
    environment = environment_json()
    fact = CallStarted(
        session=session,
        id=invocation,
        at=at,
        tool_name=call.tool_name,
        family=family.name,
        arguments=digest_of(call.arguments_bytes),
        policy=policy.digest,
        environment=digest_of(environment),
        call_id=call.call_id,
        title=call.title,
        message=call.message_id,
        position=call.position,
        owner=owner,
    )
    return Entry(fact, [call.arguments_bytes], [policy.to_json(), environment])


def ended_entry(
    session: UUID,
    output: CompleteOutput,
    family: Family,
    policy: Policy,
    *,
    spool: Path,
    families: FamilyRegistry,
    invocation: UUID,
    at: datetime,
    duration_ms: int | None,
    captured: Mapping[Digest, CapturedStream],
    seen: str | None = None,
) -> Ended:
    """The fact that a call ended, with the canonical result and the receipt.

    Args:
        session: id of the session.
        output: the complete output.
        family: of the result.
        policy: the budgets.
        spool: takes streams that are too long for a fact.
        families: the tool families.
        invocation: its id.
        at: when it ended.
        duration_ms: how long the tool ran, by a monotonic clock.
        captured: captures of the streams, by digest.
        seen: the text that the model was really shown; None to render one.

    Raises:
        InvalidRecordError: the output is not of its family, or a stream's bytes are not at hand.
        UnavailableError: the spool cannot be written.
    """
    namer, streams = ArtifactNamer(), output.streams
    family = families.of_output(output, family)
    projection = project(output, family, policy, namer)
    receipt = _receipt(projection, family, policy, seen)
    hidden = [one for digest, one in namer.named.items() if digest not in _digests(streams)]
    published = {digest_of_path(one.reference.path) for one in projection.artifacts}
    placed = _place((*streams, *hidden), captured, published, spool / str(invocation))
    document, canonical = output.to_json(), projection.canonical.to_json()
    shown = _shown(projection, digest_of(canonical), receipt, placed.facts[len(streams) :])
    known = None if output.result is None else output.result.facts()
    fact = CallEnded(
        session=session,
        id=invocation,
        at=at,
        state=output.final_state,
        output=digest_of(document),
        streams=placed.facts[: len(streams)],
        shown=shown,
        duration_ms=duration_ms,
        error_kind=None if output.error is None else output.error.kind,
        exit_status=None if known is None else known.exit_status,
        signal=None if known is None else known.signal,
        timed_out=None if known is None else known.timed_out,
    )
    bodies = [document, canonical, receipt.to_bytes(), *placed.bodies]
    return Ended(Entry(fact, bodies, files=placed.files), projection.canonical, receipt)


class _Placed(NamedTuple):
    """Where the bytes of some streams are.

    Attributes:
        facts: what a fact says of each stream.
        bodies: streams that travel with the fact.
        files: streams in the spool.
    """

    facts: tuple[StreamFact, ...]
    bodies: list[bytes]
    files: tuple[Path, ...]


def _place(
    streams: Sequence[StreamRecord],
    captured: Mapping[Digest, CapturedStream],
    published: Collection[Digest],
    folder: Path,
) -> _Placed:
    """Let streams in memory travel with the fact; the others are files in a folder of the spool.

    An artifact that was captured stays a file: a disk that is full may still take a short fact.
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
    return _Placed(tuple(facts), bodies, tuple(files))


def _shown(
    projection: Projection, canonical: Digest, receipt: Receipt, hidden: tuple[StreamFact, ...]
) -> Shown:
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


def _receipt(projection: Projection, family: Family, policy: Policy, seen: str | None) -> Receipt:
    if seen is None:
        return render(projection.canonical, family, policy)
    return Receipt(seen, SEEN, 0, policy.digest)


def _digests(streams: Sequence[StreamRecord]) -> set[Digest]:
    return {one.digest for one in streams}


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
