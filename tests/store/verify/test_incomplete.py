"""What is incomplete and says so is no damage; a store of several journals is compared, too."""

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from tests.support.new_store_verifying import (
    AT,
    FAMILIES,
    LONG,
    OPENED,
    NewStore,
    command,
    drop_guards,
    end,
    new_store,
    start,
)

from tooltrail.artifacts import Capture
from tooltrail.journal import Entry, JournalLog
from tooltrail.records.facts import SessionClosed, SessionOpened
from tooltrail.store.ingest.ingester import Ingester
from tooltrail.store.verify import Totals

FIRST, SECOND, THIRD = (UUID(int=n) for n in range(601, 604))


@pytest.fixture
def empty(database: str, tmp_path: Path) -> Iterator[NewStore]:
    with new_store(database, tmp_path) as store:
        drop_guards(store)
        yield store


def ingest_other(store: NewStore, spool: Path, entries: list[Entry]) -> None:
    """Record in a journal of another machine, and ingest it."""
    JournalLog(spool / "journal").append(entries)
    Ingester(store.database, store.archive, spool, FAMILIES).ingest()


def opened() -> Entry:
    return Entry(SessionOpened(session=OPENED, at=AT, name="shared"))


def test_an_empty_store_has_no_findings(empty: NewStore) -> None:
    assert empty.verify() == []


def test_sessions_that_two_journals_share_have_no_damage(empty: NewStore, tmp_path: Path) -> None:
    empty.log.append([opened(), start(FIRST)])
    empty.ingest()
    others = [opened(), start(SECOND), end(SECOND, command(b"there\n"))]
    ingest_other(empty, tmp_path / "other", others)
    closed = Entry(SessionClosed(session=OPENED, at=AT))
    empty.log.append([end(FIRST, command(b"here\n")), start(THIRD), closed])
    empty.ingest()
    totals = Totals()
    assert [one for one in empty.verify(totals=totals) if one.kind == "damage"] == []
    assert totals.checked["calls"] == 3


def test_a_removed_call_of_one_of_two_journals_is_named(empty: NewStore, tmp_path: Path) -> None:
    empty.log.append([opened(), start(FIRST), end(FIRST, command(b"here\n"))])
    empty.ingest()
    others = [start(SECOND), end(SECOND, command(b"there\n"))]
    ingest_other(empty, tmp_path / "other", others)
    for table in ("streams", "surfaces"):
        empty.run(
            f"DELETE FROM {table} WHERE invocation_key ="
            " (SELECT key FROM invocations WHERE seq = 2)"
        )
    empty.run("DELETE FROM invocations WHERE seq = 2")
    assert {one.subject for one in empty.damage()} == {f"call {SECOND}"}


def test_a_damaged_place_of_a_journal_is_listed(empty: NewStore) -> None:
    calls = (FIRST, SECOND, THIRD)
    for call in calls:
        empty.log.append([start(call, b'{"command":"%d"}' % call.int)])
    (segment,) = (empty.spool / "journal").glob("*.seg")
    data = segment.read_bytes()
    segment.write_bytes(data.replace(str(SECOND).encode(), b"?" * 36))
    empty.ingest()
    found = empty.verify()
    assert {one.kind for one in found} == {"incomplete"}
    assert {one.table for one in found} >= {"rejected_facts", "ledger_entries", "invocations"}


def test_a_stream_that_waits_for_the_sink_is_listed(empty: NewStore) -> None:
    path = empty.spool / str(FIRST) / "stdout.zst"
    with Capture("stdout", path, edge_bytes=4096, inline_bytes=0) as capture:
        capture.write(LONG)
    record = capture.close().record
    spooled = {"stdout": f"{FIRST}/stdout.zst"}
    empty.log.append([start(FIRST), end(FIRST, command(record), spooled=spooled)])
    away = empty.sink.with_name("away")
    empty.sink.rename(away)
    empty.sink.write_bytes(b"no folder")
    empty.ingest()
    empty.sink.unlink()
    away.rename(empty.sink)
    (found,) = empty.verify()
    assert (found.kind, found.table) == ("incomplete", "pending_artifacts")


def test_a_text_that_retention_removed_needs_a_tombstone(empty: NewStore) -> None:
    empty.log.append([start(FIRST), end(FIRST, command(b"here\n"))])
    empty.ingest()
    empty.run("UPDATE surfaces SET receipt = NULL")
    assert {one.subject for one in empty.damage()} == {f"call {FIRST}"}
    ((digest,),) = empty.run("SELECT shown FROM surfaces")
    columns = "kind, digest, size, reason, rule, actor, removed_at"
    empty.run(
        f"INSERT INTO tombstones ({columns})"
        " SELECT 'body', ?, 1, 'r', 'r', 'a', created_at FROM journals",
        [digest],
    )
    assert empty.damage() == []
