"""The condition of a store: what waits, what was rejected or lost, and how much room there is."""

import socket
from pathlib import Path
from uuid import UUID

import pytest
from tests.support.call_facts import message
from tests.support.keeping import BIG, check, ingested, record, rows

from tooltrail.journal import Entry
from tooltrail.records import StoreNotFoundError, ToolCall
from tooltrail.records.digests import digest_of
from tooltrail.store.keep.condition import read_condition
from tooltrail.store.opening import open_store
from tooltrail.store.store import Store


@pytest.mark.both_engines
def test_a_fresh_store_needs_nothing(store: Store) -> None:
    found = read_condition(store)
    assert (found.waiting_count, found.open_count) == (0, 0)
    assert (found.rejected, found.pending, found.journals) == ((), (), ())
    assert (found.rejected_count, found.damaged_count, found.pending_count) == (0, 0, 0)
    assert (found.lossy_count, found.lost_bytes, found.pending_bytes) == (0, 0, 0)
    assert (found.database_free_bytes is None) == store.database.is_server


def test_facts_that_wait_are_counted_until_they_are_ingested(store: Store, database: str) -> None:
    with open_store(database, spool=store.spool, acknowledge="journal") as other:
        ingested(other, b"first\n")
    log_only = open_store(database, spool=store.spool, acknowledge="process")
    session = log_only.open_session()
    session.start(ToolCall.of("Bash", {"command": "ls"}))
    assert read_condition(store).waiting_count in (0, 1, 2)  # the thread may have been quicker
    store.ingest()
    found = read_condition(store)
    assert (found.waiting_count, found.open_count) == (0, 1)
    (journal,) = found.journals
    assert (journal.host, journal.spool) == (socket.gethostname(), str(store.spool))
    assert journal.entry_count == rows(store, "SELECT count(*) FROM ledger_entries")[0][0]
    assert journal.branch_of is None
    assert journal.ingested_at <= found.read_at
    log_only.close()


def append(store: Store, *entries: Entry) -> None:
    """Append without a thread that ingests."""
    store.recorder.log.record(entries)


def said(text: bytes, name: int) -> Entry:
    return message(UUID(int=1), text, id=UUID(int=name))


def test_waiting_facts_are_counted_with_and_without_the_hint(store: Store) -> None:
    append(store, *(said(b"hello", n) for n in range(2, 5)))
    assert read_condition(store).waiting_count == 3
    (store.spool / "journal" / "end").write_bytes(b"")
    assert read_condition(store).waiting_count == 3
    store.ingest()
    assert read_condition(store).waiting_count == 0


@pytest.mark.both_engines
def test_rejected_facts_have_their_reason(store: Store) -> None:
    append(store, said(b"one", 2), said(b"another", 2))
    store.ingest()
    found = read_condition(store)
    assert (found.rejected_count, found.damaged_count) == (1, 0)
    (rejected,) = found.rejected
    assert rejected.subject is not None
    assert rejected.subject.int == 2
    assert rejected.n == 1
    assert rejected.journal == found.journals[0].id
    assert rejected.reason


def test_damaged_places_are_counted_apart(store: Store) -> None:
    append(store, said(b"one" * 50, 2))
    append(store, said(b"two", 3))
    (segment,) = (store.spool / "journal").glob("*.seg")
    data = segment.read_bytes()
    place = data.index(b"one" * 50)
    with segment.open("r+b") as file:
        file.seek(place)
        file.write(b"ONE")
    store.ingest()
    found = read_condition(store)
    assert (found.rejected_count, found.damaged_count) == (0, 1)
    assert found.rejected[0].n is None


@pytest.mark.both_engines
def test_artifacts_that_wait_for_the_sink_are_listed(store: Store) -> None:
    root = Path(store.info.artifact_root)
    if not root.is_absolute():
        root = store.spool.parent / root
    root.rename(root.with_name("away"))
    record(store, BIG)
    store.ingest()
    found = read_condition(store)
    assert (found.pending_count, found.pending_bytes) == (1, len(BIG))
    (pending,) = found.pending
    assert (pending.digest, pending.size, pending.role) == (digest_of(BIG), len(BIG), "stdout")
    assert (pending.host, pending.spool) == (socket.gethostname(), str(store.spool))
    assert pending.reason
    root.with_name("away").rename(root)
    check(store)
    assert read_condition(store).pending == ()


@pytest.mark.both_engines
@pytest.mark.both_engines
def test_a_spool_that_moved_is_named_where_it_is(
    store: Store, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingested(store, b"first\n")
    moved = store.spool.rename(tmp_path / "moved")
    monkeypatch.setattr(socket, "gethostname", lambda: "elsewhere")
    with open_store(database, spool=moved) as other:
        ingested(other, b"second\n")
        (journal,) = read_condition(other).journals
    assert (journal.host, journal.spool) == ("elsewhere", str(moved))


def test_bytes_that_were_not_kept_are_counted(store: Store) -> None:
    ingested(store, b"kept\n")
    with store.database.write() as connection:
        stream = {
            "invocation_key": 1,
            "n": 9,
            "role": "log",
            "digest": bytes(32),
            "size": 10,
            "line_count": 1,
            "produced_size": 1_010,
            "produced_line_count": 100,
            "loss_reason": "the disk is full",
            "receipt_offset": None,
        }
        connection.insert("streams", [stream])
    found = read_condition(store)
    assert (found.lossy_count, found.lost_bytes) == (1, 1_000)


def test_where_there_is_no_store_there_is_no_condition(tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    with (
        open_store(tmp_path / "empty.db", create=False) as store,
        pytest.raises(StoreNotFoundError),
    ):
        read_condition(store)
