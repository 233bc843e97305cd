"""A reader resumes anywhere, beside writers, and while segments are deleted."""

import os
import shutil
import threading
from functools import partial
from pathlib import Path

import pytest
from tests.support.journals import (
    check_whole,
    end_of,
    filled,
    label,
    labels,
    read_all,
    record,
    seal_at,
    segment_files,
    write_at,
)

from tooltrail.journal import (
    Cursor,
    Frame,
    Gap,
    JournalLog,
    delete_segments,
    has_frames,
    read_journal,
    read_journal_id,
    sync_segment,
)
from tooltrail.journal.ends import HINT_NAME
from tooltrail.records.errors import DamageError


def test_a_journal_that_is_not_there_has_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "none"
    assert read_all(folder) == ([], [])
    assert not has_frames(folder, Cursor())
    assert read_journal_id(folder) is None
    assert delete_segments(folder, before=9) == 0
    sync_segment(folder, 1)
    assert not folder.exists()


def test_reading_resumes_behind_every_frame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal_at(monkeypatch, 2_000)
    filled(tmp_path, 20)
    frames = read_all(tmp_path)[0]
    for number, frame in enumerate(frames):
        cursor = frame.cursor
        found, gaps = read_all(tmp_path, cursor)
        assert gaps == []
        assert [one.hash for one in found] == [one.hash for one in frames[number + 1 :]]
        assert [one.is_linked for one in found] == [True] * len(found)
        assert has_frames(tmp_path, cursor) == bool(found)


def test_reading_resumes_behind_every_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seal_at(monkeypatch, 2_000)
    filled(tmp_path, 24)
    frames = read_all(tmp_path)[0]
    files = segment_files(tmp_path)
    write_at(files[0], frames[1].offset + 70, b"damage")
    write_at(files[1], 30, b"damage")
    files[2].unlink()
    items = list(read_journal(tmp_path, Cursor()))
    assert sum(isinstance(item, Gap) for item in items) == 3
    for number, item in enumerate(items):
        rest = list(read_journal(tmp_path, item.cursor))
        assert [_place(one) for one in rest] == [_place(one) for one in items[number + 1 :]]


def _place(item: Frame | Gap) -> tuple[str, int, int]:
    return type(item).__name__, item.segment, item.offset


def test_frames_that_come_later_are_seen_by_the_same_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal_at(monkeypatch, 2_000)
    journal = filled(tmp_path, 1)
    found: list[int] = []
    for number, item in enumerate(read_journal(tmp_path, Cursor()), start=1):
        assert isinstance(item, Frame)
        found.append(label(item)[1])
        if number < 30:
            record(journal, "p", [number])
    assert found == [*range(30)]


def test_threads_read_beside_threads_that_append_and_see_no_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal_at(monkeypatch, 3_000)
    journal = filled(tmp_path, 1)
    is_over = threading.Event()
    seen: list[list[tuple[str, int]]] = [[], []]

    def follow(found: list[tuple[str, int]]) -> None:
        cursor, is_last = Cursor(), False
        while not is_last:
            is_last = is_over.is_set()
            for item in read_journal(tmp_path, cursor):
                assert isinstance(item, Frame), item
                found.append(label(item))
                cursor = item.cursor

    readers = [threading.Thread(target=follow, args=(found,)) for found in seen]
    writers = [
        threading.Thread(target=partial(record, journal, f"t{name}", range(50)))
        for name in range(3)
    ]
    for thread in (*readers, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    is_over.set()
    for thread in readers:
        thread.join()
    assert seen[0] == seen[1] == check_whole(tmp_path)
    assert len(seen[0]) == 151


def test_frames_wait_until_the_cursor_is_behind_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal_at(monkeypatch, 1_000)
    journal = JournalLog(tmp_path)
    cursor = Cursor()
    for number in range(8):
        assert not has_frames(tmp_path, cursor)
        record(journal, "p", [number])
        assert has_frames(tmp_path, cursor)
        cursor = read_all(tmp_path)[0][-1].cursor
    assert len(segment_files(tmp_path)) > 2


def test_frames_wait_in_a_journal_that_was_restored_from_an_older_copy(tmp_path: Path) -> None:
    folder, copied = tmp_path / "journal", tmp_path / "copy"
    journal = filled(folder, 20)
    shutil.copytree(folder, copied)
    record(journal, "p", range(20, 30))
    cursor = read_all(folder)[0][-1].cursor
    assert not has_frames(folder, cursor)
    shutil.rmtree(folder)
    shutil.copytree(copied, folder)
    assert has_frames(folder, cursor)
    journal = JournalLog(folder)
    record(journal, "q", range(20, 30))
    assert has_frames(folder, cursor)  # as many frames, with as many bytes
    assert not has_frames(folder, read_all(folder)[0][-1].cursor)


@pytest.mark.parametrize("count", [1, 20])
def test_a_writer_that_died_before_it_wrote_the_hint_leaves_no_frames_that_wait(
    tmp_path: Path, count: int
) -> None:
    journal = filled(tmp_path, 20)
    hint = (tmp_path / HINT_NAME).read_bytes()
    record(journal, "p", range(20, 20 + count))
    (tmp_path / HINT_NAME).write_bytes(hint)
    frames = read_all(tmp_path)[0]
    assert has_frames(tmp_path, frames[-2].cursor)
    assert not has_frames(tmp_path, frames[-1].cursor)


def test_a_block_of_zeros_hides_no_frames_that_wait(tmp_path: Path) -> None:
    filled(tmp_path, 30)
    frames = read_all(tmp_path)[0]
    write_at(segment_files(tmp_path)[0], frames[2].offset, bytes(4_096))
    cursor = frames[1].cursor
    assert has_frames(tmp_path, cursor)
    assert read_all(tmp_path, cursor)[0][-1].index == 29


def test_only_old_segments_are_deleted_and_never_the_newest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal_at(monkeypatch, 2_000)
    journal = filled(tmp_path, 20)
    count = len(segment_files(tmp_path))
    assert count > 3
    third = next(frame for frame in read_all(tmp_path)[0] if frame.segment == 3)
    assert delete_segments(tmp_path, before=3) == 2
    assert delete_segments(tmp_path, before=3) == 0
    start = Cursor(3, third.offset, third.index, third.previous_hash)
    assert labels(tmp_path, start) == [("p", number) for number in range(third.index, 20)]
    assert delete_segments(tmp_path, before=1_000) == count - 3
    assert [path.name for path in segment_files(tmp_path)] == [f"{count:08d}.seg"]
    last = Cursor(count, *_first_of(tmp_path, count))
    record(journal, "p", [20])
    record(JournalLog(tmp_path), "p", [21])
    assert labels(tmp_path, last)[-2:] == [("p", 20), ("p", 21)]


def _first_of(folder: Path, number: int) -> tuple[int, int, bytes]:
    """Offset, index and hash before the first frame of a segment."""
    frames, _ = read_all(folder)
    first = next(frame for frame in frames if frame.segment == number)
    return first.offset, first.index, first.previous_hash


def test_a_reader_whose_segments_were_deleted_says_which_frames_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal_at(monkeypatch, 2_000)
    filled(tmp_path, 20)
    delete_segments(tmp_path, before=3)
    frames, (gap,) = read_all(tmp_path)
    assert gap.reason.startswith(f"frames 0 to {frames[0].index - 1} of the journal are missing")


def test_an_ingester_that_deletes_what_it_read_disturbs_no_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal_at(monkeypatch, 2_000)
    writers = [
        threading.Thread(target=partial(record, JournalLog(tmp_path), f"t{name}", range(100)))
        for name in range(2)
    ]
    for thread in writers:
        thread.start()
    cursor, found = Cursor(), list[tuple[str, int]]()
    while len(found) < 200:
        for item in read_journal(tmp_path, cursor):
            assert isinstance(item, Frame), item
            found.append(label(item))
            cursor = item.cursor
        sync_segment(tmp_path, cursor.segment)
        delete_segments(tmp_path, before=cursor.segment)
    for thread in writers:
        thread.join()
    assert sorted(found) == sorted((f"t{name}", n) for name in range(2) for n in range(100))
    assert len(segment_files(tmp_path)) <= 2


def test_the_id_is_damage_only_where_no_head_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal_at(monkeypatch, 2_000)
    filled(tmp_path, 9)
    journal = read_journal_id(tmp_path)
    *others, last = segment_files(tmp_path)
    for path in others:
        write_at(path, 8, b"damage")
    assert read_journal_id(tmp_path) == journal
    write_at(last, 8, b"damage")
    with pytest.raises(DamageError):
        read_journal_id(tmp_path)


@pytest.mark.parametrize("is_pipe", [True, False])
def test_links_are_not_followed_and_pipes_are_not_waited_for(tmp_path: Path, is_pipe: bool) -> None:
    filled(tmp_path / "elsewhere", 3)
    path, _ = end_of(tmp_path / "elsewhere")
    folder = tmp_path / "journal"
    folder.mkdir()
    if is_pipe:
        os.mkfifo(folder / path.name)
        os.mkfifo(folder / HINT_NAME)
    else:
        (folder / path.name).symlink_to(path)
    for read in (read_all, read_journal_id, partial(has_frames, cursor=Cursor())):
        with pytest.raises(DamageError, match="not a regular file"):
            read(folder)
    with pytest.raises(DamageError, match="not a regular file"):
        sync_segment(folder, 1)
