"""Reads the ledger of a journal in order, and checks the chain of its hashes."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from tooltrail.journal.frames import FIRST_HASH, Frame, link
from tooltrail.records.errors import DamageError, InvalidRecordError
from tooltrail.records.facts import Fact, NewerFactError, body_digests, read_fact
from tooltrail.store.engines.connection import Row
from tooltrail.store.ingest import known
from tooltrail.store.ingest.batch import subject_of
from tooltrail.store.packed_facts import unpack_fact
from tooltrail.store.verify.checking import Checking
from tooltrail.store.verify.source import Unreadable

BATCH_ENTRIES: Final = 512
_MAX_HOLES: Final = 1_000
"""Holes of one journal that are reported one by one."""

LEDGER: Final = "ledger_entries"

_COUNTED: Final = {"call.started": "calls", "message": "messages", "session.opened": "sessions"}
"""The totals that count facts of a kind."""


class Journal(NamedTuple):
    """What the store keeps of one journal.

    Attributes:
        key: of its row.
        name: in words.
        entry_count: facts that were ingested.
        next_index: number of the next one.
        head: hash of the last one; None right behind damage.
        gap_count: damaged places that were kept.
        is_missing: whether it has no row.
    """

    key: int
    name: str
    entry_count: Any
    next_index: Any
    head: Any
    gap_count: int
    is_missing: bool = False


class Entry(NamedTuple):
    """One fact of the ledger that was applied."""

    place: known.Entry
    fact: Fact
    json: bytes


@dataclass
class _Chain:
    """Where the chain is.

    Attributes:
        next: the entry that must follow; None before the first.
        hashes: what the hash of the entry before may be; None where it is not known.
        count: entries so far.
        holes: first and last entry that are missing.
    """

    next: int
    hashes: tuple[Any, ...] | None
    count: int
    holes: list[tuple[int, int]]


def read_entries(checking: Checking, journal: Journal) -> Iterator[list[Entry]]:
    """The applied facts of a journal, in batches. What is wrong with the ledger is reported."""
    chain = _Chain(0, (FIRST_HASH,), 0, [])
    where = f"journal_key = {journal.key}"
    for rows in checking.source.scan(LEDGER, "n", BATCH_ENTRIES, where):
        rejected = _rejected(checking, journal, rows[0]["n"], rows[-1]["n"]) if rows else {}
        entries = list[Entry]()
        for row in rows:
            entry = _read_entry(checking, journal, chain, row, rejected.get(row["n"]))
            if entry is not None:
                entries.append(entry)
        checking.totals.checked["ledger entries"] += len(rows)
        yield entries
    _check_end(checking, journal, chain)


def _read_entry(
    checking: Checking, journal: Journal, chain: _Chain, row: Row, rejected: Row | None
) -> Entry | None:
    n = row["n"]
    subject = f"entry {n} of {journal.name}"
    data = _unpacked(checking, subject, row["fact"])
    is_linked = _follow(checking, subject, chain, n, data, row["hash"])
    try:
        fact = None if data is None else read_fact(data)
        reason = ""
    except InvalidRecordError as error:
        fact, reason = None, str(error)
        if rejected is None and is_linked:
            report = checking.incomplete if isinstance(error, NewerFactError) else checking.damage
            report(subject, LEDGER, "fact", f"the fact of {subject} cannot be read: {reason}")
    if data is not None and (fact is not None or is_linked):
        found = checking.connection.uuid(None if fact is None else subject_of(fact))
        expected = {"kind": "unknown" if fact is None else fact.kind, "subject_id": found}
        checking.compare(subject, LEDGER, expected, row)
        if fact is not None and fact.kind in _COUNTED:
            checking.totals.checked[_COUNTED[fact.kind]] += 1
    if rejected is not None:
        _check_rejected(checking, subject, fact, data, rejected)
        return None
    return None if fact is None or data is None else Entry(known.Entry(journal.key, n), fact, data)


def _follow(  # noqa: PLR0917  each is a thing of its own
    checking: Checking, subject: str, chain: _Chain, n: int, data: bytes | None, stored: Any
) -> bool:
    """Check that an entry continues the chain."""
    if n != chain.next:
        chain.hashes = None
        if len(chain.holes) < _MAX_HOLES:
            chain.holes.append((chain.next, n - 1))
    chain.next, chain.count = n + 1, chain.count + 1
    if data is None:
        chain.hashes = (stored,) if isinstance(stored, bytes) else None
        return False
    expected = [link(one, data) for one in chain.hashes or () if isinstance(one, bytes)]
    if chain.hashes is None or stored in expected:
        chain.hashes = (stored,)
        return True
    # The fact was altered, and the next entry continues the stored hash; or the hash was.
    chain.hashes = (stored, *expected)
    message = f"{subject} does not continue the chain: its fact or its hash was altered"
    checking.damage(subject, LEDGER, "hash", message)
    return False


def _check_end(checking: Checking, journal: Journal, chain: _Chain) -> None:
    is_explained = len(chain.holes) <= journal.gap_count
    for first, last in chain.holes:
        entries = f"entry {first}" if first == last else f"entries {first} to {last}"
        subject = f"{entries} of {journal.name}"
        if is_explained:
            message = f"{subject} were lost with a damaged place of the journal"
            checking.incomplete(subject, LEDGER, None, message)
        else:
            checking.damage(subject, LEDGER, None, f"{subject}: removed from the ledger")
    if journal.is_missing:
        return
    if chain.count != journal.entry_count:
        message = f"{journal.name} has {chain.count:,} entries, not {journal.entry_count}"
        checking.damage(journal.name, "journals", "entry_count", message)
    following = journal.next_index
    is_behind_gap = journal.gap_count and isinstance(following, int) and following > chain.next
    if following != chain.next and not is_behind_gap:
        message = f"{journal.name} goes on with {following}, its ledger with {chain.next:,}"
        checking.damage(journal.name, "journals", "next_index", message)
    if not chain.count or chain.hashes is None:
        return
    is_head = journal.head in chain.hashes
    if not is_head and not (journal.gap_count and journal.head is None):
        message = f"the last entry of {journal.name} is not its head: the tail was cut or altered"
        checking.damage(journal.name, "journals", "head", message)


def _rejected(checking: Checking, journal: Journal, first: int, last: int) -> dict[Any, Row]:
    where = f"journal_key = {journal.key}"
    rows = checking.source.rows("rejected_facts", "n", range(first, last + 1), where)
    return {row["n"]: row for row in rows}


def _check_rejected(
    checking: Checking, subject: str, fact: Fact | None, data: bytes | None, rejected: Row
) -> None:
    kept, table = rejected["data"], "rejected_facts"
    expected = checking.connection.uuid(None if fact is None else subject_of(fact))
    checking.compare(subject, table, {"subject_id": expected}, rejected)
    if data is not None and not isinstance(kept, Unreadable) and not _is_kept(fact, data, kept):
        message = f"the bytes of {subject} that were kept are altered"
        checking.damage(subject, table, "data", message)
    checking.incomplete(
        subject, table, None, f"{subject} could not be applied: {rejected['reason']}"
    )


def _is_kept(fact: Fact | None, data: bytes, kept: Any) -> bool:
    """Whether the bytes of a rejected fact are the fact, and bodies that it names."""
    if not isinstance(kept, bytes) or not kept.startswith(data):
        return False
    frame = Frame(0, 0, 0, 0, 0, b"", b"", data, kept[len(data) :])
    try:
        bodies = frame.bodies()
    except struct.error:
        return False
    return fact is None or bodies.keys() <= set(body_digests(fact))


def _unpacked(checking: Checking, subject: str, packed: Any) -> bytes | None:
    """The bytes of a fact; None where they cannot be read, which is reported."""
    if isinstance(packed, Unreadable):
        return None
    try:
        return unpack_fact(packed if isinstance(packed, bytes) else b"")
    except DamageError:
        checking.damage(subject, LEDGER, "fact", f"the fact of {subject} cannot be unpacked")
        return None
