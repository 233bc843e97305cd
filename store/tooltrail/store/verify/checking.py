"""The shared state of all checks: the rows, the findings, and the state across batches."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal
from uuid import UUID

from tooltrail.records.digests import ALGORITHM, Digest
from tooltrail.records.errors import DamageError
from tooltrail.records.fact_spelling import read_fact
from tooltrail.records.facts import Fact
from tooltrail.records.frozen import Frozen
from tooltrail.store.bodies import decode_body, unpack_fact
from tooltrail.store.engines.connection import Connection, Row
from tooltrail.store.ingest.known import FIRST_SEQ
from tooltrail.store.verify.source import Source

_KNOWN_SESSIONS: Final = 20_000
"""Most sessions in memory. With more in one journal, positions are compared less strictly."""

FindingKind = Literal["damage", "incomplete"]


class Finding(Frozen):
    """One problem that a verification found.

    Attributes:
        kind: `damage` if something was altered, removed or added; `incomplete` if something is
            missing and the store itself records that: an open call, an artifact that waits in a
            spool, a fact that could not be applied.
        subject: the affected thing: `call 0198…`, `session 0198…`, `body sha256:…`.
        column: the column of that table; None for a complete row.
        message: one sentence that names the thing.
    """

    kind: FindingKind
    subject: str
    table: str
    column: str | None
    message: str


_KINDS: Final = ("sessions", "calls", "messages", "ledger entries", "bodies", "artifacts")
"""The totals, in the order of the summary."""


@dataclass
class Totals:
    """The totals of a verification.

    Attributes:
        checked: number of compared records of each kind: `sessions`, `calls`, … A record that
            several facts repeat counts once.
        damage_count: findings of kind `damage` so far.
        incomplete_count: findings of kind `incomplete` so far.
    """

    checked: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(_KINDS, 0)))
    damage_count: int = 0
    incomplete_count: int = 0


@dataclass(slots=True)
class SessionState:
    """The state of a session after the facts of one journal so far.

    Attributes:
        row: row of `sessions`; None if it is missing.
        next_seq: the position of the next message or call.
        lost: number of entries of the journal, before its last message or call, that cannot be
            read. Each may have had a position in this session.
        is_closed: whether a fact closed it.
    """

    row: Row | None
    next_seq: int = FIRST_SEQ
    lost: int = 0
    is_closed: bool = False


@dataclass
class Checking:
    """The state of one verification.

    Attributes:
        size: about the number of rows to read.
        has_one_journal: whether the store has exactly one journal.
        has_forgotten: whether there were too many sessions to keep in memory.
        may_skip_bodies: whether pages of `bodies` are damaged, so that SQLite may skip rows.
        sessions: the sessions that the current journal has named.
        tools: for each offered tool, whether an offer has the time in its row.
        matched: number of rows whose entry is a compared fact, by column.
    """

    totals: Totals
    source: Source = field(init=False)
    size: int = 0
    has_one_journal: bool = True
    has_forgotten: bool = False
    may_skip_bodies: bool = False
    sessions: dict[UUID, SessionState] = field(default_factory=dict[UUID, SessionState])
    tools: dict[Digest, bool] = field(default_factory=dict[Digest, bool])
    matched: Counter[str] = field(default_factory=Counter[str])
    _found: list[Finding] = field(default_factory=list[Finding])

    @property
    def is_strict(self) -> bool:
        """Whether the ledger determines every position in a session, and `is_late` of a call."""
        return self.has_one_journal and not self.has_forgotten

    @property
    def connection(self) -> Connection:
        """The connection, which converts values to the types of the driver."""
        return self.source.connection

    def forget_sessions(self) -> None:
        """Forget the sessions so far, if there are too many."""
        if len(self.sessions) > _KNOWN_SESSIONS:
            self.sessions.clear()
            self.has_forgotten = True

    def take(self) -> list[Finding]:
        """Return and clear the findings since the last call."""
        found, self._found = self._found, []
        return found

    def damage(self, subject: str, table: str, message: str, column: str | None = None) -> None:
        """Report damage."""
        self.totals.damage_count += 1
        self._found.append(Finding("damage", subject, table, column, message))

    def incomplete(self, subject: str, table: str, message: str, column: str | None = None) -> None:
        """Report something that the store itself records as incomplete."""
        self.totals.incomplete_count += 1
        self._found.append(Finding("incomplete", subject, table, column, message))

    def missing(self, subject: str, table: str) -> None:
        """Report a row that is missing."""
        self.damage(subject, table, f"{subject} is missing")

    def unreadable(self, table: str, row: str | None, column: str | None) -> None:
        """Report a value, a row, or any number of rows, that the database cannot read."""
        if row is None:
            self.damage(f"table {table}", table, f"some rows of table {table} cannot be read")
            return
        subject = f"row with {row} of {table}"
        what = f"the {subject}" if column is None else f"{table}.{column} of the row with {row}"
        self.damage(subject, table, f"{what} cannot be read", column)

    def compare(self, subject: str, table: str, expected: Row, stored: Row) -> None:
        """Compare a row with the values from its fact, column by column."""
        for name, wanted in expected.items():
            if wanted != stored[name]:
                message = f"{table}.{name} of {subject} is not what its fact says"
                self.damage(subject, table, message, name)

    def compare_rows(
        self, subject: str, table: str, expected: Sequence[Row], stored: Sequence[Row]
    ) -> None:
        """Compare the rows of one owner with the rows from its fact, in order."""
        for wanted, found in zip(expected, stored, strict=False):
            self.compare(subject, table, wanted, found)
        if len(expected) != len(stored):
            message = f"{subject} has {len(stored)} rows of {table}, not {len(expected)}"
            self.damage(subject, table, message)

    def named(self, table: str, name: str, values: Sequence[Any]) -> dict[Any, Row]:
        """The rows with these values in a column that must be unique. Reports duplicates.

        SQLite takes the value of such a column from an index. The rows are read again by their key,
        so that a damaged value in the table is noticed.
        """
        found: dict[Any, Row] = {}
        indexed = self.source.rows(table, name, values, columns=["key", name])
        by_key = {row["key"]: row[name] for row in indexed if isinstance(row["key"], int)}
        for row in self.source.rows(table, "key", list(by_key)):
            value = by_key[row["key"]]
            spelled = value.hex() if isinstance(value, bytes) else str(value)
            subject = f"row with {name} {spelled} of {table}"
            if row[name] != value:
                self.damage(
                    subject, table, f"the {subject} has another {name} than its index", name
                )
            row[name] = value
            if found.setdefault(value, row) is not row:
                self.damage(subject, table, f"several rows of {table} have the {name} {spelled}")
        return found

    def body(self, digest: Digest) -> bytes | None:
        """The bytes of a body; None if it is missing or damaged, which is reported elsewhere."""
        rows = self.source.rows("bodies", "digest", [self.connection.sha(digest)])
        try:
            return self.content(rows[0]) if rows else None
        except DamageError:
            return None

    def content(self, row: Row) -> bytes:
        """The bytes of a row of `bodies`; raises `DamageError` if the row is damaged."""
        return decode_body(self.digest(row["digest"]), row["size"], row["encoding"], row["data"])

    def fact_json(self, journal: Any, n: Any) -> bytes | None:
        """The JSON of the fact of a ledger entry; None if it is missing or cannot be read."""
        if not isinstance(journal, int) or not isinstance(n, int):
            return None
        rows = self.source.rows("ledger_entries", "n", [n], f"journal_key = {journal}")
        try:
            return unpack_fact(rows[0]["fact"]) if rows else None
        except (TypeError, DamageError):
            return None

    def fact(self, journal: Any, n: Any) -> Fact | None:
        """The fact of a ledger entry; None if it is missing or cannot be read."""
        spelled = self.fact_json(journal, n)
        try:
            return None if spelled is None else read_fact(spelled)
        except ValueError:
            return None

    def is_removed(self, digest: Digest) -> bool:
        """Whether retention removed the body with a digest."""
        keys = [self.connection.sha(digest)]
        return bool(self.source.rows("tombstones", "digest", keys, "kind = 'body'"))

    def digest(self, value: Any) -> Digest:
        """A stored digest as text."""
        return Digest(f"{ALGORITHM}:{value.hex()}" if isinstance(value, bytes) else repr(value))
