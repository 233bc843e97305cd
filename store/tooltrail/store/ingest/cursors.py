"""The position of an ingester in a journal: the row of the journal, updated with its facts.

A folder that was cut off, or restored from an older copy, lacks the frame before the cursor. All
frames in it are then ingested as another journal, a branch. Facts that are ingested already change
nothing.
"""

import socket
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

from tooltrail.journal import Cursor, Frame, Gap, read_journal
from tooltrail.journal.clock import now
from tooltrail.journal.ends import peek_hint
from tooltrail.journal.frames import FRAMES_FROM
from tooltrail.journal.segments import segment_numbers
from tooltrail.records.errors import UnavailableError
from tooltrail.records.ids import keyed_id
from tooltrail.store.engines.connection import Connection, Row
from tooltrail.store.ingest.behind import Place, find_places


class CursorMovedError(UnavailableError):
    """Another transaction moved the cursor; read it again."""


def find_place(connection: Connection, folder: Path, journal: UUID) -> Place:
    """How far the journal in a folder is ingested.

    Raises `DamageError` if the row of the journal is altered.
    """
    places = find_places(connection, journal)
    for place in places:
        if not place.key or _has_last_frame(folder, place):
            return place
    if _may_be_damaged(folder, places[0]):
        return places[0]
    numbers = segment_numbers(folder)
    notice = (
        f"frame {places[0].cursor.index - 1:,} in {folder} is not the one that was ingested: the "
        "journal was cut off, or restored from an older copy, or two machines used copies of it, "
        "or its row in the database was altered. What is there now is ingested as a branch"
    )
    begin = Cursor(numbers[0] if numbers else 1, hash=None)
    # The id is derived, so that a repeated attempt gives the branch the same id.
    branch = keyed_id("journal", f"{journal} {places[0].key}")
    return Place(0, branch, begin, branch_of=journal, notice=notice)


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
    return Place(key, place.journal, cursor, frame_offset, count, place.branch_of)


def _has_last_frame(folder: Path, place: Place) -> bool:
    """Whether a journal holds the frame before a place, or goes on right behind that frame."""
    cursor, numbers = place.cursor, segment_numbers(folder)
    later = [one for one in numbers if one > cursor.segment]
    if cursor.segment in numbers:
        before = Cursor(cursor.segment, place.frame_offset or 0, cursor.index - 1, None)
        frame = next(read_journal(folder, before), None)
        return isinstance(frame, Frame) and frame.cursor == cursor
    if not later:
        hint = peek_hint(folder)
        return hint is not None and hint.cursor == cursor
    # A segment that was ingested to its end is deleted.
    begin = cursor.replaced(segment=later[0], offset=FRAMES_FROM)
    return cursor.hash is not None and not isinstance(next(read_journal(folder, begin), None), Gap)


def _may_be_damaged(folder: Path, place: Place) -> bool:
    """Whether the frame before a place may be missing because the journal is damaged there."""
    cursor = place.cursor
    numbers = [one for one in segment_numbers(folder) if one >= cursor.segment]
    if not numbers:
        hint = peek_hint(folder)
        return hint is not None and hint.cursor.offsets >= cursor.offsets
    is_later = numbers[0] > cursor.segment
    if not is_later and place.frame_offset is None:
        return True  # the item before is damage
    begin = cursor.replaced(segment=numbers[0], offset=FRAMES_FROM)
    first = next(read_journal(folder, begin), None)
    if isinstance(first, Gap):  # an altered head, or missing segments
        return first.offset == 0 or (is_later and first.cursor.index > cursor.index)
    return is_later and (first is None or first.index >= cursor.index)
