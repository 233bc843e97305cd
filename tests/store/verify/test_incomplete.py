"""What is incomplete and says so is no damage; a store of several journals is compared, too."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tests.support.call_facts import ended, next_id, started
from tests.support.every_fact import AT, LONG, OPENED
from tests.support.store_parts import StoreParts, ended_spooled, store_parts

from tooltrail.artifacts import ArtifactArchive
from tooltrail.journal import Cursor, Entry, Frame, JournalLog, read_journal
from tooltrail.journal.segments import JOURNAL_FOLDER
from tooltrail.records.facts import SessionClosed, SessionOpened
from tooltrail.store.verify import Totals, bodies

FIRST, SECOND, THIRD, OTHER = (UUID(int=n) for n in range(601, 605))

NO_CLOSE = "close_journal_key = NULL, close_entry = NULL, closed_at = NULL, close_reason = NULL"


@pytest.fixture
def empty(database: str, tmp_path: Path) -> Iterator[StoreParts]:
    with store_parts(database, tmp_path) as store:
        store.drop_guards()
        yield store


def opened() -> Entry:
    return Entry(SessionOpened(session=OPENED, at=AT, name="shared"))


def test_an_empty_store_has_no_findings(empty: StoreParts) -> None:
    assert empty.verify() == []


@pytest.mark.both_engines
def test_sessions_that_two_journals_share_have_no_damage(empty: StoreParts) -> None:
    empty.ingest(opened(), started(OPENED, FIRST))
    empty.other_journal().ingest(
        opened(), started(OPENED, SECOND), ended(OPENED, SECOND, b"there\n")
    )
    closed = Entry(SessionClosed(session=OPENED, at=AT))
    empty.ingest(ended(OPENED, FIRST, b"here\n"), started(OPENED, THIRD), closed)
    totals = Totals()
    assert [one for one in empty.verify(totals=totals) if one.kind == "damage"] == []
    assert (totals.checked["sessions"], totals.checked["calls"]) == (1, 3)


def test_verify_ends_beside_a_program_that_publishes_as_fast_as_it_reads(
    empty: StoreParts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "_ROWS_AT_ONCE", 1)
    published = list[UUID]()
    verify = ArtifactArchive.verify

    def publish() -> None:
        published.append(UUID(int=700 + len(published)))
        assert len(published) < 20, "it goes on as long as the program does"
        call, data = published[-1], LONG + str(published[-1]).encode()
        empty.ingest(started(OPENED, call), ended_spooled(empty, OPENED, call, data))

    def verify_beside_a_program(self: ArtifactArchive, path: str, **known: Any) -> None:
        publish()
        verify(self, path, **known)

    publish()
    publish()
    monkeypatch.setattr(ArtifactArchive, "verify", verify_beside_a_program)
    totals = Totals()
    empty.verify(totals=totals)
    assert totals.checked["artifacts"] == 2


def test_a_session_that_is_joined_by_its_name_alone_has_no_damage(empty: StoreParts) -> None:
    empty.ingest(Entry(SessionOpened(session=OPENED, at=AT, name="nightly", agent="builder")))
    empty.ingest(Entry(SessionOpened(session=OPENED, at=AT, name="nightly")))
    assert empty.rejections() == []
    assert empty.verify() == []


@pytest.mark.both_engines
def test_a_removed_call_of_one_of_two_journals_is_named(empty: StoreParts) -> None:
    empty.ingest(opened(), started(OPENED, FIRST), ended(OPENED, FIRST, b"here\n"))
    empty.other_journal().ingest(started(OPENED, SECOND), ended(OPENED, SECOND, b"there\n"))
    for table in ("streams", "surfaces"):
        empty.run(
            f"DELETE FROM {table} WHERE invocation_key ="
            " (SELECT key FROM invocations WHERE seq = 2)"
        )
    empty.run("DELETE FROM invocations WHERE seq = 2")
    assert {one.subject for one in empty.damage()} == {f"call {SECOND}"}


def lose(store: StoreParts, call: UUID) -> None:
    """Leave of a call that started what a damaged place of the journal leaves of it."""
    ((key, seq, n),) = store.run(
        "SELECT key, seq, start_entry FROM invocations WHERE id = ?",
        [call if store.database.is_server else call.bytes],
    )
    store.run("DELETE FROM surfaces WHERE invocation_key = ?", [key])
    store.run("DELETE FROM invocations WHERE key = ?", [key])
    store.run("UPDATE invocations SET seq = seq - 1 WHERE seq > ?", [seq])
    newest = "(SELECT max(key) FROM journals)"
    store.run(f"DELETE FROM ledger_entries WHERE n = ? AND journal_key = {newest}", [n])
    store.run(f"UPDATE journals SET entry_count = entry_count - 1 WHERE key = {newest}")


@pytest.mark.both_engines
@pytest.mark.parametrize("is_kept", [True, False])
def test_a_hole_is_damage_unless_a_damaged_place_explains_it(
    empty: StoreParts, *, is_kept: bool
) -> None:
    empty.ingest(
        *[started(OPENED, one, arguments=b"%d" % one.int) for one in (FIRST, SECOND, THIRD)]
    )
    lose(empty, SECOND)
    if is_kept:
        empty.run(
            "INSERT INTO rejected_facts"
            " (journal_key, segment, segment_offset, reason, data, rejected_at)"
            " SELECT key, 1, 64, 'altered', ?, created_at FROM journals",
            [b"?"],
        )
    found = [one for one in empty.verify() if one.table == "ledger_entries"]
    assert [one.kind for one in found] == ["incomplete" if is_kept else "damage"]
    assert "entry 1 of" in found[0].subject


@pytest.mark.both_engines
def test_a_branch_repeats_the_entries_of_its_journal(empty: StoreParts) -> None:
    folder, copied = empty.spool / JOURNAL_FOLDER, empty.spool.with_name("copy")
    empty.ingest(opened(), started(OPENED, FIRST))
    shutil.copytree(folder, copied)
    empty.ingest(ended(OPENED, FIRST, b"from here\n"))
    shutil.rmtree(folder)
    shutil.copytree(copied, folder)
    empty.log = JournalLog(folder)
    calls = [next_id() for _ in range(3)]
    empty.ingest(*[started(OPENED, one, arguments=b"%d" % one.int) for one in calls])
    (notice,) = [one for one in empty.verify() if "has not ended" not in one.message]
    assert (notice.table, notice.kind) == ("rejected_facts", "incomplete")
    assert "the last ingested frame, 2, is not in" in notice.message
    branch = "journal_key = (SELECT max(key) FROM journals)"
    for n in range(5):
        sql = f"UPDATE ledger_entries SET hash = ? WHERE n = {n} AND {branch}"
        ((old,),) = empty.run(f"SELECT hash FROM ledger_entries WHERE n = {n} AND {branch}")
        empty.run(sql, [b"?"])
        assert f"entry {n} of" in empty.damage()[0].subject
        empty.run(sql, [old])
    assert empty.damage() == []
    empty.run(f"DELETE FROM ledger_entries WHERE n = 0 AND {branch}")
    assert any("has 4 entries, not 5" in one.message for one in empty.damage())
    empty.run(f"DELETE FROM ledger_entries WHERE n = 3 AND {branch}")
    assert any(one.message.endswith("removed from the ledger") for one in empty.damage())
    empty.run("DELETE FROM rejected_facts")
    assert any("notice that journal" in one.subject for one in empty.damage())


def fill_behind_a_hole(store: StoreParts, way: str) -> None:
    """A closed session whose facts follow a fact that was damaged or removed."""
    store.append(opened())
    store.append(started(OPENED, FIRST))
    if way == "damaged in the journal":
        journal = store.spool / "journal"
        *_, frame = (one for one in read_journal(journal, Cursor()) if isinstance(one, Frame))
        with next(journal.glob("*.seg")).open("r+b") as segment:
            segment.seek(frame.end - 9)
            segment.write(b"damaged")
    store.ingest(started(OTHER, SECOND, at=5), Entry(SessionClosed(session=OTHER, at=AT)))
    if way == "removed from the ledger":
        store.run("DELETE FROM ledger_entries WHERE n = 1")


@pytest.mark.parametrize(
    ("way", "table", "change", "column"),
    [
        ("damaged in the journal", "sessions", NO_CLOSE, "close_entry"),
        ("damaged in the journal", "sessions", "opened_at = opened_at - 1", "opened_at"),
        ("damaged in the journal", "sessions", "opened_at = opened_at + 1", "opened_at"),
        ("damaged in the journal", "invocations", "seq = seq + 1", "seq"),
        ("damaged in the journal", "invocations", "is_late = TRUE", "is_late"),
        ("removed from the ledger", "sessions", NO_CLOSE, "close_entry"),
        ("removed from the ledger", "sessions", "opened_at = opened_at + 1", "opened_at"),
    ],
)
def test_a_change_behind_a_lost_fact_is_named(
    empty: StoreParts, way: str, table: str, change: str, column: str
) -> None:
    fill_behind_a_hole(empty, way)
    before = empty.verify()
    is_removed = way == "removed from the ledger"
    assert any("entry 1 of" in one.subject for one in before)
    assert ("damage" in {one.kind for one in before}) == is_removed
    row = (OTHER if table == "sessions" else SECOND).bytes
    empty.run(f"UPDATE {table} SET {change} WHERE id = ?", [row])
    new = [one for one in empty.damage() if one not in before]
    assert column in {one.column for one in new}
    assert {one.table for one in new} == {table}


def test_a_stream_that_waits_for_the_sink_is_listed(empty: StoreParts) -> None:
    empty.sink.is_away = True
    empty.ingest(started(OPENED, FIRST), ended_spooled(empty, OPENED, FIRST, LONG))
    (found,) = empty.verify()
    assert (found.kind, found.table) == ("incomplete", "pending_artifacts")
    empty.sink.is_away = False
    _, again = sorted(empty.verify(receipts=True), key=lambda one: one.table)
    assert (again.kind, again.table) == ("incomplete", "surfaces")
    assert "its output waits in a spool" in again.message
    assert "missing" not in again.message


@pytest.mark.both_engines
def test_a_text_that_retention_removed_needs_a_tombstone(empty: StoreParts) -> None:
    empty.ingest(started(OPENED, FIRST), ended(OPENED, FIRST, b"here\n"))
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
