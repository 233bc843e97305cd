"""A journal whose folder was restored from an older copy, or cut off, is noticed and goes on."""

import shutil
from pathlib import Path

import pytest
from tests.support.new_store_ingesting import IngestedStore, message, next_id

from tooltrail.journal import JournalLog
from tooltrail.store import schema


def journal(store: IngestedStore) -> Path:
    return store.spool / "journal"


def copy(store: IngestedStore, name: str) -> Path:
    return Path(shutil.copytree(journal(store), store.spool.with_name(name)))


def restore(store: IngestedStore, copied: Path) -> None:
    shutil.rmtree(journal(store))
    shutil.copytree(copied, journal(store))
    store.log = JournalLog(journal(store))


def test_an_older_copy_is_reported_once_and_nothing_is_ingested_twice(
    ingesting: IngestedStore,
) -> None:
    session = next_id()
    ingesting.ingest(message(session), message(session))
    copied = copy(ingesting, "copy")
    ingesting.ingest(message(session))
    restore(ingesting, copied)
    for _ in range(2):
        assert ingesting.ingest().frame_count == 0
    (reason,) = ingesting.rejections()
    assert "restored from an older copy" in reason
    assert ingesting.count(schema.messages) == 3


@pytest.mark.parametrize("is_cut", [True, False])
def test_what_is_recorded_into_an_older_copy_is_a_branch(
    ingesting: IngestedStore, is_cut: bool
) -> None:
    session = next_id()
    ingesting.ingest(message(session), message(session))
    copied = copy(ingesting, "copy")
    ingesting.ingest(message(session), message(session))
    restore(ingesting, copied)
    if is_cut:
        ingesting.ingest()
    done = ingesting.ingest(message(session))
    assert (done.frame_count, done.rejected_count) == (1, 1)
    assert ingesting.ingest(message(session)).rejected_count == 0
    assert ingesting.count(schema.messages) == 6
    first, branch = ingesting.rows(
        schema.journals, "id", "branch_of", "entry_count", "next_index", "key"
    )
    assert first[1:] == (None, 4, 4, 1)
    assert branch[1:] == (first[0], 2, 4, 2)
    entries = ingesting.rows(schema.ledger_entries, "journal_key", "n")
    assert entries == [(1, 0), (1, 1), (1, 2), (1, 3), (2, 2), (2, 3)]


def test_branches_of_one_journal_are_told_apart(ingesting: IngestedStore) -> None:
    session = next_id()
    ingesting.ingest(message(session))
    copied = copy(ingesting, "copy")
    newest = list[Path]()
    for n in range(3):
        restore(ingesting, copied)
        ingesting.ingest(*[message(session) for _ in range(n + 1)])
        newest.append(copy(ingesting, f"newest-{n}"))
    assert ingesting.rows(schema.journals, "entry_count") == [(2,), (2,), (3,)]
    for n, one in enumerate(newest):
        restore(ingesting, one)
        ingesting.ingest(message(session))
        assert ingesting.rows(schema.journals, "entry_count")[n] == ((3, 3, 4)[n],)
    assert len(ingesting.rejections()) == 2


def test_a_journal_that_was_cut_off_in_a_frame_is_reported(ingesting: IngestedStore) -> None:
    session = next_id()
    ingesting.ingest(*[message(session) for _ in range(5)])
    ((offset,),) = ingesting.rows(schema.journals, "frame_offset")
    with (journal(ingesting) / "00000001.seg").open("r+b") as segment:
        segment.truncate(offset + 30)
    assert ingesting.ingest().frame_count == 0
    assert "before 5 that were ingested are not in journal" in ingesting.rejections()[0]
    ingesting.log = JournalLog(journal(ingesting))
    assert ingesting.ingest(message(session)).frame_count == 1
    assert ingesting.count(schema.messages) == 6


def test_a_journal_without_its_ingested_segments_is_not_reported(
    ingesting: IngestedStore,
) -> None:
    session = next_id()
    large = b"x" * (6 << 20)
    for n in range(4):
        ingesting.ingest(message(session, large + bytes([n])))
    names = sorted(one.name for one in journal(ingesting).glob("*.seg"))
    assert names == ["00000002.seg"]
    assert not ingesting.rejections()
    assert ingesting.count(schema.ledger_entries) == 4


def test_a_new_journal_in_an_emptied_spool_is_another_journal(ingesting: IngestedStore) -> None:
    session = next_id()
    ingesting.ingest(message(session))
    shutil.rmtree(journal(ingesting))
    ingesting.log = JournalLog(journal(ingesting))
    ingesting.ingest(message(session))
    assert not ingesting.rejections()
    assert ingesting.rows(schema.journals, "branch_of", "entry_count") == [(None, 1), (None, 1)]
