"""How far a journal is ingested: its place. Cheap to find, since every reading command does it.

A folder that was cut off, or restored from an older copy, lacks the frame before the cursor. All
frames in it are then ingested as another journal, a branch. Facts that are ingested already only
add a ledger entry.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias
from uuid import UUID

from tooltrail.journal.clock import now
from tooltrail.journal.ends import peek_hint
from tooltrail.journal.frames import FRAMES_FROM, Cursor, Frame
from tooltrail.journal.owners import is_alive
from tooltrail.journal.reading import Gap, has_frames, read_journal, read_journal_id
from tooltrail.journal.segments import JOURNAL_FOLDER, segment_numbers
from tooltrail.records.errors import DamageError, InvalidRecordError, UnavailableError
from tooltrail.records.ids import keyed_id
from tooltrail.store.engines.connection import Connection, Row
from tooltrail.store.engines.failures import RESTORE
from tooltrail.store.read.columns import Columns, damage_of

if TYPE_CHECKING:
    from tooltrail.records.facts import AnswerStarted, CallStarted

_PLACE: Final = Columns(
    "journals: key id segment segment_offset next_index head frame_offset entry_count"
)
WHOLE_JOURNAL: Final = (0, 0)
"""Segment and offset of a rejected fact about a complete journal, not about a place in it."""

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


class CursorMovedError(UnavailableError):
    """Another transaction moved the cursor; read it again."""


class Place(NamedTuple):
    """How far a journal is ingested.

    Attributes:
        key: key of the row of the journal; 0 before the first commit.
        journal: id of the journal in that row.
        cursor: cursor behind the last ingested frame.
        frame_offset: offset of that frame; None if damage, or nothing, is before the cursor.
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
    has_items = has_frames(folder, place.cursor) and any(read_journal(folder, place.cursor))
    if place.notice is not None or has_items:
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
        f"SELECT {_PLACE.sql}, branch_of FROM journals WHERE id = ? OR branch_of = ?"
        " ORDER BY key DESC",
        (name, name),
    )
    places, unknown = [_place_in(connection, journal, row) for row in rows], list[Place]()
    for place in places:
        is_there = _is_there(folder, place)
        if is_there:
            return place
        if is_there is None:
            unknown.append(place)
    if not places:
        return Place(0, journal)
    if unknown:
        return max(unknown, key=lambda one: one.cursor.index)
    numbers = segment_numbers(folder)
    notice = (
        f"the last ingested frame, {places[0].cursor.index - 1:,}, is not in {folder}. Either it "
        "was cut off or damaged, or the journal was restored from an older copy, or two machines "
        "used copies of it, or its row in the database was altered. All facts in the folder are "
        "ingested as a branch"
    )
    begin = Cursor(numbers[0] if numbers else 1, hash=None)
    # The id is derived, so that a repeated attempt gives the branch the same id.
    branch = keyed_id("journal", f"{journal} {places[0].key}")
    return Place(0, branch, begin, branch_of=journal, notice=notice)


def _is_there(folder: Path, place: Place) -> bool | None:
    """Whether a journal holds the frame before a place, or goes on right behind that frame.

    None if damage to the journal hides that.
    """
    cursor = place.cursor
    numbers = [one for one in segment_numbers(folder) if one >= cursor.segment]
    if not numbers:
        hint = peek_hint(folder)
        if hint is None or hint.cursor.offsets < cursor.offsets:
            return False
        return True if hint.cursor == cursor else None  # the newest segment may be missing
    if numbers[0] == cursor.segment and place.frame_offset is not None:
        before = Cursor(cursor.segment, place.frame_offset, cursor.index - 1, None)
        frame = next(read_journal(folder, before), None)
        if isinstance(frame, Frame) and frame.cursor == cursor:
            return True
    begin = Cursor(numbers[0], FRAMES_FROM, cursor.index, cursor.hash or b"unknown")
    first = next(read_journal(folder, begin), None)
    if isinstance(first, Gap) and first.offset == 0:
        return None  # the head of the segment is altered
    if numbers[0] > cursor.segment:
        return _is_right_behind(cursor, first)
    return None if place.frame_offset is None and _is_behind_damage(folder, cursor) else False


def _is_right_behind(cursor: Cursor, first: Frame | Gap | None) -> bool | None:
    """Like `_is_there`, for a cursor whose segment is deleted: it was ingested to its end.

    `first` is the first item of the next segment, read behind the cursor.
    """
    if not isinstance(first, Gap) or first.data:
        return True
    # Other frames are there, or segments between are missing.
    least = cursor.index if cursor.hash is None else cursor.index + 1
    return None if first.cursor.index >= least else False


def _is_behind_damage(folder: Path, cursor: Cursor) -> bool:
    """Whether a cursor is at the beginning of its segment, or behind or in damage."""
    last: Frame | Gap | None = None
    for one in read_journal(folder, Cursor(cursor.segment, hash=None)):
        if (one.segment, one.offset) >= cursor.offsets:
            break
        last = one
    is_covered = isinstance(last, Gap) and last.cursor.offsets >= cursor.offsets
    return is_covered or cursor.offset == FRAMES_FROM


def _place_in(connection: Connection, journal: UUID, row: Sequence[Any]) -> Place:
    """The place in the row of a journal, which has the columns `_PLACE` and `branch_of`."""
    values, problems = _PLACE.read(row)
    if damage := damage_of("journals", values["key"], problems):
        raise DamageError(f"journal {journal}: {damage}; {RESTORE}", path=str(connection.target))
    key, name, segment, offset, index, head, frame_offset, count = values.values()
    branch_of = row[-1]
    # The hash before the first frame of a journal is a constant, not the hash of a frame.
    is_new = not (index or count) and branch_of is None
    cursor = Cursor(segment, offset, index, Cursor().hash if is_new else head)
    root = None if branch_of is None else journal
    return Place(key, name, cursor, frame_offset, count, root)


def move_place(
    connection: Connection, place: Place, items: Sequence[Frame | Gap], spool: Path
) -> Place:
    """Move the row of a journal behind some frames and gaps. Creates a missing row; locks the row.

    Returns the new place. Raises `CursorMovedError` if the row is no longer at `place`.
    """
    import socket  # noqa: PLC0415  readers do not need it

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
