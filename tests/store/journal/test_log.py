"""Appends by threads, processes and forks: one total order, one chain, every fact once."""

import contextlib
import fcntl
import os
import signal
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tests.support.effort import times
from tests.support.interrupting import signalled_at
from tests.support.journals import (
    POLICY,
    alter,
    check_acknowledged,
    check_whole,
    entry,
    filled,
    label,
    labels,
    read_all,
    record,
    run_forks,
    seal_at,
    segment_files,
    write_at,
)
from tests.support.killing import end_of as exit_code_of
from tests.support.killing import fork
from tests.support.threads import at_once

import tooltrail.journal
import tooltrail.records.errors
from tooltrail.journal import FIRST_HASH, Cursor, JournalLog, read_journal_id
from tooltrail.journal.ends import HINT_NAME
from tooltrail.journal.frames import FRAMES_FROM
from tooltrail.journal.segments import FIRST_ROOM_BYTES
from tooltrail.records.digests import digest_of
from tooltrail.records.errors import InvalidRecordError


def test_facts_are_read_in_the_order_of_their_appends(tmp_path: Path) -> None:
    journal = JournalLog(tmp_path / "spool" / "journal")
    cursors = [journal.record([entry("p", number)])[0] for number in range(20)]
    frames, gaps = read_all(journal.folder)
    assert check_whole(journal.folder) == [("p", number) for number in range(20)]
    assert gaps == []
    assert cursors == [frame.cursor for frame in frames]


def test_who_has_durable_facts_does_not_wait_for_a_sync_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = JournalLog(tmp_path)
    (durable,) = journal.record([entry("p", 0)])
    (later,) = journal.append([entry("p", 1)])
    begun, goes_on = threading.Event(), threading.Event()

    def slow(*_: object) -> None:
        begun.set()
        goes_on.wait()

    monkeypatch.setattr(JournalLog, "_sync", slow)
    waiting = threading.Thread(target=journal.sync, args=(later,))
    quick = threading.Thread(target=journal.sync, args=(durable,))
    waiting.start()
    begun.wait()
    quick.start()
    quick.join(10)
    has_waited = quick.is_alive()
    goes_on.set()
    waiting.join()
    quick.join()
    assert not has_waited


def test_several_facts_are_appended_side_by_side(tmp_path: Path) -> None:
    journal = JournalLog(tmp_path)
    assert journal.record([]) == []
    cursors = journal.record([entry("p", n) for n in range(9)])
    assert [one.index for one in cursors] == [*range(1, 10)]
    assert check_whole(tmp_path) == [("p", number) for number in range(9)]


def test_none_of_several_facts_is_appended_if_one_is_not_json(tmp_path: Path) -> None:
    journal = filled(tmp_path, 1)
    bad = entry("p", 2)
    object.__setattr__(bad.fact, "role", b"bytes")
    with pytest.raises(InvalidRecordError):
        journal.append([entry("p", 1), bad])
    record(journal, "p", [3])
    assert check_whole(tmp_path) == [("p", 0), ("p", 3)]


def test_the_folder_and_its_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    filled(tmp_path / "spool" / "journal", 1)
    assert (tmp_path / "spool").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "spool" / "journal").stat().st_mode & 0o777 == 0o700
    for path in (tmp_path / "spool" / "journal").iterdir():
        assert path.stat().st_mode & 0o777 == 0o600


def test_preparing_a_log_touches_nothing(tmp_path: Path) -> None:
    JournalLog(tmp_path / "journal").close()
    assert list(tmp_path.iterdir()) == []


def test_a_closed_log_opens_again(tmp_path: Path) -> None:
    journal = filled(tmp_path, 2)
    (cursor,) = journal.append([entry("p", 2)])
    journal.close()
    journal.close()
    journal.sync(cursor)
    record(journal, "p", [3])
    assert check_whole(tmp_path) == [("p", number) for number in range(4)]


def test_threads_append_each_fact_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seal_at(monkeypatch, 8_000)
    journal = JournalLog(tmp_path)
    at_once(*(partial(record, journal, f"t{number}", range(60)) for number in range(6)))
    check_acknowledged(
        tmp_path, [(f"t{name}", number) for name in range(6) for number in range(60)]
    )
    assert len(labels(tmp_path)) == 360
    assert len(segment_files(tmp_path)) > 4


def test_eight_processes_append_each_fact_once_while_segments_are_sealed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal_at(monkeypatch, 8_000)

    def write(name: int) -> None:
        record(JournalLog(tmp_path), f"p{name}", range(60))

    children = [fork(partial(write, name)) for name in range(8)]
    # Readers beside the writers see a beginning of the same order each time, and no damage.
    seen: list[tuple[str, int]] = []
    cursor, running = Cursor(), set(children)
    while running:
        running = {child for child in running if os.waitpid(child, os.WNOHANG) == (0, 0)}
        frames, gaps = read_all(tmp_path, cursor)
        assert gaps == []
        seen += labels(tmp_path, cursor)[: len(frames)]
        if frames:
            last = frames[-1]
            cursor = last.cursor
    seen += labels(tmp_path, cursor)
    assert seen == check_whole(tmp_path)
    check_acknowledged(tmp_path, [(f"p{name}", n) for name in range(8) for n in range(60)])
    assert len(seen) == 480
    assert len(segment_files(tmp_path)) > 10


def test_a_fork_amid_the_appends_of_other_threads_goes_on_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal_at(monkeypatch, 20_000)
    journal = JournalLog(tmp_path)
    is_over = threading.Event()
    count, forks = [0, 0, 0], times(3)

    def append(name: int) -> None:
        while not is_over.is_set():
            record(journal, f"t{name}", [count[name]])
            count[name] += 1

    threads = [threading.Thread(target=append, args=(name,)) for name in range(3)]
    for thread in threads:
        thread.start()
    try:
        for number in range(forks):
            run_forks([partial(record, journal, f"fork{number}", range(3))])
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
    acknowledged = [(f"t{name}", number) for name in range(3) for number in range(count[name])]
    acknowledged += [(f"fork{number}", n) for number in range(forks) for n in range(3)]
    check_acknowledged(tmp_path, acknowledged)


def test_children_of_a_killed_writer_keep_no_lock_of_its_appends(tmp_path: Path) -> None:
    read, write = os.pipe()
    began, begin = os.pipe()

    def write_and_fork() -> None:
        os.close(write)
        journal = filled(tmp_path, 1)
        thread = threading.Thread(target=record, args=(journal, "p", range(1, 1 << 30)))
        thread.start()
        for _ in range(20):
            fork(partial(os.read, read, 1))  # stays until the test is over
        os.write(begin, b"x")
        thread.join()

    writer = fork(write_and_fork)
    os.read(began, 1)
    os.kill(writer, signal.SIGKILL)
    assert exit_code_of(writer) == -signal.SIGKILL
    record(JournalLog(tmp_path), "q", [0])
    assert check_whole(tmp_path)[-1] == ("q", 0)
    for descriptor in (read, write, began, begin):
        os.close(descriptor)


def test_segments_are_sealed_at_their_last_frame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal_at(monkeypatch, 3_000)
    filled(tmp_path, 40)
    check_whole(tmp_path)
    frames, _ = read_all(tmp_path)
    *sealed, newest = segment_files(tmp_path)
    assert len(sealed) > 2
    for number, path in enumerate(sealed, start=1):
        assert path.stat().st_size == max(one.end for one in frames if one.segment == number)
    assert newest.stat().st_size == FIRST_ROOM_BYTES


def test_a_frame_larger_than_a_segment_has_one_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal_at(monkeypatch, 3_000)
    journal = JournalLog(tmp_path)
    journal.record([entry("p", 0, size=3 << 20)])
    journal.record([entry("p", 1)])
    assert check_whole(tmp_path) == [("p", 0), ("p", 1)]
    assert [frame.segment for frame in read_all(tmp_path)[0]] == [1, 2]


def test_a_repeated_body_stands_once_in_a_segment_for_each_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal_at(monkeypatch, 3_000)
    one, other = JournalLog(tmp_path), JournalLog(tmp_path)
    for number in range(30):
        one.record([entry("one", number), entry("one", 1_000 + number)])
        other.record([entry("other", number)])
    found = [
        (frame.segment, label(frame)[0])
        for frame in read_all(tmp_path)[0]
        if digest_of(POLICY) in frame.bodies()
    ]
    segments = range(1, len(segment_files(tmp_path)) + 1)
    assert len(segments) > 3
    assert len(found) == len(set(found))
    assert {segment for segment, _ in found} == set(segments)


@pytest.mark.parametrize("content", [b"", b"x", bytes(200), b"\xff" * 200, None])
def test_garbage_and_the_hint_of_another_journal_are_no_hint(
    tmp_path: Path, content: bytes | None
) -> None:
    journal, other = filled(tmp_path / "ours", 3), filled(tmp_path / "other", 3)
    for number, log in ((3, journal), (4, JournalLog(journal.folder))):
        hint = (other.folder / HINT_NAME).read_bytes() if content is None else content
        (journal.folder / HINT_NAME).write_bytes(hint)
        record(log, "p", [number])
    assert check_whole(journal.folder) == [("p", number) for number in range(5)]


def test_a_stale_hint_of_any_age_does_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal_at(monkeypatch, 2_000)
    journal = JournalLog(tmp_path)
    hints: list[bytes] = []
    for number in range(12):
        record(journal, "p", [number])
        hints.append((tmp_path / HINT_NAME).read_bytes())
    for number, hint in enumerate(hints, start=12):
        write_at(tmp_path / HINT_NAME, 0, hint)
        record(journal if number % 2 else JournalLog(tmp_path), "p", [number])
    assert check_whole(tmp_path) == [("p", number) for number in range(24)]


def test_a_hint_can_be_deleted_at_any_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seal_at(monkeypatch, 8_000)
    filled(tmp_path, 1, producer="first")

    def write(name: int) -> None:
        journal = JournalLog(tmp_path)
        for number in range(40):
            record(journal, f"p{name}", [number])
            if number % 7 == 0:
                (tmp_path / HINT_NAME).unlink(missing_ok=True)

    run_forks([partial(write, name) for name in range(4)])
    check_acknowledged(tmp_path, [(f"p{name}", n) for name in range(4) for n in range(40)])


def test_clocks_that_go_back_do_not_matter(tmp_path: Path) -> None:
    journal = filled(tmp_path, 2)
    for path in tmp_path.iterdir():
        os.utime(path, (1 << 33, 1 << 33))
    record(journal, "p", [2])
    for path in tmp_path.iterdir():
        os.utime(path, (0, 0))
    record(JournalLog(tmp_path), "p", [3])
    assert check_whole(tmp_path) == [("p", number) for number in range(4)]


def test_links_are_not_followed(tmp_path: Path) -> None:
    elsewhere = filled(tmp_path / "elsewhere", 1)
    before = segment_files(elsewhere.folder)[0].read_bytes()
    folder = tmp_path / "journal"
    folder.mkdir()
    (folder / "00000001.seg").symlink_to(segment_files(elsewhere.folder)[0])
    with pytest.raises(tooltrail.records.errors.UnavailableError):
        record(JournalLog(folder), "p", [0])
    with pytest.raises(tooltrail.records.errors.DamageError):
        read_all(folder)
    (folder / "00000001.seg").unlink()
    (folder / HINT_NAME).unlink()
    (folder / HINT_NAME).symlink_to(tmp_path / "somewhere")
    with pytest.raises(tooltrail.records.errors.UnavailableError):
        record(JournalLog(folder), "p", [0])
    assert not (tmp_path / "somewhere").exists()
    (folder / HINT_NAME).unlink()
    os.mkfifo(folder / HINT_NAME)
    with pytest.raises(tooltrail.records.errors.UnavailableError, match="end is not a regular"):
        record(JournalLog(folder), "p", [0])
    assert segment_files(elsewhere.folder)[0].read_bytes() == before


def _interrupted(step: Callable[[], object], moment: int) -> bool:
    code = str(Path(tooltrail.journal.__file__).parent)
    with contextlib.suppress(KeyboardInterrupt), signalled_at(moment, code) as reached:
        step()
    return bool(reached)


def test_an_interrupt_at_any_moment_leaves_the_lock_free_and_the_journal_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal_at(monkeypatch, 1_000)
    journal, beside = JournalLog(tmp_path), JournalLog(tmp_path)
    moment, acknowledged = 1, list[tuple[str, int]]()
    while _interrupted(partial(record, journal, "p", range(moment * 10, moment * 10 + 3)), moment):
        descriptor = os.open(tmp_path, os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(descriptor)
        record(beside, "beside", [moment])
        record(journal, "p", [moment * 10 + 9])
        acknowledged += [("beside", moment), ("p", moment * 10 + 9)]
        moment += 1
    assert moment > 100
    check_acknowledged(tmp_path, acknowledged)


def test_the_first_segment_names_the_journal_and_all_later_ones_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal_at(monkeypatch, 1_000)
    assert read_journal_id(tmp_path) is None
    filled(tmp_path, 10)
    journal = read_journal_id(tmp_path)
    assert journal is not None
    assert {path.read_bytes()[8:24] for path in segment_files(tmp_path)} == {journal.bytes}
    first = read_all(tmp_path)[0][0]
    assert (first.offset, first.previous_hash) == (FRAMES_FROM, FIRST_HASH)
    alter(segment_files(tmp_path)[0], 10)
    assert read_journal_id(tmp_path) == journal
