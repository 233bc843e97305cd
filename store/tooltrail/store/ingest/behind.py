"""Whether the database lacks facts of a journal. Cheap, since every reading command asks."""

from pathlib import Path
from uuid import UUID

from tooltrail.journal import Cursor, has_frames, is_alive, read_journal_id
from tooltrail.journal.segments import JOURNAL_FOLDER
from tooltrail.records.errors import InvalidRecordError
from tooltrail.store.engines.connection import Connection


def is_behind(connection: Connection, spool: Path) -> bool:
    """Whether there is something to ingest: facts, or a call whose program died.

    Args:
        connection: to the database.
        spool: with the journal.

    Raises:
        UnavailableError: the database or the journal cannot be read.
    """
    folder = spool / JOURNAL_FOLDER
    journal = read_journal_id(folder)
    if journal is None:
        return False
    key, cursor = find_cursor(connection, journal)
    if has_frames(folder, cursor):
        return True
    owners = connection.query(
        "SELECT DISTINCT owner FROM invocations WHERE state <> 'success' AND state = 'started'"
        " AND journal_key = ? AND owner IS NOT NULL",
        (key,),
    )
    return any(not _is_alive(spool, owner) for (owner,) in owners)


def find_cursor(connection: Connection, journal: UUID) -> tuple[int | None, Cursor]:
    """The key of a journal's row, and the place up to which the journal is ingested."""
    name = connection.uuid(journal)
    row = connection.query_one(
        "SELECT key, segment, segment_offset, next_index, head FROM journals"
        " WHERE id = ? OR branch_of = ? ORDER BY key DESC LIMIT 1",
        (name, name),
    )
    if row is None:
        return None, Cursor()
    key, segment, offset, index, head = row
    return key, Cursor(segment, offset, index, None if head is None else bytes(head))


def _is_alive(spool: Path, owner: str) -> bool:
    try:
        return is_alive(spool, owner)
    except InvalidRecordError:
        return False
