"""Whether the database lacks facts of a journal. Cheap, since every reading command asks."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias
from uuid import UUID

from tooltrail.journal import Cursor, has_frames, is_alive, read_journal_id
from tooltrail.journal.segments import JOURNAL_FOLDER
from tooltrail.records.errors import InvalidRecordError
from tooltrail.store.engines.connection import Connection

Behind: TypeAlias = Literal["facts", "dead program"]


def what_is_behind(connection: Connection, spool: Path) -> Behind | None:
    """What there is to ingest: facts, or else the end of a call whose program died.

    Args:
        connection: to the database.
        spool: with the journal.

    Raises:
        DamageError: the heads of all segments are altered.
        UnavailableError: the database or the journal cannot be read.
    """
    folder = spool / JOURNAL_FOLDER
    journal = read_journal_id(folder)
    if journal is None:
        return None
    key, cursor = find_cursor(connection, journal)
    if has_frames(folder, cursor):
        return "facts"
    is_dead = any(not _is_alive(spool, owner) for owner in _owners(connection, key))
    return "dead program" if is_dead else None


def _owners(connection: Connection, key: int | None) -> Iterator[str]:
    """The owner locks of the calls and answers of a journal that have not ended."""
    calls = connection.query(
        "SELECT DISTINCT owner FROM invocations WHERE state <> 'success' AND state = 'started'"
        " AND journal_key = ? AND owner IS NOT NULL",
        (key,),
    )
    yield from (owner for (owner,) in calls)
    answers = connection.query(
        "SELECT l.fact FROM open_answers AS o JOIN ledger_entries AS l"
        " ON l.journal_key = o.journal_key AND l.n = o.entry WHERE o.journal_key = ?",
        (key,),
    )
    for (packed,) in answers:
        from tooltrail.records.facts import AnswerStarted, read_fact  # noqa: PLC0415  rarely needed
        from tooltrail.store.packed_facts import unpack_fact  # noqa: PLC0415  rarely needed

        fact = read_fact(unpack_fact(packed))
        if isinstance(fact, AnswerStarted) and fact.owner is not None:
            yield fact.owner


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
