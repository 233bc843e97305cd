"""A journal whose folder was restored from an older copy, or cut off, is noticed and goes on."""

import os
import shutil
from functools import partial
from pathlib import Path
from random import Random
from uuid import UUID

import pytest
from tests.support import schema
from tests.support.call_facts import ended, message, next_id, started
from tests.support.effort import times
from tests.support.journals import alter, end_of, seal_at
from tests.support.keeping import ingested, record, rows
from tests.support.store_parts import StoreParts, ended_spooled

from tooltrail.journal import JournalLog
from tooltrail.journal.ends import HINT_NAME, next_head, peek_hint
from tooltrail.journal.frames import FRAMES_FROM
from tooltrail.journal.owners import Owner
from tooltrail.journal.segments import create_segment
from tooltrail.records import DamageError, UnavailableError
from tooltrail.store.ingest import publishing
from tooltrail.store.ingest.places import Behind, what_is_behind
from tooltrail.store.locking import journal_lock
from tooltrail.store.opening import create_store, open_store
from tooltrail.store.store import Store


def journal(store: StoreParts) -> Path:
    return store.spool / "journal"


def copy(store: StoreParts, name: str) -> Path:
    return Path(shutil.copytree(journal(store), store.spool.with_name(name)))


def restore(store: StoreParts, copied: Path) -> None:
    shutil.rmtree(journal(store))
    shutil.copytree(copied, journal(store))
    store.log = JournalLog(journal(store))


def test_an_older_copy_is_reported_once_and_changes_no_row(parts: StoreParts) -> None:
    session = next_id()
    parts.ingest(message(session), message(session))
    copied = copy(parts, "copy")
    parts.ingest(message(session))
    restore(parts, copied)
    assert [parts.ingest().frame_count for _ in range(2)] == [2, 0]
    (reason,) = parts.rejections()
    assert "restored from an older copy" in reason
    assert parts.count(schema.messages) == 3
    assert waiting(parts) is None
    assert parts.damage() == []


@pytest.mark.both_engines
@pytest.mark.parametrize("is_cut", [True, False])
def test_what_is_recorded_into_an_older_copy_is_a_branch(parts: StoreParts, is_cut: bool) -> None:
    session = next_id()
    parts.ingest(message(session), message(session))
    copied = copy(parts, "copy")
    parts.ingest(message(session), message(session))
    restore(parts, copied)
    if is_cut:
        parts.ingest()
    parts.ingest(message(session))
    done = parts.ingest(message(session))
    assert (done.frame_count, done.rejected_count) == (1, 0)
    assert len(parts.rejections()) == 1
    assert parts.count(schema.messages) == 6
    first, branch = parts.rows(
        schema.journals, "id", "branch_of", "entry_count", "next_index", "key"
    )
    assert first[1:] == (None, 4, 4, 1)
    assert branch[1:] == (first[0], 4, 4, 2)
    entries = parts.rows(schema.ledger_entries, "journal_key", "n")
    assert entries == [(key, n) for key in (1, 2) for n in range(4)]
    assert parts.damage() == []


@pytest.mark.both_engines
def test_branches_of_one_journal_are_told_apart(parts: StoreParts) -> None:
    session = next_id()
    parts.ingest(message(session))
    copied = copy(parts, "copy")
    newest = list[Path]()
    for n in range(3):
        restore(parts, copied)
        parts.ingest(*[message(session) for _ in range(n + 1)])
        newest.append(copy(parts, f"newest-{n}"))
    assert parts.rows(schema.journals, "entry_count") == [(2,), (3,), (4,)]
    for n, one in enumerate(newest):
        restore(parts, one)
        parts.ingest(message(session))
        assert parts.rows(schema.journals, "entry_count")[n] == (n + 3,)
    assert len(parts.rejections()) == 2


def test_a_journal_that_was_cut_off_in_a_frame_is_reported(parts: StoreParts) -> None:
    session = next_id()
    parts.ingest(*[message(session) for _ in range(5)])
    ((offset,),) = parts.rows(schema.journals, "frame_offset")
    with (journal(parts) / "00000001.seg").open("r+b") as segment:
        segment.truncate(offset + 30)
    assert parts.ingest().frame_count == 4
    assert "the last ingested frame, 4, is not in" in parts.rejections()[0]
    parts.log = JournalLog(journal(parts))
    assert parts.ingest(message(session)).frame_count == 1
    assert parts.count(schema.messages) == 6


def waiting(parts: StoreParts) -> Behind | None:
    with parts.database.read() as connection:
        return what_is_behind(connection, parts.spool)


@pytest.mark.both_engines
def test_facts_that_were_lost_with_the_newest_segment_are_reported_at_once(
    parts: StoreParts,
) -> None:
    session = next_id()
    parts.ingest(message(session))
    parts.append(message(session), message(session))
    (journal(parts) / "00000001.seg").unlink()
    assert waiting(parts) == "facts"
    for _ in range(2):
        parts.ingest()
        assert waiting(parts) is None
        (reason,) = parts.rejections()
        assert reason.startswith("frames 1 to 2 of the journal are missing")
        assert parts.damage() == []
    parts.log = JournalLog(journal(parts))
    parts.ingest(message(session))
    assert len(parts.rejections()) == 1
    assert parts.rows(schema.journals, "entry_count", "next_index") == [(2, 4)]
    assert parts.damage() == []


def test_a_newest_segment_that_was_ingested_may_be_missing(parts: StoreParts) -> None:
    session = next_id()
    parts.ingest(message(session))
    (journal(parts) / "00000001.seg").unlink()
    assert waiting(parts) is None
    parts.ingest()
    parts.log = JournalLog(journal(parts))
    parts.ingest(message(session))
    assert not parts.rejections()
    assert parts.rows(schema.journals, "entry_count", "next_index") == [(2, 2)]


@pytest.mark.parametrize("content", [b"{}", b"hello\n" * 1000])
def test_facts_that_were_lost_with_a_replaced_segment_are_lost_and_not_removed(
    parts: StoreParts, content: bytes
) -> None:
    session = next_id()
    parts.ingest(message(session))
    parts.append(message(session), message(session))
    (journal(parts) / "00000001.seg").write_bytes(content)
    parts.log = JournalLog(journal(parts))
    parts.ingest(message(session))
    assert parts.damage() == []
    assert any("entries 1 to 2" in one.message for one in parts.verify())
    assert parts.rows(schema.journals, "branch_of", "next_index") == [(None, 4)]


def test_a_cut_before_the_cursor_is_reported_at_once(parts: StoreParts) -> None:
    session = next_id()
    parts.ingest(message(session), message(session))
    path, end = end_of(journal(parts))
    os.truncate(path, end - 1)
    assert waiting(parts) == "facts"
    for _ in range(2):
        parts.ingest()
        assert waiting(parts) is None
        (reason,) = parts.rejections()
        assert "Either it was cut off" in reason
    parts.log = JournalLog(journal(parts))
    parts.ingest(message(session))
    assert waiting(parts) is None
    assert parts.damage() == []


@pytest.mark.parametrize("segment", [1, 3])
@pytest.mark.parametrize("way", ["cut", "zeros", "altered"])
def test_damage_to_the_first_frame_of_the_only_segment_is_reported_once(
    parts: StoreParts, monkeypatch: pytest.MonkeyPatch, segment: int, way: str
) -> None:
    seal_at(monkeypatch, 6_000)
    session, path = next_id(), journal(parts) / f"{segment:08d}.seg"
    while not path.exists() or len(list(journal(parts).glob("*.seg"))) > 1:
        parts.ingest(message(session, b"x" * 1_000))
    before = parts.count(schema.messages)
    if way == "altered":
        alter(path, FRAMES_FROM + 80)
    else:
        size = path.stat().st_size
        os.truncate(path, FRAMES_FROM + (30 if way == "cut" else 0))
        if way == "zeros":
            os.truncate(path, size)
    for _ in range(3):
        parts.ingest()
        assert waiting(parts) is None
        assert (parts.count(schema.journals), len(parts.rejections())) == (2, 1)
    parts.log = JournalLog(journal(parts))
    for n in range(3):
        parts.ingest(message(session))
        assert parts.count(schema.messages) == before + 1 + n
    assert parts.count(schema.journals) == 2
    assert waiting(parts) is None
    assert parts.damage() == []


def test_damage_at_the_end_of_a_sealed_segment_begins_no_branch(parts: StoreParts) -> None:
    session, path = next_id(), journal(parts) / "00000001.seg"
    parts.ingest(message(session), message(session))
    parts.append(message(session, b"y" * 500))
    tail = peek_hint(journal(parts))
    assert tail is not None
    os.truncate(path, tail.end)
    alter(path, tail.last + 100)
    create_segment(journal(parts), next_head(tail))  # the writer died behind this
    for _ in range(3):
        parts.ingest()
        assert waiting(parts) is None
    parts.log = JournalLog(journal(parts))
    parts.ingest(message(session))
    (reason,) = parts.rejections()
    assert "is damaged at byte" in reason
    assert parts.rows(schema.journals, "branch_of", "entry_count") == [(None, 3)]
    assert parts.damage() == []


def test_output_that_waits_for_the_sink_is_kept_when_its_journal_is_restored(
    parts: StoreParts,
) -> None:
    session, call = next_id(), next_id()
    parts.ingest(message(session))
    copied = copy(parts, "copy")
    parts.sink.is_away = True
    parts.ingest(started(session, call), ended_spooled(parts, session, call, b"x" * 90_000))
    restore(parts, copied)
    parts.ingest(message(session))
    assert (parts.spool / str(call) / "stdout.zst").exists()
    parts.sink.is_away = False
    assert parts.ingest().published_count == 1
    assert not (parts.spool / str(call)).exists()
    assert parts.damage() == []


@pytest.mark.both_engines
def test_a_call_that_was_open_when_the_copy_was_made_is_ended(parts: StoreParts) -> None:
    session, dead, alive = next_id(), next_id(), next_id()
    owner = Owner(parts.spool)
    parts.log.record([started(session, alive, owner=owner.name()), message(session)])
    parts.ingest()
    copied = copy(parts, "copy")
    parts.ingest(message(session))
    restore(parts, copied)
    parts.append(started(session, dead, owner="0" * 32))
    parts.ingest()
    assert parts.rows(schema.invocations, "state") == [("started",), ("interrupted",)]
    owner.release()
    assert parts.ingest().recovered_count == 1
    assert parts.rows(schema.invocations, "state") == [("interrupted",), ("interrupted",)]
    assert parts.damage() == []


def test_a_copy_behind_damage_is_ingested(parts: StoreParts) -> None:
    session = next_id()
    parts.ingest(message(session))
    copied = copy(parts, "copy")
    parts.append(message(session), message(session))
    (journal(parts) / "00000001.seg").unlink()
    parts.ingest()  # the last item is damage
    restore(parts, copied)
    for n in range(3):
        parts.ingest(message(session))
        assert parts.count(schema.messages) == 2 + n
    assert waiting(parts) is None
    assert parts.damage() == []


def test_a_restored_journal_is_not_taken_for_ingested_while_it_is_locked(parts: StoreParts) -> None:
    session = next_id()
    parts.ingest(message(session))
    copied = copy(parts, "copy")
    parts.ingest(message(session), message(session))
    restore(parts, copied)
    parts.append(message(session))
    with (
        journal_lock(parts.database, journal(parts), is_required=True, wait_s=0),
        pytest.raises(UnavailableError, match="another program ingests"),
    ):
        parts.ingester().ingest(wait_s=0)
    assert parts.ingest().frame_count == 2


def test_a_row_that_no_update_finds_ends_the_ingestion(parts: StoreParts) -> None:
    session = next_id()
    parts.ingest(message(session))
    # As if the index of the ids were damaged: the row is read, and not found by an update.
    parts.alter("CREATE TRIGGER lost BEFORE UPDATE ON journals BEGIN SELECT RAISE(IGNORE); END")
    with pytest.raises(DamageError, match="the row of journal"):
        parts.ingest(message(session))
    parts.alter("DROP TRIGGER lost")
    assert parts.ingest().frame_count == 1


def test_an_altered_row_of_a_branch_ends_the_ingestion(parts: StoreParts) -> None:
    session = next_id()
    parts.ingest(message(session), message(session))
    copied = copy(parts, "copy")
    parts.ingest(message(session))
    restore(parts, copied)
    parts.ingest(message(session))
    parts.alter("UPDATE journals SET branch_of = NULL")
    with pytest.raises(DamageError, match="the row of journal"):
        parts.ingest(message(session))


def test_a_journal_without_its_ingested_segments_is_not_reported(parts: StoreParts) -> None:
    session = next_id()
    large = b"x" * (6 << 20)
    for n in range(3):
        parts.ingest(message(session, large + bytes([n])))
    parts.append(message(session, large))
    (journal(parts) / "00000001.seg").unlink()
    parts.ingest()
    names = sorted(one.name for one in journal(parts).glob("*.seg"))
    assert names == ["00000002.seg"]
    assert not parts.rejections()
    assert parts.count(schema.ledger_entries) == 4


def test_a_new_journal_in_an_emptied_spool_is_another_journal(parts: StoreParts) -> None:
    session = next_id()
    parts.ingest(message(session))
    shutil.rmtree(journal(parts))
    parts.log = JournalLog(journal(parts))
    parts.ingest(message(session))
    assert not parts.rejections()
    assert parts.rows(schema.journals, "branch_of", "entry_count") == [(None, 1), (None, 1)]


@pytest.mark.parametrize("is_cut", [True, False])
def test_a_reader_sees_what_was_recorded_since_a_journal_was_restored(
    tmp_path: Path, is_cut: bool
) -> None:
    path, copied = tmp_path / "trail.db", tmp_path / "copy"
    with create_store(path) as store:
        folder = store.spool / "journal"
        ingested(store, b"old")
        shutil.copytree(folder, copied)
        ingested(store, b"newer", b"newest")
    if is_cut:
        with (folder / "00000001.seg").open("r+b") as segment:
            segment.truncate(3_000)
    else:
        shutil.rmtree(folder)
        shutil.copytree(copied, folder)
    with open_store(path) as store:
        record(store, b"after")
        assert len(store.reader.invocations().items) == 4
        assert store.lag is None


@pytest.mark.both_engines
def test_a_journal_that_was_restored_twice_is_ingested_once_each_time(
    store: Store, tmp_path: Path
) -> None:
    folder, copied = store.spool / "journal", tmp_path / "copy"

    def behind() -> Behind | None:
        with store.database.read() as connection:
            return what_is_behind(connection, store.spool)

    # Without the recorder of the store, no thread of it ingests while the folder is replaced.
    JournalLog(folder).record([message(next_id())])
    store.ingest()
    shutil.copytree(folder, copied)
    JournalLog(folder).record([message(next_id())])
    store.ingest()
    for notices in (1, 2):  # the second time, the copy lacks the frames of the branch
        shutil.rmtree(folder)
        shutil.copytree(copied, folder)
        assert store.reader.sessions()
        found = rows(store, "SELECT ingested_at FROM journals")
        assert behind() is None
        assert store.reader.sessions()
        assert rows(store, "SELECT ingested_at FROM journals") == found
        JournalLog(folder).record([message(next_id())])
        # As if the writer had died before it wrote the hint.
        shutil.copyfile(copied / HINT_NAME, folder / HINT_NAME)
        assert behind() == "facts"
        store.ingest()
        assert len(rows(store, "SELECT reason FROM rejected_facts")) == notices
    assert len(store.reader.sessions()) == 4


@pytest.mark.both_engines
def test_damage_at_the_beginning_of_a_branch_is_kept(parts: StoreParts) -> None:
    session = next_id()
    parts.ingest(message(session), message(session))
    copied = copy(parts, "copy")
    parts.ingest(*[message(session) for _ in range(3)])
    restore(parts, copied)
    _, begin = end_of(journal(parts))
    first, *_ = [parts.log.record([message(session)])[0] for _ in range(3)]
    damaged_size = first.offset - begin
    alter(journal(parts) / "00000001.seg", begin + damaged_size // 2)
    done = parts.ingest()
    assert (done.frame_count, done.rejected_count) == (4, 2)
    kept = [len(data) for (data,) in parts.rows(schema.rejected_facts, "data") if data]
    assert kept == [damaged_size]
    assert parts.damage() == []
    assert any(f"{damaged_size:,} bytes are not readable" in one.message for one in parts.verify())
    parts.ingest(message(session))
    assert parts.damage() == []


OPERATIONS = (
    *("recorded", "recorded", "recorded", "ingested", "ingested", "ingested", "copied", "restored"),
    "sink",
)


@pytest.mark.parametrize("seed", range(times(6)))
def test_copies_of_a_spool_that_are_restored_in_any_order_lose_nothing(
    parts: StoreParts, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    seal_at(monkeypatch, 6_000)
    monkeypatch.setattr(publishing, "RETRY_AFTER_S", 0)
    random, session = Random(seed), next_id()
    parts.append(message(session))
    other = parts.other_journal()
    shutil.copytree(parts.spool, other.spool)
    # For each machine, the calls that its spool has, and older copies of both.
    held = {parts.spool: set[UUID](), other.spool: set[UUID]()}
    copies = {one: [(shutil.copytree(one, f"{one}-0"), set[UUID]())] for one in held}
    expected = set[UUID]()
    for step in range(80):
        machine = random.choice((parts, other))
        spool, mine = machine.spool, held[machine.spool]
        match random.choice(OPERATIONS):
            case "recorded":
                call, size = next_id(), random.choice((10, 1_000, 50_000))
                machine.append(started(session, call))
                end = ended if size < 50_000 else partial(ended_spooled, machine)
                machine.append(end(session, call, b"%d" % call.int * size))
                mine.add(call)
            case "ingested":
                machine.ingest()
                assert machine.ingest().frame_count == 0
                assert waiting(machine) is None
                expected |= mine
            case "copied":
                copies[spool].append((shutil.copytree(spool, f"{spool}-{step + 1}"), set(mine)))
            case "restored":
                kept, before = random.choice(copies[spool])
                shutil.rmtree(journal(machine))
                shutil.copytree(kept, spool, dirs_exist_ok=True)
                machine.log, held[spool] = JournalLog(journal(machine)), set(before)
            case _:
                parts.sink.is_away = not parts.sink.is_away
    parts.sink.is_away = False
    for machine in (parts, other):
        machine.ingest()
        expected |= held[machine.spool]
    calls = parts.rows(schema.invocations, "id", "state")
    assert sorted(calls) == sorted((one, "success") for one in expected)
    assert parts.damage() == []
    assert parts.count(schema.pending_artifacts) == 0
