"""What all checks share: the rows, the findings so far, and what is known across batches."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple
from uuid import UUID

from sqlalchemy import Table

from tooltrail.records.digests import ALGORITHM, Digest
from tooltrail.records.errors import DamageError
from tooltrail.records.facts import Fact, read_fact
from tooltrail.store import schema
from tooltrail.store.bodies import decode_body
from tooltrail.store.column_groups import CLOSING, OPENING
from tooltrail.store.engines.connection import Connection
from tooltrail.store.ingest.batch import compared_members
from tooltrail.store.packed_facts import unpack_fact
from tooltrail.store.verify.findings import Finding, FindingKind, Totals
from tooltrail.store.verify.source import Source, Unreadable, Values

_KNOWN_SESSIONS: Final = 20_000
"""Sessions that are remembered. With more in one journal, places are compared less strictly."""

SESSION: Final = (
    "key",
    "id",
    "journal_key",
    "opened_at",
    *OPENING,
    *CLOSING,
)
_KINDS: Final = {"call.started": "calls", "message": "messages", "session.opened": "sessions"}


@dataclass(frozen=True, slots=True)
class Repeat:
    """A fact whose row names another ledger entry: a repetition, or the row is altered.

    Attributes:
        subject: in words.
        table: of the row.
        column: that names the entry.
        place: journal key and number of the entry that the row names.
        here: the same of this fact.
        json: of this fact.
        seq: of its row, in case that the fact is no repetition.
    """

    subject: str
    table: str
    column: str
    place: tuple[Any, Any]
    here: tuple[int, int]
    json: bytes
    seq: "Place | None" = None


class Place(NamedTuple):
    """A message or call in its session.

    Attributes:
        n: its ledger entry.
        subject: in words.
        table: of its row.
        session: that it belongs to.
        seq: its place; None where the row is missing.
    """

    n: int
    subject: str
    table: str
    session: UUID
    seq: Any


@dataclass
class Checking:
    """The state of one verification.

    Attributes:
        totals: what was compared.
        is_strict: whether the ledger determines every place of a session: the store has one
            journal, and its sessions fit into memory.
        has_forgotten: whether there were more sessions than are remembered.
        matched: rows that were compared with a fact, by table.
        tools: for each tool on offer, whether it was made when an offer named it.
        repeats: facts to be compared with the fact that their row names.
    """

    totals: Totals
    is_strict: bool = True
    has_forgotten: bool = False
    matched: Counter[Any] = field(default_factory=Counter[Any])
    tools: dict[Any, bool] = field(default_factory=dict[Any, bool])
    repeats: list[Repeat] = field(default_factory=list[Repeat])
    _found: list[Finding] = field(default_factory=list[Finding])
    _sessions: dict[Any, Values] = field(default_factory=dict[Any, Values])
    _places: dict[UUID, int] = field(default_factory=dict[UUID, int])
    _closed: dict[UUID, int] = field(default_factory=dict[UUID, int])
    _source: Source | None = None

    @property
    def source(self) -> Source:
        """The rows."""
        assert self._source is not None
        return self._source

    @source.setter
    def source(self, source: Source) -> None:
        self._source = source

    @property
    def connection(self) -> Connection:
        """Spells values as the driver does."""
        return self.source.connection

    def take(self) -> list[Finding]:
        """The findings since the last time."""
        found, self._found = self._found, []
        return found

    def damage(self, subject: str, table: str, column: str | None, message: str) -> None:
        """Report damage."""
        self._report("damage", subject, table, column, message)

    def incomplete(self, subject: str, table: str, column: str | None, message: str) -> None:
        """Report what is incomplete, and is said to be."""
        self._report("incomplete", subject, table, column, message)

    def unreadable(self, table: str, row: str, column: str | None) -> None:
        """Report what the database cannot read."""
        what = table if column is None else f"{table}.{column}"
        subject = f"row with {row} of {table}"
        self.damage(subject, table, column, f"{what} of the row with {row} cannot be read")

    def _report(
        self, kind: FindingKind, subject: str, table: str, column: str | None, message: str
    ) -> None:
        self._found.append(Finding(kind, subject, table, column, message))

    def compare(
        self,
        subject: str,
        table: str,
        names: Iterable[str],
        expected: Sequence[object],
        stored: Sequence[object],
    ) -> None:
        """Compare a row with what its fact makes of it, column by column."""
        if expected == stored:
            return
        for name, wanted, found in zip(names, expected, stored, strict=True):
            if wanted != found:
                message = f"{table}.{name} of {subject} is not what its fact says"
                self.damage(subject, table, name, message)

    def compare_rows(
        self,
        subject: str,
        table: Table,
        expected: Sequence[Mapping[str, Any]],
        stored: Sequence[Values],
        names: Sequence[str],
    ) -> None:
        """Compare the rows of one owner with those that its fact makes, in their order."""
        for wanted, found in zip(expected, stored, strict=False):
            self.compare(subject, table.name, names, tuple(wanted[one] for one in names), found)
        if len(expected) != len(stored):
            message = f"{subject} has {len(stored)} rows of {table.name}, not {len(expected)}"
            self.damage(subject, table.name, None, message)

    def count_entry(self, fact: Fact | None) -> None:
        """Count what a ledger entry is about."""
        if fact is not None and fact.kind in _KINDS:
            self.totals.checked[_KINDS[fact.kind]] += 1

    def begin_journal(self) -> None:
        """Forget what was known of the journal before."""
        self._places.clear()
        self._closed.clear()

    def load_sessions(self, ids: Iterable[UUID]) -> None:
        """Read the rows of sessions that a batch names."""
        if len(self._sessions) > _KNOWN_SESSIONS:
            self._sessions.clear()
        if len(self._places) > _KNOWN_SESSIONS:
            self._places.clear()
            self._closed.clear()
            self.is_strict, self.has_forgotten = False, True
        names = [self.connection.uuid(one) for one in dict.fromkeys(ids)]
        missing = [one for one in names if one not in self._sessions]
        for row in self.source.rows(schema.sessions, SESSION, "id", missing):
            self._sessions[row[1]] = row

    def session(self, session: UUID) -> Values | None:
        """The row of a session; its columns are those of `SESSION`."""
        return self._sessions.get(self.connection.uuid(session))

    def is_new(self, session: UUID) -> bool:
        """Whether a session is met for the first time in this journal."""
        if session in self._places:
            return False
        self._places[session] = 1
        return True

    def check_places(self, places: Iterable[Place]) -> None:
        """Check the places of messages and calls in their sessions.

        With one journal each has the place behind the one before. Several journals share places.
        """
        for _, subject, table, session, seq in sorted(places):
            expected = self._places.get(session, 1)
            is_after = isinstance(seq, int) and not self.is_strict and seq >= expected
            is_right = seq == expected or is_after
            if seq is not None and not is_right:
                message = f"{table}.seq of {subject} is not its place in the session"
                self.damage(subject, table, "seq", message)
            self._places[session] = 1 + (int(seq or 0) if is_after else expected)

    def close(self, session: UUID, n: int) -> bool:
        """Note that an entry closes a session; whether it is the first that does."""
        return self._closed.setdefault(session, n) == n

    def is_late(self, session: UUID, n: int) -> bool | None:
        """Whether a session was closed before an entry; None where that is not known."""
        return self._closed.get(session, n) < n if self.is_strict else None

    def resolve_repeats(self) -> list[Place]:
        """Compare repeated facts with those that their rows name.

        Returns:
            The places of those that are no repetitions.
        """
        repeats, self.repeats = self.repeats, []
        by_journal: dict[Any, set[int]] = {}
        for one in repeats:
            if isinstance(one.place[0], int) and isinstance(one.place[1], int):
                by_journal.setdefault(one.place[0], set()).add(one.place[1])
        facts = {
            (journal, n): fact
            for journal, numbers in by_journal.items()
            for n, fact in self.source.rows(
                schema.ledger_entries,
                ("n", "fact"),
                "n",
                sorted(numbers),
                {"journal_key": journal},
            )
        }
        places = list[Place]()
        for one in repeats:
            verdict = _compare_repeat(one, facts.get(one.place))
            if verdict == "conflict":
                entry = f"entry {one.here[1]} of the ledger"
                message = f"{entry} contradicts {one.subject}, and is not among the rejected facts"
                self.damage(one.subject, "ledger_entries", None, message)
            elif verdict == "altered":
                message = f"{one.table}.{one.column} of {one.subject} is not the entry of its fact"
                self.damage(one.subject, one.table, one.column, message)
                places += [] if one.seq is None else [one.seq]
        return places

    def body(self, digest: Digest) -> bytes | None:
        """The bytes of a body; None where it is missing or damaged, which is reported elsewhere."""
        columns = ("size", "encoding", "data")
        rows = self.source.rows(schema.bodies, columns, "digest", [self.connection.sha(digest)])
        try:
            return decode_body(digest, *rows[0]) if rows else None
        except (DamageError, TypeError, ValueError, OverflowError):
            return None

    def fact_at(self, journal: Any, n: Any) -> Fact | None:
        """The fact of a ledger entry; None where it cannot be read."""
        where = {"journal_key": journal}
        rows = self.source.rows(schema.ledger_entries, ("fact",), "n", [n], where)
        try:
            return read_fact(unpack_fact(rows[0][0])) if rows else None
        except (ValueError, TypeError, DamageError):
            return None

    def is_removed(self, digest: Digest) -> bool:
        """Whether retention removed the body of a digest."""
        if not digest:
            return False
        keys = [self.connection.sha(digest)]
        return bool(
            self.source.rows(schema.tombstones, ("digest",), "digest", keys, {"kind": "body"})
        )

    def digest(self, value: Any) -> Digest:
        """A stored digest in words."""
        return Digest(f"{ALGORITHM}:{value.hex()}" if isinstance(value, bytes) else repr(value))


def _compare_repeat(repeat: Repeat, stored: Any) -> Literal["same", "conflict", "altered"]:
    """Whether a fact repeats the one that its row names."""
    if isinstance(stored, Unreadable):
        return "same"
    (journal, n), (here_journal, here_n) = repeat.place, repeat.here
    if not isinstance(stored, bytes) or (journal == here_journal and n >= here_n):
        return "altered"
    try:
        before = compared_members(unpack_fact(stored))
        now = compared_members(repeat.json)
    except (ValueError, DamageError):
        return "altered"
    if before == now:
        return "same"
    is_of_same = all(before.get(name) == now.get(name) for name in ("kind", "id", "session"))
    return "conflict" if is_of_same else "altered"
