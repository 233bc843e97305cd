"""The whole of a verification, in one pass over the ledger."""

from collections.abc import Iterator
from typing import Any

from tooltrail.artifacts import ArtifactArchive
from tooltrail.records import FamilyRegistry
from tooltrail.records.errors import DamageError, InvalidRecordError
from tooltrail.records.facts import AnswerStarted, Maintenance, body_digests
from tooltrail.store import schema
from tooltrail.store.engines.database import Database
from tooltrail.store.verify.bodies import Needed, check_artifacts, check_bodies, check_pending
from tooltrail.store.verify.calls import Rerun, check_calls
from tooltrail.store.verify.checking import Checking
from tooltrail.store.verify.conversations import check_messages, check_sessions, check_tool_times
from tooltrail.store.verify.extras import check_extras
from tooltrail.store.verify.findings import Finding, Totals
from tooltrail.store.verify.ledger import Entry, Journal, read_entries
from tooltrail.store.verify.receipts import Receipts
from tooltrail.store.verify.source import Source


def verify(
    database: Database,
    archive: ArtifactArchive,
    *,
    families: FamilyRegistry | None = None,
    with_artifacts: bool = True,
    totals: Totals | None = None,
) -> Iterator[Finding]:
    """Compare a store with its ledger, and yield what is not as it was recorded.

    Memory is constant. What is damaged never hides the rest. The rows are those of one snapshot.

    Args:
        database: of the store.
        archive: its artifacts.
        families: makes every canonical result and receipt anew that the ingester made, and
            compares; without them only their digests are compared.
        with_artifacts: whether to read the artifacts.
        totals: is filled while findings are read.

    Raises:
        UnavailableError: the database cannot be reached.
    """
    counted = Totals() if totals is None else totals
    checking = Checking(counted)
    rerun = None if families is None else Receipts(families, archive).check_end
    with database.snapshot() as connection:
        checking.source = Source(connection, checking.unreadable)
        for batch in _check_rows(checking, rerun):
            yield from _counted(counted, batch)
    if with_artifacts:
        for batch in check_artifacts(checking, database, archive):
            yield from _counted(counted, batch)


def _counted(totals: Totals, findings: list[Finding]) -> Iterator[Finding]:
    for finding in findings:
        totals.count(finding)
        yield finding


def _check_rows(checking: Checking, rerun: Rerun | None) -> Iterator[list[Finding]]:
    if not checking.source.rows(schema.store_info, "key", [1]):
        checking.damage(
            "the store", "store_info", None, "the store has no row that says what it is"
        )
    journals = _journals(checking)
    checking.is_strict = len(journals) == 1
    for journal in journals:
        checking.begin_journal()
        for entries in read_entries(checking, journal):
            _check_batch(checking, journal, entries, rerun)
            yield checking.take()
        yield checking.take()
    check_tool_times(checking)
    yield from check_extras(checking)
    yield from check_bodies(checking)
    yield from check_pending(checking)


def _check_batch(
    checking: Checking, journal: Journal, entries: list[Entry], rerun: Rerun | None
) -> None:
    """Compare what the facts of a batch made, and what they name."""
    needed = Needed()
    checking.load_sessions(
        one.fact.session for one in entries if not isinstance(one.fact, Maintenance | AnswerStarted)
    )
    check_sessions(checking, journal.key, entries, needed)
    places = check_messages(checking, journal.key, entries, needed)
    places += check_calls(checking, journal.key, entries, needed, rerun)
    checking.check_places(places + checking.resolve_repeats())
    for _, fact, _ in entries:
        if isinstance(fact, Maintenance):
            for digest in body_digests(fact):
                needed.bodies.setdefault(digest, f"maintenance {fact.id}")
    needed.check(checking, is_damaged=journal.gap_count > 0)


def _journals(checking: Checking) -> list[Journal]:
    """The journals, and those that the ledger has although their row is missing."""
    gaps = dict[Any, int]()
    for rows in checking.source.scan(schema.rejected_facts, "key", 500, {"n": None}):
        for row in rows:
            journal = row["journal_key"]
            gaps[journal] = gaps.get(journal, 0) + 1
            checking.matched[schema.rejected_facts] += 1
            subject = f"damaged place {gaps[journal]} of journal {journal}"
            checking.compare(subject, "rejected_facts", {"subject_id": None}, row)
            message = f"{subject} was kept: {row['reason']}"
            checking.incomplete(subject, "rejected_facts", None, message)
    found = list[Journal]()
    for rows in checking.source.scan(schema.journals, "key", 500):
        for row in rows:
            name = f"journal {_id(checking, row['id'])}"
            kept = (row["entry_count"], row["next_index"], row["head"])
            found.append(Journal(row["key"], name, *kept, gaps.pop(row["key"], 0)))
    known = {one.key for one in found}
    for key in _ledger_journals(checking):
        if key not in known:
            subject = f"journal {key}"
            message = f"{subject} is missing, but the ledger has entries of it"
            checking.damage(subject, "journals", None, message)
            found.append(Journal(key, subject, None, None, None, 0, is_missing=True))
    for key in gaps:
        subject = f"a damaged place of journal {key}"
        checking.damage(subject, "rejected_facts", "journal_key", f"{subject}: no such journal")
    return found


def _id(checking: Checking, value: object) -> str:
    try:
        return str(checking.connection.read_uuid(value))
    except ValueError:
        return repr(value)


def _ledger_journals(checking: Checking) -> Iterator[int]:
    """The journals whose entries the ledger has."""
    last = -1
    while True:
        sql = "SELECT min(journal_key) FROM ledger_entries WHERE journal_key > ?"
        try:
            ((found,),) = checking.source.query(sql, (last,))
        except (DamageError, InvalidRecordError):
            checking.unreadable("ledger_entries", f"journal_key above {last}", None)
            return
        if not isinstance(found, int):
            return
        yield found
        last = found
