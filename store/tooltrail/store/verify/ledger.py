"""Reads the ledger of a journal in order, and checks the chain of its hashes."""

import struct
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from tooltrail.journal.frames import FIRST_HASH, Frame, link
from tooltrail.records.errors import DamageError, InvalidRecordError
from tooltrail.records.fact_spelling import NewerFactError, body_digests, read_fact
from tooltrail.records.facts import Fact
from tooltrail.store.bodies import unpack_fact
from tooltrail.store.engines.connection import Row
from tooltrail.store.engines.values import uuid_from
from tooltrail.store.ingest import known
from tooltrail.store.ingest.batch import subject_of
from tooltrail.store.ingest.places import WHOLE_JOURNAL
from tooltrail.store.verify.checking import Checking

_BATCH_ENTRIES: Final = 512
_MAX_HOLES: Final = 1_000
"""Most holes of one journal that are reported."""

_LEDGER: Final = "ledger_entries"
_UNKNOWN_JOURNALS: Final = """
SELECT DISTINCT journal_key FROM ledger_entries
WHERE journal_key NOT IN (SELECT key FROM journals) ORDER BY journal_key"""


class Journal(NamedTuple):
    """One journal in the store.

    Attributes:
        name: name for messages.
        row: row of `journals`; None if it is missing.
        gap_count: number of damaged places whose bytes are stored.
        is_branch: whether the row has `branch_of`.
    """

    key: int
    name: str
    row: Row | None
    gap_count: int
    is_branch: bool = False


class AppliedFact(NamedTuple):
    """One fact of the ledger that was applied.

    Attributes:
        lost: number of earlier entries of the journal that may have been applied, and are missing
            or cannot be read. Facts in a damaged place of the journal were never applied.
    """

    place: known.Entry
    fact: Fact
    json: bytes
    lost: int


def read_journals(checking: Checking) -> list[Journal]:
    """The journals, including journals that have ledger entries but no row."""
    found = list[Journal]()
    for rows in checking.source.scan("journals", "key", 500):
        for row in rows:
            try:
                name = str(uuid_from(row["id"]))
            except ValueError:
                name = repr(row["id"])
                message = f"journals.id of the row with key {row['key']} is not an id"
                checking.damage(f"journal {name}", "journals", message, "id")
            found.append(
                Journal(row["key"], f"journal {name}", row, 0, row["branch_of"] is not None)
            )
    gaps, noticed = _read_gaps(checking, {one.key: one.name for one in found})
    found = [one._replace(gap_count=gaps.get(one.key, 0)) for one in found]
    for one in found:
        if one.is_branch and one.key not in noticed:
            checking.missing(f"the notice that {one.name} is a branch", "rejected_facts")
    for (key,) in checking.source.read(_LEDGER, _UNKNOWN_JOURNALS) or ():
        subject = f"journal {key}"
        message = f"{subject} is missing, but the ledger has entries of it"
        checking.damage(subject, "journals", message)
        if isinstance(key, int):
            found.append(Journal(key, subject, None, 0))
    return found


def _read_gaps(checking: Checking, names: Mapping[Any, str]) -> tuple[dict[Any, int], set[Any]]:
    """The number of damaged places of each journal, and the journals with a notice.

    Reports the places and the notices. `names` are the names of the journals by key.
    """
    gaps, noticed = dict[Any, int](), set[Any]()
    for rows in checking.source.scan("rejected_facts", "key", 500, "n IS NULL"):
        for row in rows:
            key = row["journal_key"]
            subject = names.get(key, f"journal {key}")
            if (row["segment"], row["segment_offset"]) == WHOLE_JOURNAL:
                noticed.add(key)
            else:
                gaps[key] = gaps.get(key, 0) + 1
                subject = f"damaged place {gaps[key]} of {subject}"
            checking.compare(subject, "rejected_facts", {"subject_id": None}, row)
            checking.incomplete(subject, "rejected_facts", f"{subject}: {row['reason']}")
    return gaps, noticed


class Ledger:
    """The entries of one journal, for one pass."""

    def __init__(self, checking: Checking, journal: Journal) -> None:
        self._checking = checking
        self._journal = journal
        self._next: int = 0
        self._count = 0
        self._lost: int = 0
        self._holes: list[tuple[int, int]] = []
        # Possible hashes of the entry before; None if unknown.
        self._hashes: tuple[Any, ...] | None = (FIRST_HASH,)

    def entries(self) -> Iterator[list[AppliedFact]]:
        """The applied facts, in batches. Reports problems of the ledger."""
        source, of_journal = self._checking.source, f"journal_key = {self._journal.key}"
        following = None if self._journal.row is None else self._journal.row["next_index"]
        last = following - 1 if isinstance(following, int) else None
        for rows in source.scan(_LEDGER, "n", _BATCH_ENTRIES, of_journal, last=last):
            numbers = range(rows[0]["n"], rows[-1]["n"] + 1) if rows else range(0)
            refused = source.rows("rejected_facts", "n", numbers, of_journal) if rows else []
            rejected = {row["n"]: row for row in refused}
            read = [self._read(row, rejected.get(row["n"])) for row in rows]
            self._checking.totals.checked["ledger entries"] += len(rows)
            yield [entry for entry in read if entry is not None]
        self._check_holes()
        if self._journal.row is not None:
            self._check_head(self._journal.row)

    def _read(self, row: Row, rejected: Row | None) -> AppliedFact | None:
        """The applied fact in a row; None if the fact was rejected, or cannot be read."""
        checking, n = self._checking, row["n"]
        subject = f"entry {n} of {self._journal.name}"
        data = self._unpacked(subject, row["fact"])
        is_linked = self._follow(subject, n, data, row["hash"])
        fact = None
        try:
            fact = None if data is None else read_fact(data)
        except InvalidRecordError as error:
            if rejected is None and is_linked:
                is_newer = isinstance(error, NewerFactError)
                report = checking.incomplete if is_newer else checking.damage
                report(subject, _LEDGER, f"the fact of {subject} cannot be read: {error}", "fact")
        subject_id = checking.connection.uuid(None if fact is None else subject_of(fact))
        kind = "unknown" if fact is None else fact.kind
        if data is not None and (fact is not None or is_linked):
            expected = {"kind": kind, "subject_id": subject_id}
            checking.compare(subject, _LEDGER, expected, row)
        if rejected is not None:
            table, kept = "rejected_facts", rejected["data"]
            if data is not None:
                checking.compare(subject, table, {"subject_id": subject_id}, rejected)
                if not _is_kept(fact, data, kept):
                    message = f"the bytes of {subject} that were kept are altered"
                    checking.damage(subject, table, message, "data")
            message = f"{subject} could not be applied: {rejected['reason']}"
            checking.incomplete(subject, table, message)
        elif data is not None and fact is not None:
            return AppliedFact(known.Entry(self._journal.key, n), fact, data, self._lost)
        else:
            self._lost += 1
        return None

    def _unpacked(self, subject: str, packed: Any) -> bytes | None:
        """The bytes of a fact; None if they cannot be read, which is reported."""
        try:
            return unpack_fact(packed)
        except DamageError:
            message = f"the fact of {subject} cannot be unpacked"
            self._checking.damage(subject, _LEDGER, message, "fact")
            return None

    def _follow(self, subject: str, n: int, data: bytes | None, stored: Any) -> bool:
        """Check that an entry continues the chain."""
        if self._count == 0 and n > 0 and self._journal.is_branch:
            # The first segments of a branch may have been deleted before.
            self._next, self._hashes = n, None
        if n < self._next:
            message = f"{subject} is in the ledger twice" if n >= 0 else f"{subject} was added"
            self._checking.damage(subject, _LEDGER, message, "n")
            return False
        if n != self._next:
            self._hashes = None
            if len(self._holes) < _MAX_HOLES:
                self._holes.append((self._next, n - 1))
            if len(self._holes) > self._journal.gap_count:
                self._lost += n - self._next
        self._next, self._count = n + 1, self._count + 1
        if data is None:
            self._hashes = (stored,) if isinstance(stored, bytes) else None
            return False
        expected = [link(one, data) for one in self._hashes or () if isinstance(one, bytes)]
        if self._hashes is None or stored in expected:
            self._hashes = (stored,)
            return True
        # If the fact was altered, the next entry continues the stored hash; else the expected one.
        self._hashes = (stored, *expected)
        message = f"{subject} does not continue the chain: its fact or its hash was altered"
        self._checking.damage(subject, _LEDGER, message, "hash")
        return False

    def _check_holes(self) -> None:
        checking, journal = self._checking, self._journal
        is_explained = len(self._holes) <= journal.gap_count
        for first, last in self._holes:
            entries = f"entry {first}" if first == last else f"entries {first} to {last}"
            subject = f"{entries} of {journal.name}"
            if is_explained:
                message = f"{subject}: lost with a damaged place of the journal"
                checking.incomplete(subject, _LEDGER, message)
            else:
                checking.damage(subject, _LEDGER, f"{subject}: removed from the ledger")

    def _check_head(self, row: Row) -> None:
        """Compare the end of the ledger with the row of the journal."""
        checking, name, has_gaps = self._checking, self._journal.name, self._journal.gap_count > 0
        if row["entry_count"] != self._count:
            message = f"{name} has {self._count:,} entries, not {row['entry_count']}"
            checking.damage(name, "journals", message, "entry_count")
        for column in ("segment", "segment_offset"):
            if not isinstance(row[column], int):
                message = f"journals.{column} of {name} is not a number"
                checking.damage(name, "journals", message, column)
        following = row["next_index"]
        is_behind_gap = has_gaps and isinstance(following, int) and following > self._next
        if following != self._next and not is_behind_gap:
            message = f"{name} goes on with {following}, its ledger with {self._next:,}"
            checking.damage(name, "journals", message, "next_index")
        is_behind_gap = has_gaps and row["head"] is None
        is_known = self._count > 0 and self._hashes is not None
        if is_known and row["head"] not in (self._hashes or ()) and not is_behind_gap:
            message = f"the last entry of {name} is not its head: the tail was cut or altered"
            checking.damage(name, "journals", message, "head")


def _is_kept(fact: Fact | None, data: bytes, kept: Any) -> bool:
    """Whether the stored bytes of a rejected fact are the fact, and bodies that it names."""
    if not isinstance(kept, bytes) or not kept.startswith(data):
        return False
    frame = Frame(0, 0, 0, 0, 0, b"", b"", data, kept[len(data) :])
    try:
        bodies = frame.bodies()
    except struct.error:
        return False
    return fact is None or bodies.keys() <= set(body_digests(fact))
