"""Runs a complete verification, in one pass over the ledger."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain
from typing import Final

from tooltrail.artifacts import ArtifactArchive
from tooltrail.records import FamilyRegistry
from tooltrail.records.errors import DamageError, InvalidRecordError
from tooltrail.store.engines.database import Database
from tooltrail.store.info import read_info
from tooltrail.store.verify.bodies import (
    check_artifacts,
    check_bodies,
    check_pending,
    check_tombstones,
)
from tooltrail.store.verify.checking import Checking, Finding, Totals
from tooltrail.store.verify.entries import EntryChecks, check_tool_times
from tooltrail.store.verify.extras import check_extras, check_positions
from tooltrail.store.verify.ledger import Ledger, read_journals
from tooltrail.store.verify.pages import check_pages
from tooltrail.store.verify.receipts import Receipts
from tooltrail.store.verify.source import Source

_SIZE: Final = """
SELECT coalesce(sum(entry_count), 0) + (SELECT coalesce(max(key), 0) FROM bodies)
    + (SELECT coalesce(max(key), 0) FROM artifacts) FROM journals
"""
"""About the number of rows to read one by one; a key may be missing."""


def verify(
    database: Database,
    archive: ArtifactArchive | None,
    *,
    families: FamilyRegistry | None = None,
    with_artifacts: bool = True,
    totals: Totals | None = None,
    on_progress: Callable[[int, int], object] | None = None,
) -> Iterator[Finding]:
    """Compare a store with its ledger, and yield each difference.

    Uses constant memory. Damage never hides other damage. The rows come from one snapshot.

    Args:
        database: the database of the store.
        archive: the artifacts of the store. None: read no artifacts, and make no receipts again.
        families: families to make again and compare every canonical result and receipt that the
            ingester made. None: compare only their digests.
        with_artifacts: whether to read the artifacts.
        totals: filled while findings are read.
        on_progress: called after each batch with the number of rows that were read, and about the
            number of all rows.

    Raises:
        UnavailableError: the database cannot be reached.
    """
    checking = Checking(Totals() if totals is None else totals)
    receipts = None if families is None or archive is None else Receipts(families, archive)
    rows = _check_rows(checking, database, receipts)
    artifacts = check_artifacts(checking, database, archive) if with_artifacts and archive else ()
    for findings in chain(rows, artifacts):
        yield from findings
        if on_progress is not None:
            read = checking.totals.checked
            done = read["ledger entries"] + read["bodies"] + read["artifacts"]
            on_progress(done, checking.size)


def _check_rows(
    checking: Checking, database: Database, receipts: Receipts | None
) -> Iterator[list[Finding]]:
    with database.snapshot() as connection:
        checking.source = Source(connection, checking.unreadable)
        with suppress(DamageError, InvalidRecordError):  # a check below reports it
            checking.size = int(checking.source.query(_SIZE)[0][0])
        yield from check_pages(checking)
        try:
            read_info(connection)
        except DamageError as error:
            checking.damage("the store", "store_info", str(error))
        journals = read_journals(checking)
        checking.has_one_journal = len(journals) == 1
        for journal in journals:
            checking.sessions.clear()
            checks = EntryChecks(checking, journal, receipts)
            for entries in Ledger(checking, journal).entries():
                checks.check(entries)
                yield checking.take()
            yield checking.take()
        check_tool_times(checking)
        yield from check_extras(checking)
        yield from check_positions(checking)
        yield from check_bodies(checking)
        yield from check_pending(checking)
        yield from check_tombstones(checking)
