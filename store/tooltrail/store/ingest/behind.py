"""Checks if the database lacks facts of a journal. Cheap, since every reading command does it."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias
from uuid import UUID

from tooltrail.journal import Cursor, has_frames, is_alive, read_journal_id
from tooltrail.journal.segments import JOURNAL_FOLDER
from tooltrail.records.errors import DamageError, InvalidRecordError
from tooltrail.store.engines.connection import Connection
from tooltrail.store.engines.failures import RESTORE
from tooltrail.store.engines.values import uuid_from

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


class Place(NamedTuple):
    """How far a journal is ingested.

    Attributes:
        key: key of the row of the journal; 0 before the first commit.
        cursor: cursor behind the last ingested frame.
        frame_offset: offset of that frame; None if unknown.
        branch_of: id of the journal whose folder was restored.
        notice: problem of the journal to report with the next commit.
    """

    key: int
    journal: UUID
    cursor: Cursor = Cursor()
    frame_offset: int | None = None
    entry_count: int = 0
    branch_of: UUID | None = None
    notice: str | None = None


def what_is_behind(connection: Connection, spool: Path) -> Behind | None:
    """What waits to be ingested: facts, or else the end of a call whose program died."""
    folder = spool / JOURNAL_FOLDER
    journal = read_journal_id(folder)
    if journal is None:
        return None
    places = find_places(connection, journal)
    key = next((one.key for one in places if not has_frames(folder, one.cursor)), None)
    if key is None:
        return "facts"
    return "dead program" if find_dead(connection, spool, key) else None


def find_places(connection: Connection, journal: UUID) -> list[Place]:
    """How far a journal is ingested. One that was restored has several rows: the newest is first.

    Raises `DamageError` if a row has an impossible value.
    """
    rows = connection.query(
        f"SELECT key, id, {CURSOR} FROM journals WHERE id = ? OR branch_of = ? ORDER BY key DESC",
        (connection.uuid(journal), connection.uuid(journal)),
    )
    return [
        Place(key, uuid_from(name), _cursor_in(connection, journal, columns), *columns[-2:])
        for key, name, *columns in rows
    ] or [Place(0, journal)]


def _cursor_in(connection: Connection, journal: UUID, row: Sequence[Any]) -> Cursor:
    """The cursor in the columns `CURSOR` of the row of a journal."""
    for name, value in zip(CURSOR.split(", "), row, strict=True):
        if not isinstance(value, _KINDS.get(name, int)):
            message = f"journals.{name} of journal {journal} is damaged; {RESTORE}"
            raise DamageError(message, path=str(connection.target))
    segment, offset, index, head, _, count = row
    # The hash before the first frame of a journal is a constant, not the hash of a frame.
    return Cursor(segment, offset, index, head if index or count else Cursor().hash)


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
