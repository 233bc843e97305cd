"""The position of an ingester in a journal: the row of the journal, updated with its facts.

A folder that was restored from an older copy lacks the frame before the cursor. New facts in such a
folder are a branch: the ledger continues with them as a separate journal.
"""

import hashlib
import socket
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Final
from uuid import UUID

from tooltrail.journal import Cursor, Frame, Gap, read_journal
from tooltrail.journal.clock import now
from tooltrail.journal.ends import peek_hint
from tooltrail.journal.segments import segment_numbers
from tooltrail.records.errors import UnavailableError
from tooltrail.store.engines.connection import Connection, Row
from tooltrail.store.engines.values import uuid_from
from tooltrail.store.ingest.behind import CURSOR, cursor_in, damaged_column

_AT_ONCE: Final = 512
_IS_INGESTED: Final = "SELECT 1 FROM ledger_entries WHERE journal_key = ? AND n = ?"


class CursorMovedError(UnavailableError):
    """Another transaction moved the cursor; read it again."""


@dataclass(frozen=True, slots=True)
class Place:
    """How far a journal is ingested.

    Attributes:
        key: key of the row of the journal; 0 before the first commit.
        branch_of: id of the journal from which this one branched off.
        cursor: cursor behind the last ingested frame.
        frame_offset: offset of that frame; None if unknown.
        notice: problem of the journal to report with the next commit.
        is_cut: whether the journal lacks ingested frames, and has no new ones.
    """

    key: int
    journal: UUID
    cursor: Cursor
    branch_of: UUID | None = None
    frame_offset: int | None = None
    entry_count: int = 0
    notice: str | None = None
    is_cut: bool = False


def find_place(connection: Connection, folder: Path, journal: UUID) -> Place:
    """How far the journal in a folder is ingested.

    Raises `DamageError` if the row of the journal is altered.
    """
    rows = connection.query(
        f"SELECT key, id, {CURSOR} FROM journals WHERE id = ? OR branch_of = ? ORDER BY key DESC",
        (connection.uuid(journal), connection.uuid(journal)),
    )
    places: list[Place] = []
    for key, name, *columns in rows:
        found = uuid_from(name)
        branch_of = None if found == journal else journal
        cursor = cursor_in(connection, found, columns)
        if connection.query(_IS_INGESTED, (key, cursor.index)):
            raise damaged_column(connection, found, "next_index")
        *_, frame_offset, count = columns
        places.append(Place(key, found, cursor, branch_of, frame_offset, count))
    for place in places:
        if _is_in(folder, place):
            return place
    return _branch(connection, folder, journal, places) if places else Place(0, journal, Cursor())


def move_place(
    connection: Connection, place: Place, items: Sequence[Frame | Gap], spool: Path
) -> Place:
    """Move the row of a journal behind some frames and gaps. Creates a missing row; locks the row.

    Returns the new place. Raises `CursorMovedError` if the row is no longer at `place`.
    """
    name, at, old = connection.uuid(place.journal), connection.moment(now()), place.cursor
    host, folder = connection.text(socket.gethostname()), connection.text(str(spool))
    if not place.key:
        row: Row = {
            "id": name,
            "host": host,
            "spool": folder,
            "branch_of": connection.uuid(place.branch_of),
            "entry_count": 0,
            "next_index": old.index,
            "segment": old.segment,
            "segment_offset": old.offset,
            "created_at": at,
            "ingested_at": at,
        }
        connection.insert_once("journals", [row])
    cursor, frame_offset = old, place.frame_offset
    if items:
        cursor = items[-1].cursor
        frame_offset = items[-1].offset if isinstance(items[-1], Frame) else None
    count = place.entry_count + sum(isinstance(one, Frame) for one in items)
    moved = connection.execute(
        "UPDATE journals SET entry_count = ?, next_index = ?, head = ?, segment = ?,"
        " segment_offset = ?, frame_offset = ?, ingested_at = ?, host = ?, spool = ?"
        " WHERE id = ? AND segment = ? AND segment_offset = ?",
        (
            *(count, cursor.index, cursor.hash, cursor.segment, cursor.offset, frame_offset, at),
            *(host, folder, name, old.segment, old.offset),
        ),
    )
    if not moved:
        raise CursorMovedError(f"journal {place.journal} was ingested meanwhile")
    ((key,),) = connection.query("SELECT key FROM journals WHERE id = ?", (name,))
    return replace(
        place, key=key, cursor=cursor, frame_offset=frame_offset, entry_count=count, notice=None
    )


def _is_in(folder: Path, place: Place) -> bool:
    """Whether a journal holds the frame before a place, or goes on behind that frame."""
    numbers = [one for one in segment_numbers(folder) if one >= place.cursor.segment]
    if not numbers:
        hint = peek_hint(folder)
        return hint is not None and hint.cursor.offsets >= place.cursor.offsets
    if numbers[0] > place.cursor.segment:
        # A segment that was ingested to its end is deleted. The next one begins behind that frame.
        first = next(read_journal(folder, Cursor(numbers[0], hash=None)), None)
        return not isinstance(first, Frame) or first.index >= place.cursor.index
    if place.frame_offset is None:
        return True
    before = Cursor(place.cursor.segment, place.frame_offset, place.cursor.index - 1, None)
    frame = next(read_journal(folder, before), None)
    if isinstance(frame, Frame) and frame.cursor == place.cursor:
        return True
    head = next(read_journal(folder, Cursor(place.cursor.segment)), None)
    return isinstance(head, Gap) and head.offset == 0  # the head of the segment is altered


def _refuse_altered(connection: Connection, place: Place, **expected: object) -> None:
    """Raise `DamageError` if a column of the row of a journal differs from its expected value."""
    cursor = place.cursor
    values = (cursor.segment, cursor.offset, cursor.index, cursor.hash, place.frame_offset)
    for name, value in zip(CURSOR.split(", "), values, strict=False):
        if expected.get(name, value) != value:
            raise damaged_column(connection, place.journal, name)


def _branch(connection: Connection, folder: Path, journal: UUID, places: list[Place]) -> Place:
    """The place where a restored journal departs from the ledger.

    Raises `DamageError` if the journal fits the ledger, and only its row is altered.
    """
    last = "SELECT n, hash FROM ledger_entries WHERE journal_key = ? ORDER BY n DESC LIMIT 1"
    for place in places:
        if place.frame_offset is None:
            continue  # the last item was damage, which is not in the ledger
        for n, stored in connection.query(last, (place.key,)):
            _refuse_altered(connection, place, next_index=n + 1, head=bytes(stored))
    numbers = segment_numbers(folder)
    begin = Cursor(numbers[0] if numbers else 1, hash=None)
    newest = places[0]
    lost = (
        f"frame {newest.cursor.index - 1:,} in {folder} is not the one that was ingested: the "
        "journal was cut off, or restored from an older copy, or two machines used copies of it"
    )
    frames = (one for one in read_journal(folder, begin) if isinstance(one, Frame))
    ends = {(one.cursor.index, one.cursor.hash): one for one in places}
    while some := list(islice(frames, _AT_ONCE)):
        for one in some:
            end = ends.get((one.cursor.index, one.hash))
            if end is not None:  # the last ingested frame is there, so the row is wrong
                at = {"segment": one.segment, "segment_offset": one.end, "frame_offset": one.offset}
                _refuse_altered(connection, end, **at)
        known_count = _known_count(connection, some, places)
        # The branch begins behind the last known frame, with the damage before its first frame.
        begin = some[known_count - 1].cursor if known_count else begin
        if known_count < len(some):
            found = some[known_count]
            # The id is derived, so that every ingester gives the branch the same id.
            digest = bytearray(hashlib.sha256(journal.bytes + found.hash).digest()[:16])
            digest[6], digest[8] = digest[6] & 0x0F | 0x80, digest[8] & 0x3F | 0x80
            return Place(
                key=0,
                journal=UUID(bytes=bytes(digest)),
                branch_of=journal,
                cursor=begin.replaced(hash=None),
                notice=f"{lost}. It is a branch from frame {found.index:,} on",
            )
    return replace(newest, notice=f"{lost}. The ledger has them", is_cut=True)


def _known_count(connection: Connection, frames: list[Frame], places: list[Place]) -> int:
    """The number of frames before the first one that is not in the ledger."""
    known = {
        (n, bytes(stored))
        for place in places
        for n, stored in connection.query(
            "SELECT n, hash FROM ledger_entries WHERE journal_key = ? AND n BETWEEN ? AND ?",
            (place.key, frames[0].index, frames[-1].index),
        )
    }
    new = (at for at, one in enumerate(frames) if (one.index, one.hash) not in known)
    return next(new, len(frames))
