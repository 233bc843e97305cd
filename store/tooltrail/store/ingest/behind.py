"""Checks if the database lacks facts of a journal. Cheap, since every reading command does it."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias
from uuid import UUID

from tooltrail.journal import Cursor, find_other_end, has_later_frames, is_alive, read_journal_id
from tooltrail.journal.segments import JOURNAL_FOLDER
from tooltrail.records.errors import DamageError, InvalidRecordError
from tooltrail.store.engines.connection import Connection
from tooltrail.store.engines.failures import RESTORE

if TYPE_CHECKING:
    from tooltrail.records.facts import AnswerStarted, CallStarted

CURSOR: Final = "segment, segment_offset, next_index, head, frame_offset, entry_count"
WHOLE_JOURNAL: Final = (0, 0)
"""Segment and offset of a rejected fact about a complete journal, not about a place in it."""

_KINDS: Final = {"head": bytes | None, "frame_offset": int | None}

LEDGER_JOURNALS: Final = """
(WITH RECURSIVE found(key) AS (SELECT min(journal_key) FROM ledger_entries UNION ALL
SELECT (SELECT min(journal_key) FROM ledger_entries WHERE journal_key > found.key) FROM found
WHERE found.key IS NOT NULL) SELECT key FROM found WHERE key IS NOT NULL)"""
"""Selects the keys of the journals with ledger entries, even if the row of a journal is missing."""

ALTERED_JOURNALS: Final = f"""
SELECT ledger.key FROM {LEDGER_JOURNALS} AS ledger
LEFT JOIN journals ON journals.key = ledger.key WHERE journals.key IS NULL OR EXISTS
(SELECT 1 FROM ledger_entries WHERE journal_key = ledger.key AND n = journals.next_index)"""
"""Selects the keys of journals whose row is missing, or older than the ledger."""

Behind: TypeAlias = Literal["facts", "dead program"]

_OPEN: Final = (
    "SELECT e.fact FROM ("
    # The first condition selects the partial index.
    "SELECT id, 'call.ended' AS kind, journal_key, start_entry AS entry FROM invocations"
    " WHERE state <> 'success' AND state = 'started' AND journal_key = ? AND owner IS NOT NULL"
    " UNION ALL SELECT message_id, 'message', journal_key, entry FROM open_answers"
    " WHERE journal_key = ?) AS o"
    " JOIN ledger_entries AS e ON e.journal_key = o.journal_key AND e.n = o.entry"
    # A call whose end was rejected has ended.
    " WHERE NOT EXISTS (SELECT 1 FROM rejected_facts AS r"
    " JOIN ledger_entries AS l ON l.journal_key = r.journal_key AND l.n = r.n"
    " WHERE r.subject_id = o.id AND l.kind = o.kind)"
)


def what_is_behind(connection: Connection, spool: Path) -> Behind | None:
    """What waits to be ingested: facts, or else the end of a call whose program died."""
    folder = spool / JOURNAL_FOLDER
    journal = read_journal_id(folder)
    if journal is None:
        return None
    key, cursor = find_cursor(connection, journal)
    if has_later_frames(folder, cursor):
        return "facts"
    end = find_other_end(folder, cursor)
    if end is not None and not _is_reported(connection, journal, key, end):
        return "facts"
    return "dead program" if key is not None and find_dead(connection, spool, key) else None


def _is_reported(connection: Connection, journal: UUID, key: int | None, end: Cursor) -> bool:
    """Whether the ledger has all frames up to the end of a cut or restored journal, and a notice.

    `key` is the key of the newest row of the journal.
    """
    name = connection.uuid(journal)
    return bool(
        connection.query_one(
            "SELECT 1 FROM rejected_facts AS r JOIN ledger_entries AS e ON e.n = ? AND e.hash = ?"
            " JOIN journals AS j ON j.key = e.journal_key AND (j.id = ? OR j.branch_of = ?)"
            " WHERE r.journal_key = ? AND r.segment = ? AND r.segment_offset = ?",
            (end.index - 1, end.hash, name, name, key, *WHOLE_JOURNAL),
        )
    )


def find_cursor(connection: Connection, journal: UUID) -> tuple[int | None, Cursor]:
    """The key of the row of a journal, and the cursor behind its last ingested frame."""
    name = connection.uuid(journal)
    row = connection.query_one(
        f"SELECT key, {CURSOR} FROM journals WHERE id = ? OR branch_of = ?"
        " ORDER BY key DESC LIMIT 1",
        (name, name),
    )
    return (None, Cursor()) if row is None else (row[0], cursor_in(connection, journal, row[1:]))


def cursor_in(connection: Connection, journal: UUID, row: Sequence[Any]) -> Cursor:
    """The cursor in the columns `CURSOR` of the row of a journal.

    Raises `DamageError` if a column holds an impossible value.
    """
    for name, value in zip(CURSOR.split(", "), row, strict=True):
        if not isinstance(value, _KINDS.get(name, int)):
            raise damaged_column(connection, journal, name)
    segment, offset, index, head, _, count = row
    # The hash before the first frame of a journal is a constant, not the hash of a frame.
    return Cursor(segment, offset, index, head if index or count else Cursor().hash)


def damaged_column(connection: Connection, journal: UUID, name: str) -> DamageError:
    """The error for a column of the row of a journal."""
    message = f"journals.{name} of journal {journal} is damaged; {RESTORE}"
    return DamageError(message, path=str(connection.target))


def find_open(connection: Connection, journal_key: int) -> "Iterator[CallStarted | AnswerStarted]":
    """The facts that began the open calls and answers of a journal."""
    for (packed,) in connection.query(_OPEN, (journal_key, journal_key)):
        # Imported late, since rarely needed.
        from tooltrail.records.fact_spelling import read_fact  # noqa: PLC0415
        from tooltrail.records.facts import AnswerStarted, CallStarted  # noqa: PLC0415
        from tooltrail.store.bodies import unpack_fact  # noqa: PLC0415

        with suppress(DamageError, InvalidRecordError):  # `verify` names the ledger entry
            fact = read_fact(unpack_fact(packed))
            if isinstance(fact, CallStarted | AnswerStarted):
                yield fact


def find_dead(connection: Connection, spool: Path, journal_key: int) -> dict[UUID, str]:
    """The owner locks of the open calls and answers whose program is dead, by id."""
    found = list(find_open(connection, journal_key))
    owners = {one.id: one.owner for one in found if one.owner is not None}
    dead = {one for one in {*owners.values()} if not is_alive(spool, one)}
    return {name: owner for name, owner in owners.items() if owner in dead}
