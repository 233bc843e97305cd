"""What all checks share: the rows, the findings so far, and what is known across batches."""

from collections import Counter, defaultdict
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
from tooltrail.store.engines.connection import Connection, Row
from tooltrail.store.ingest.batch import differing_members
from tooltrail.store.packed_facts import unpack_fact
from tooltrail.store.verify.findings import Finding, Totals
from tooltrail.store.verify.source import Source, Unreadable

_KNOWN_SESSIONS: Final = 20_000
"""Sessions that are remembered. With more in one journal, places are compared less strictly."""

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
        source: the rows.
        is_strict: whether the ledger determines every place of a session: the store has one
            journal, and its sessions fit into memory.
        has_forgotten: whether there were more sessions than are remembered.
        matched: rows that were compared with a fact, by table.
        tools: for each tool on offer, whether it was made when an offer named it.
        repeats: facts to be compared with the fact that their row names.
    """

    totals: Totals
    source: Source = field(init=False)
    is_strict: bool = True
    has_forgotten: bool = False
    matched: Counter[Any] = field(default_factory=Counter[Any])
    tools: dict[Any, bool] = field(default_factory=dict[Any, bool])
    repeats: list[Repeat] = field(default_factory=list[Repeat])
    _found: list[Finding] = field(default_factory=list[Finding])
    _sessions: dict[Any, Row] = field(default_factory=dict[Any, Row])
    _places: dict[UUID, int] = field(default_factory=dict[UUID, int])
    _closed: dict[UUID, int] = field(default_factory=dict[UUID, int])

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
        self._found.append(Finding("damage", subject, table, column, message))

    def incomplete(self, subject: str, table: str, column: str | None, message: str) -> None:
        """Report what is incomplete, and is said to be."""
        self._found.append(Finding("incomplete", subject, table, column, message))

    def unreadable(self, table: str, row: str, column: str | None) -> None:
        """Report what the database cannot read."""
        what = table if column is None else f"{table}.{column}"
        subject = f"row with {row} of {table}"
        self.damage(subject, table, column, f"{what} of the row with {row} cannot be read")

    def compare(
        self, subject: str, table: str, expected: Mapping[str, object], stored: Row
    ) -> None:
        """Compare a row with what its fact makes of it, column by column."""
        for name, wanted in expected.items():
            if wanted != stored[name]:
                message = f"{table}.{name} of {subject} is not what its fact says"
                self.damage(subject, table, name, message)

    def compare_rows(
        self, subject: str, table: Table, expected: Sequence[Row], stored: Sequence[Row]
    ) -> None:
        """Compare the rows of one owner with those that its fact makes, in their order."""
        for wanted, found in zip(expected, stored, strict=False):
            self.compare(subject, table.name, wanted, found)
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
        for row in self.source.rows(schema.sessions, "id", missing):
            self._sessions[row["id"]] = row

    def rows_by_owner(self, table: Table, by: str, keys: Sequence[Any]) -> dict[Any, list[Row]]:
        """The rows of a table that refer to some others, by the column that does."""
        owned: dict[Any, list[Row]] = defaultdict(list)
        for row in self.source.rows(table, by, keys):
            owned[row[by]].append(row)
        return owned

    def session(self, session: UUID) -> Row | None:
        """The row of a session."""
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

    def is_source(  # noqa: PLR0917  see `Repeat`
        self,
        subject: str,
        table: str,
        columns: tuple[str, str],
        row: Row,
        here: tuple[int, int],
        json: bytes,
        seq: "Place | None" = None,
    ) -> bool:
        """Whether a row comes from a fact; else `resolve_repeats` looks at the fact again."""
        place = (row[columns[0]], row[columns[1]])
        if place == here:
            return True
        altered = columns[1] if place[0] == here[0] else columns[0]
        self.repeats.append(Repeat(subject, table, altered, place, here, json, seq))
        return False

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
            (journal, row["n"]): row["fact"]
            for journal, numbers in by_journal.items()
            for row in self.source.rows(
                schema.ledger_entries, "n", sorted(numbers), {"journal_key": journal}
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
        rows = self.source.rows(schema.bodies, "digest", [self.connection.sha(digest)])
        try:
            return self.content(rows[0]) if rows else None
        except (DamageError, TypeError, ValueError, OverflowError):
            return None

    def content(self, row: Row) -> bytes:
        """The bytes of a row of `bodies`.

        Raises:
            DamageError, TypeError, ValueError, OverflowError: the row is damaged.
        """
        return decode_body(self.digest(row["digest"]), row["size"], row["encoding"], row["data"])

    def fact_at(self, journal: Any, n: Any) -> Fact | None:
        """The fact of a ledger entry; None where it cannot be read."""
        where = {"journal_key": journal}
        rows = self.source.rows(schema.ledger_entries, "n", [n], where)
        try:
            return read_fact(unpack_fact(rows[0]["fact"])) if rows else None
        except (ValueError, TypeError, DamageError):
            return None

    def is_removed(self, digest: Digest) -> bool:
        """Whether retention removed the body of a digest."""
        keys = [self.connection.sha(digest)]
        return bool(self.source.rows(schema.tombstones, "digest", keys, {"kind": "body"}))

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
        differing = differing_members(unpack_fact(stored), repeat.json)
    except (ValueError, DamageError):
        return "altered"
    if not differing:
        return "same"
    return "altered" if {"kind", "id", "session"} & set(differing) else "conflict"
