"""Moves the row of a journal, which says how far the journal is ingested, with its facts."""

import socket
from collections.abc import Sequence
from pathlib import Path

from tooltrail.journal import Frame, Gap
from tooltrail.journal.clock import now
from tooltrail.records.errors import UnavailableError
from tooltrail.store.engines.connection import Connection, Row
from tooltrail.store.ingest.behind import Place


class CursorMovedError(UnavailableError):
    """Another transaction moved the cursor; read it again."""


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
