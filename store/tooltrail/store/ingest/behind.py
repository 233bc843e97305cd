"""How far a journal is ingested. Cheap to find, since every reading command does it.

A folder that was cut off, or restored from an older copy, lacks the frame before the cursor. All
frames in it are then ingested as another journal, a branch. Facts that are ingested already only
add a ledger entry.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias
from uuid import UUID

from tooltrail.journal import (
    Cursor,
    Frame,
    Gap,
    has_frames,
    is_alive,
    read_journal,
    read_journal_id,
)
from tooltrail.journal.ends import peek_hint
from tooltrail.journal.frames import FRAMES_FROM
from tooltrail.journal.segments import JOURNAL_FOLDER, segment_numbers
from tooltrail.records.errors import DamageError, InvalidRecordError
from tooltrail.records.ids import keyed_id
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
    " WHERE state <> 'success' AND state = 'started' AND owner IS NOT NULL"
    " UNION ALL SELECT message_id, 'message', journal_key, entry FROM open_answers) AS o"
    " JOIN ledger_entries AS e ON e.journal_key = o.journal_key AND e.n = o.entry"
    # A branch repeats the entries of its journal.
    " JOIN ledger_entries AS mine"
    " ON mine.journal_key = ? AND mine.n = o.entry AND mine.hash = e.hash"
    # A call whose end was rejected has ended.
    " WHERE NOT EXISTS (SELECT 1 FROM rejected_facts AS r"
    " JOIN ledger_entries AS l ON l.journal_key = r.journal_key AND l.n = r.n"
    " WHERE r.subject_id = o.id AND l.kind = o.kind)"
)


class Place(NamedTuple):
    """How far a journal is ingested.

    Attributes:
        key: key of the row of the journal; 0 before the first commit.
        journal: id of the journal in that row.
        cursor: cursor behind the last ingested frame.
        frame_offset: offset of that frame; None if damage is before the cursor.
        entry_count: number of ledger entries.
        branch_of: id of the journal of which this one is a branch; None if it is none.
        notice: problem of the journal to report with the next commit.
    """

    key: int
    journal: UUID
    cursor: Cursor = Cursor()
    frame_offset: int | None = None
    entry_count: int = 0
    branch_of: UUID | None = None
    notice: str | None = None

    @property
    def root(self) -> UUID:
        """The id that the files of the journal have."""
        return self.branch_of or self.journal


def what_is_behind(connection: Connection, spool: Path) -> Behind | None:
    """What waits to be ingested: facts, or else the end of a call whose program died."""
    folder = spool / JOURNAL_FOLDER
    place = find_place(connection, folder)
    if place is None:
        return None
    if place.notice is not None or has_frames(folder, place.cursor):
        return "facts"
    return "dead program" if find_dead(connection, spool, place.key) else None


def find_place(connection: Connection, folder: Path) -> Place | None:
    """How far the journal in a folder is ingested; None if nothing was recorded yet.

    Raises `DamageError` if a row of the journal has an impossible value.
    """
    journal = read_journal_id(folder)
    if journal is None:
        return None
    name = connection.uuid(journal)
    rows = connection.query(
        f"SELECT key, id, branch_of, {CURSOR} FROM journals WHERE id = ? OR branch_of = ?"
        " ORDER BY key DESC",
        (name, name),
    )
    places = [_place_in(connection, journal, row) for row in rows]
    for place in places:
        if _has_last_frame(folder, place):
            return place
    if not places:
        return Place(0, journal)
    newest, numbers = places[0], segment_numbers(folder)
    if _may_be_damaged(folder, newest):
        return newest
    notice = (
        f"the last ingested frame, {newest.cursor.index - 1:,}, is not in {folder}. Either the "
        "journal was cut off or restored from an older copy, or two machines used copies of it, or "
        "its row in the database was altered. All facts in the folder are ingested as a branch"
    )
    begin = Cursor(numbers[0] if numbers else 1, hash=None)
    # The id is derived, so that a repeated attempt gives the branch the same id.
    branch = keyed_id("journal", f"{journal} {newest.key}")
    return Place(0, branch, begin, branch_of=journal, notice=notice)


def _has_last_frame(folder: Path, place: Place) -> bool:
    """Whether a journal holds the frame before a place, or goes on right behind that frame."""
    cursor, numbers = place.cursor, segment_numbers(folder)
    later = [one for one in numbers if one > cursor.segment]
    if cursor.segment in numbers:
        if place.frame_offset is None:
            return False
        before = Cursor(cursor.segment, place.frame_offset, cursor.index - 1, None)
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
    if not is_later and place.frame_offset is None:  # the item before is damage
        following = next(read_journal(folder, cursor), None)
        if following is None:
            return not has_frames(folder, cursor)
        return isinstance(following, Frame) and following.index >= cursor.index
    begin = cursor.replaced(segment=numbers[0], offset=FRAMES_FROM)
    first = next(read_journal(folder, begin), None)
    if isinstance(first, Gap):  # an altered head, or missing segments
        return first.offset == 0 or (is_later and first.cursor.index > cursor.index)
    return is_later and (first is None or first.index >= cursor.index)


def _place_in(connection: Connection, journal: UUID, row: Sequence[Any]) -> Place:
    """The place in the row of a journal: its key, id and `branch_of`, and the columns `CURSOR`."""
    key, name, branch_of, *columns = row
    for column, value in zip(CURSOR.split(", "), columns, strict=True):
        if not isinstance(value, _KINDS.get(column, int)):
            message = f"journals.{column} of journal {journal} is damaged; {RESTORE}"
            raise DamageError(message, path=str(connection.target))
    segment, offset, index, head, frame_offset, count = columns
    # The hash before the first frame of a journal is a constant, not the hash of a frame.
    cursor = Cursor(segment, offset, index, head if index or count else Cursor().hash)
    root = None if branch_of is None else journal
    return Place(key, uuid_from(name), cursor, frame_offset, count, root)


def find_open(connection: Connection, journal_key: int) -> "Iterator[CallStarted | AnswerStarted]":
    """The facts that began the open calls and answers of a journal."""
    for (packed,) in connection.query(_OPEN, (journal_key,)):
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
