"""Ends calls and answers whose program died: makes the facts that the program could not append.

A call and a streamed answer name the owner lock of their program. If the lock is free, the program
is dead, and the spool has all of its output that can be decoded.
"""

from contextlib import suppress
from pathlib import Path
from typing import Final

from tooltrail.artifacts import CapturedStream, open_plain, salvage
from tooltrail.journal import Entry
from tooltrail.journal.clock import now
from tooltrail.records import CompleteOutput, InvalidRecordError, error_of_interruption
from tooltrail.records.digests import digest_of
from tooltrail.records.errors import unavailable_if_failing
from tooltrail.records.facts import AnswerStarted, CallEnded, CallStarted, StreamFact
from tooltrail.records.plain_text import storable
from tooltrail.records.tool_errors import ErrorKind
from tooltrail.store.ingest.durable import sync

_REASON: Final = (
    "the program that recorded the call ended before the call did; the output of its last second"
    " may be missing"
)
_EDGE_BYTES: Final = 4 << 10
"""Bytes of head and tail that a capture keeps. The ingester ignores them and reads the file."""

_DAMAGED: Final = "damaged"
"""Folder of the spool for files that could not be read to the end: evidence for people."""

_SUFFIX: Final = ".zst"
_RECOVERED: Final = ".recovered"
"""Ending of the files with salvaged output, which have no role."""


def ending_entries(spool: Path, started: CallStarted | AnswerStarted) -> list[Entry]:
    """The facts that end a call or an answer, with the output that is left in the spool."""
    if isinstance(started, CallStarted):
        return [_interrupted(spool, started, _read_left_output(spool, started))]
    # Most ingesters never read an answer, and need not import the wire formats.
    from tooltrail.journal.answers import PAYLOAD, cut_off_entries  # noqa: PLC0415

    captured = _read_left_output(spool, started)
    payloads = [_bytes_of(one) for one in captured if one.record.role == PAYLOAD]
    return cut_off_entries(started, b"".join(payloads))


def _interrupted(spool: Path, started: CallStarted, captured: list[CapturedStream]) -> Entry:
    """The end of a call: an error, with the output so far."""
    records = [one.record for one in captured]
    name, error = storable(started.tool_name), error_of_interruption(_REASON)
    document = CompleteOutput.failure(name, error, records).to_json()
    fact = CallEnded(
        session=started.session,
        id=started.id,
        at=now(),
        state="interrupted",
        output=digest_of(document),
        streams=tuple(_stream_fact(spool, one) for one in captured),
        error_kind=ErrorKind.INTERRUPTED,
    )
    return Entry(fact, [document, *(one.content for one in records if one.content is not None)])


def _bytes_of(captured: CapturedStream) -> bytes:
    if captured.staged is None:
        return captured.record.content or b""
    with (
        unavailable_if_failing(f"{captured.staged} cannot be read"),
        open_plain(captured.staged.open("rb")) as stored,
    ):
        return stored.read()


def _stream_fact(spool: Path, captured: CapturedStream) -> StreamFact:
    spooled = None
    if captured.record.content is None and captured.staged is not None:
        spooled = captured.staged.relative_to(spool).as_posix()
    return StreamFact.of(captured.record, spooled)


def _read_left_output(spool: Path, started: CallStarted | AnswerStarted) -> list[CapturedStream]:
    """Capture again and sync the streams in the folder of a call or of an answer."""
    folder = spool / str(started.id)
    found = list[CapturedStream]()
    with unavailable_if_failing(f"{folder} cannot be read"):
        for file in sorted(folder.rglob(f"*{_SUFFIX}")):
            role = file.relative_to(folder).as_posix().removesuffix(_SUFFIX)
            kept = spool / _DAMAGED / f"{started.id}-{role}{_SUFFIX}"
            with suppress(InvalidRecordError):  # not the file of a stream
                found.append(_salvage(file, role, kept))
    return found


def _salvage(file: Path, role: str, kept: Path) -> CapturedStream:
    """Capture the part of a file that can be decoded; a damaged file is also kept in `kept`."""
    staged = file.with_suffix(_RECOVERED)
    # A killed ingester may have left a file.
    staged.unlink(missing_ok=True)
    salvaged = salvage(file, role, staged, edge_bytes=_EDGE_BYTES, moves_to=kept)
    if salvaged.problem is not None:
        kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError):
            kept.hardlink_to(file)
    if salvaged.captured.staged is not None:
        sync(salvaged.captured.staged)
        sync(salvaged.captured.staged.parent)
    return salvaged.captured
