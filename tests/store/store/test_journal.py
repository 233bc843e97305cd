"""A journal keeps what it has acknowledged, whoever is killed or has no room left."""

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.disks import small_disk
from tests.support.killing import count_moments, run_and_kill
from tests.support.waiting import until

from tooltrail.records import InvalidRecordError, digest_of
from tooltrail.store._outbox import flocks
from tooltrail.store._outbox import journal as _journal
from tooltrail.store._outbox.journal import Journal
from tooltrail.store._outbox.journal_lines import Progress, iter_lines
from tooltrail.store.entries import (
    CallEnded,
    CallStarted,
    EndedStream,
    Entry,
    MessageAdded,
    NewerEntryError,
    SessionEnded,
    SessionOpened,
    ShownResult,
    SpooledContent,
    entry_json,
    read_entry,
)

LONG = 60
NAME = UUID("018f0000-0000-7000-8000-000000000000")
TEXT = st.text(st.characters(blacklist_categories=()), max_size=30)


def told(journal: Journal) -> list[bytes | None]:
    return [line.data for path in journal.files() for line in iter_lines(path)]


def journal_file(journal: Journal) -> Path:
    return journal.waiting / "journal"


def test_what_is_appended_is_read_in_order_and_is_private(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "spool" / "outbox")
    assert not journal.is_waiting()
    for number in range(3):
        journal.append(b"%d" % number)
    assert journal.is_waiting()
    assert told(journal) == [b"0", b"1", b"2"]
    modes = [path.stat().st_mode & 0o777 for path in (journal.waiting, journal_file(journal))]
    assert modes == [0o700, 0o600]


def test_a_torn_end_at_any_byte_leaves_no_half_line_before_the_next(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "outbox")
    journal.append(b"first")
    whole = journal_file(journal).stat().st_size
    journal.append(b"second")
    data = journal_file(journal).read_bytes()
    for cut in range(whole, len(data)):
        journal_file(journal).write_bytes(data[:cut])
        seen = told(journal)
        journal.append(b"third")
        kept = [b"second"] if cut == len(data) - 1 else []
        assert seen == [b"first", *kept]
        assert told(journal) == [b"first", *kept, b"third"]


def test_a_long_torn_end_is_found_from_behind(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "outbox")
    journal.append(b"first")
    with journal_file(journal).open("ab") as file:
        file.write(b"x" * 3_000_000)
    journal.append(b"second")
    assert told(journal) == [b"first", b"second"]


def test_a_last_newline_that_was_altered_costs_nothing(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "outbox")
    journal.append(b"first")
    data = journal_file(journal).read_bytes()
    journal_file(journal).write_bytes(data[:-1] + b"\x0b")
    journal.append(b"second")
    assert told(journal) == [b"first", b"second"]


def test_every_flipped_byte_of_a_line_is_damage_of_that_line_alone(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "outbox")
    for text in (b"first", b"second", b"third"):
        journal.append(text)
    data = journal_file(journal).read_bytes()
    start = data.index(b"\n") + 1
    for place in range(start, data.index(b"\n", start)):
        flipped = bytes([*data[:place], data[place] ^ 1, *data[place + 1 :]])
        journal_file(journal).write_bytes(flipped)
        numbered = [(line.number, line.data) for line in iter_lines(journal_file(journal))]
        assert (1, b"first") in numbered
        assert b"second" not in dict(numbered).values()
        assert numbered[-1][1] == b"third"


@pytest.mark.parametrize("instead", [b"\x0b", b"#", b""])
@pytest.mark.parametrize("is_ended", [False, True])
def test_a_newline_that_was_altered_or_lost_costs_no_line(
    tmp_path: Path, instead: bytes, is_ended: bool
) -> None:
    journal, path = Journal(tmp_path / "outbox"), tmp_path / "file"
    texts = [b"first", b'"quotes %b here"' % digest_of(b"").encode(), b"third", b"last"]
    for text in texts:
        journal.append(text)
    lines = journal_file(journal).read_bytes().splitlines(keepends=True)
    for altered in range(2 ** len(lines)):
        ends = [instead if altered >> n & 1 else b"\n" for n in range(len(lines))]
        path.write_bytes(b"".join(line[:-1] + end for line, end in zip(lines, ends, strict=True)))
        found = list(iter_lines(path, is_ended=is_ended))
        assert [line.data for line in found] == texts
        assert [line.number for line in found] == [1, 2, 3, 4]
        assert all(line.raw + b"\n" in lines for line in found)


def test_what_is_damaged_beside_an_altered_newline_is_put_away_alone(tmp_path: Path) -> None:
    journal, path = Journal(tmp_path / "outbox"), tmp_path / "file"
    for text in (b"first", b"second", b"third"):
        journal.append(text)
    first, second, third = journal_file(journal).read_bytes().splitlines()
    for damaged in (second[:-1] + b"#", second[:40] + b"0" + second[41:], second[:-1]):
        path.write_bytes(b"#".join((first, damaged, third)) + b"\n")
        found = [(line.raw, line.data) for line in iter_lines(path)]
        assert found == [(first, b"first"), (damaged + b"#", None), (third, b"third")]


def test_a_torn_append_behind_an_altered_newline_takes_no_line_with_it(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "outbox")
    for text in (b"first", b"second"):
        journal.append(text)
    first, second = journal_file(journal).read_bytes().splitlines()
    for torn in (b"", *(second[:length] for length in range(1, len(second)))):
        journal_file(journal).write_bytes(first + b"#" + second + b"#" + torn)
        assert told(journal) == [b"first", b"second"]
        journal.append(b"third")
        assert told(journal) == [b"first", b"second", b"third"]


def test_damage_that_quotes_many_digests_is_not_read_for_each(tmp_path: Path) -> None:
    path = tmp_path / "file"
    whole = b"first"
    path.write_bytes(
        b"%b " % digest_of(b"").encode() * 50 + b"%b %b\n" % (digest_of(whole).encode(), whole)
    )
    assert [line.data for line in iter_lines(path)] == [None]


def test_attempts_that_come_to_nothing_seal_one_file_among_them(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "outbox")
    for number in range(3):
        journal.append(b"%d" % number)
        assert [path.name for path in journal.seal()] == ["sealed-000000000001"]
    assert told(journal) == [b"0", b"1", b"2"]
    journal.remove(journal.seal()[0])
    assert [[line.data for line in iter_lines(path)] for path in journal.seal()] == [[b"1", b"2"]]


def test_a_writer_that_is_killed_at_any_moment_leaves_what_it_acknowledged(tmp_path: Path) -> None:
    moment = 0
    journal = Journal(tmp_path / "outbox")
    acknowledged: list[bytes] = []

    def append() -> None:
        journal.append(b"%d" % moment)
        (tmp_path / f"ack-{moment}").touch()

    moments = count_moments(append)
    for moment in range(1, moments + 1, max(1, moments // 250)):
        run_and_kill(append, moment)
        if (tmp_path / f"ack-{moment}").exists():
            acknowledged.append(b"%d" % moment)
    journal.append(b"last")
    seen = told(journal)
    assert None not in seen
    assert len(set(seen)) == len(seen)
    assert [one for one in seen if one in {*acknowledged, b"last"}] == [*acknowledged, b"last"]
    assert len(acknowledged) < moment


def test_processes_append_while_another_takes_away_and_each_line_comes_once_and_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_journal, "MOST_BYTES", 400)
    journal, writers, each = Journal(tmp_path / "outbox"), 4, 60
    children: list[int] = []
    for writer in range(writers):
        child = os.fork()
        if child == 0:
            try:
                for number in range(each):
                    journal.append(b"%d %d" % (writer, number))
                os._exit(0)
            finally:
                os._exit(1)
        children.append(child)
    seen: list[bytes | None] = []
    while len(seen) < writers * each:
        with journal.delivering(wait=True):
            for path in journal.seal():
                seen += [line.data for line in iter_lines(path)]
                journal.remove(path)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 4
    for writer in range(writers):
        mine = [one for one in seen if one and one.startswith(b"%d " % writer)]
        assert mine == [b"%d %d" % (writer, number) for number in range(each)]
    assert not journal.is_waiting()


def test_a_full_disk_leaves_no_half_line(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1 << 20) as disk:
        journal = Journal(disk.folder / "outbox")
        journal.append(b"first")
        disk.fill()
        with pytest.raises(OSError, match="No space left"):
            journal.append(b"x" * 100_000)
        disk.free()
        journal.append(b"second")
        assert told(journal) == [b"first", b"second"]


def test_one_process_delivers_at_a_time(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "outbox")
    with journal.delivering(wait=False) as mine:
        assert mine
        with journal.delivering(wait=False) as other:
            assert not other


def test_an_empty_journal_of_a_killed_writer_is_removed(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "outbox")
    journal.waiting.mkdir(parents=True)
    journal_file(journal).touch()
    assert journal.seal() == []
    journal.tidy()
    assert not journal.is_waiting()


@given(
    TEXT,
    st.binary(max_size=50),
    st.none() | TEXT.filter(bool),
    st.integers(0, 2**70),
    st.booleans(),
)
def test_an_entry_is_read_back_as_it_was(
    text: str, content: bytes, key: str | None, number: int, is_shown: bool
) -> None:
    stream = EndedStream(role="stdout", content=content, produced_size=number, loss_reason=text)
    kept = SpooledContent(digest=text, size=number, line_count=number, reason=key)
    spooled = EndedStream(role="stderr", content=b"", path=key, spooled=kept)
    assert spooled.facts()["size"] == number
    streams = (stream, spooled)
    call = CallEnded(
        session=NAME, tool_name=text, complete_output=text, streams=streams, idempotency_key=key
    )
    assert call.all_streams() == streams
    shown = ShownResult(
        state="success",
        facts={"exit_status": number},
        began_at=call.at,
        ended_at=call.at,
        is_witnessed=True,
        canonical=text,
        receipt=text,
        renderer=("command", 1),
        omissions=({"field": text},),
        artifacts=((text, text),),
        published=(spooled,),
    )
    entries: list[Entry] = [
        SessionOpened(title=text, parent=NAME, environment={text: number}, idempotency_key=key),
        MessageAdded(session=NAME, role="user", text=text),
        CallStarted(
            session=NAME,
            tool_name=text,
            family=text,
            policy=text,
            arguments_raw=text,
            call_id=key,
            alone={text: number} if is_shown else None,
        ),
        CallEnded(session=NAME, tool_name="x", complete_output="{}", shown=shown)
        if is_shown
        else call,
        SessionEnded(session=NAME),
    ]
    for entry in entries:
        data = entry_json(entry)
        assert b"\n" not in data
        assert read_entry(data) == entry


@pytest.mark.parametrize(
    "data",
    [
        b"[]",
        b"{",
        b'{"v":0,"kind":"message"}',
        b'{"v":2,"kind":"message"}',
        b'{"v":1,"kind":"message","session":"nobody"}',
        b'{"v":1,"kind":"message","colour":"red"}',
        b'{"v":1,"kind":["message"]}',
    ],
)
def test_what_is_no_entry_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidRecordError):
        read_entry(data)


@pytest.mark.parametrize("data", [b'{"v":5,"kind":"message"}', b'{"v":1,"kind":"dance"}'])
def test_what_a_newer_program_may_have_written_is_told_apart(data: bytes) -> None:
    with pytest.raises(NewerEntryError):
        read_entry(data)


def test_what_programs_before_cannot_read_is_of_a_version_that_they_leave() -> None:
    spooled = SpooledContent(digest=digest_of(b"x"), size=1, line_count=1)
    stream = EndedStream(role="stdout", content=b"", spooled=spooled)
    start = CallStarted(session=NAME, tool_name="x", family="generic", policy="{}")
    call = CallEnded(session=NAME, tool_name="x", complete_output="{}")
    found = [
        json.loads(entry_json(entry))["v"]
        for entry in (SessionOpened(), call, replace(call, streams=(stream,)), start)
    ]
    assert found == [1, 1, 2, 2]
    for line in (entry_json(start), entry_json(start).replace(b'"v":2', b'"v":1')):
        assert read_entry(line) == start


def test_a_producer_imports_no_database_and_no_models(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from uuid import UUID
from tooltrail.store.outbox import *
from tooltrail.store.outbox import EndedStream, complete_output_json
outbox = Outbox.of(Path(sys.argv[1]), UUID(int=0))
session = SessionOpened(title="\\ud800")
outbox.append(session)
outbox.append(CallEnded(session=session.id, tool_name="x",
    complete_output=complete_output_json("x", "done"),
    streams=(EndedStream(role="stdout", content=b"\\xff"),)))
heavy = {"sqlalchemy", "pydantic", "pydantic_core", "alembic", "psycopg", "zstandard", "fsspec"}
print(sorted(heavy & set(sys.modules)))
"""
    command = [sys.executable, "-c", code, str(tmp_path)]
    assert subprocess.run(command, capture_output=True, check=True).stdout == b"[]\n"
    journal = Journal(tmp_path / f"outbox-{UUID(int=0)}")
    assert [type(read_entry(data or b"")) for data in told(journal)] == [SessionOpened, CallEnded]


def test_a_signal_that_records_amid_an_append_is_refused_and_does_not_wait_for_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path / "outbox")
    refused: list[OSError] = []

    def record_more(_: int, __: object) -> None:
        try:
            journal.append(b"amid")
        except OSError as error:
            refused.append(error)

    def interrupted(descriptor: int) -> None:
        os.kill(os.getpid(), signal.SIGUSR1)
        os.fsync(descriptor)

    before = signal.signal(signal.SIGUSR1, record_more)
    monkeypatch.setattr(os, "fdatasync", interrupted)
    try:
        journal.append(b"first")
    finally:
        signal.signal(signal.SIGUSR1, before)
    monkeypatch.undo()
    journal.append(b"second")
    assert told(journal) == [b"first", b"second"]
    assert [error.errno for error in refused] == [errno.EDEADLK]


def is_locked(path: Path) -> bool:
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@contextmanager
def appending(journal: Journal, data: bytes, monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """Another thread has the journal locked, and is about to make a line durable."""
    is_in, may_go_on = threading.Event(), threading.Event()

    def held_up(descriptor: int) -> None:
        is_in.set()
        assert may_go_on.wait(LONG)
        os.fsync(descriptor)

    with monkeypatch.context() as patch, ThreadPoolExecutor(1) as pool:
        patch.setattr(os, "fdatasync", held_up)
        future = pool.submit(journal.append, data)
        try:
            assert is_in.wait(LONG)
            patch.undo()
            yield
        finally:
            may_go_on.set()
            future.result(LONG)


def test_a_child_that_is_forked_amid_an_append_leaves_the_lock_to_its_parent_and_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path / "outbox")
    begins_read, begins_write = os.pipe()

    def begin_and_append() -> None:
        os.write(begins_write, b".")
        journal.append(b"child")

    with appending(journal, b"parent", monkeypatch):
        child = in_fork(begin_and_append)
        assert os.read(begins_read, 1)
        assert is_locked(journal_file(journal))
        assert os.waitpid(child, os.WNOHANG) == (0, 0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert told(journal) == [b"parent", b"child"]
    for descriptor in (begins_read, begins_write):
        os.close(descriptor)


@pytest.mark.parametrize("is_delivering", [False, True])
def test_a_child_does_not_keep_the_locks_of_a_parent_that_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_delivering: bool
) -> None:
    journal = Journal(tmp_path / "outbox")
    forked_read, forked_write = os.pipe()
    end_read, end_write = os.pipe()

    def wait_for_the_end() -> None:
        os.close(end_write)
        os.read(end_read, 1)

    def fork_and_be_killed() -> None:
        with ExitStack() as stack:
            if is_delivering:
                with ThreadPoolExecutor(1) as pool:
                    lock = journal.delivering(wait=False)
                    assert pool.submit(stack.enter_context, lock).result(LONG)
            else:
                stack.enter_context(appending(journal, b"parent", monkeypatch))
            in_fork(wait_for_the_end)
            os.write(forked_write, b".")
            os.kill(os.getpid(), signal.SIGKILL)

    journal.append(b"first")
    parent = in_fork(fork_and_be_killed)
    os.waitpid(parent, 0)
    assert os.read(forked_read, 1)
    locked = journal.folder / "delivering" if is_delivering else journal_file(journal)
    try:
        # The child gives it up as soon as it runs.
        until(lambda: not is_locked(locked))
    finally:
        for descriptor in (end_read, end_write, forked_read, forked_write):
            os.close(descriptor)


def test_what_a_thread_forks_amid_its_own_append_adds_nothing_and_leaves_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path / "outbox")
    children: list[int] = []

    def fork_amid(descriptor: int) -> None:
        monkeypatch.undo()
        child = os.fork()
        if child:
            children.append(child)
            os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
            assert is_locked(journal_file(journal))
        os.fdatasync(descriptor)

    me = os.getpid()
    monkeypatch.setattr(os, "fdatasync", fork_amid)
    try:
        journal.append(b"once")
    except OSError as error:
        if os.getpid() != me:
            os._exit(error.errno == errno.EINVAL)
        raise
    finally:
        if os.getpid() != me:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 1
    assert told(journal) == [b"once"]
    assert not is_locked(journal_file(journal))


def test_who_holds_the_lock_and_is_stopped_keeps_nobody_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path / "outbox")
    journal.append(b"first")
    holds_read, holds_write = os.pipe()

    def hold() -> None:
        with journal_file(journal).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            os.write(holds_write, b".")
            os.kill(os.getpid(), signal.SIGSTOP)

    holder = in_fork(hold)
    assert os.read(holds_read, 1)
    with monkeypatch.context() as patch:
        patch.setattr(flocks, "MOST_WAIT_S", 0.02)
        with pytest.raises(TimeoutError, match="its lock was not to be had"):
            journal.append(b"refused")
    os.kill(holder, signal.SIGKILL)
    os.waitpid(holder, 0)
    journal.append(b"second")
    assert told(journal) == [b"first", b"second"]
    for descriptor in (holds_read, holds_write):
        os.close(descriptor)


def in_fork(run: Callable[[], object]) -> int:
    """Fork, and run something in the child; its id."""
    child = os.fork()
    if not child:
        status = 1
        try:
            run()
            status = 0
        finally:
            os._exit(status)
    return child


def test_a_file_that_looks_like_the_one_before_was_not_looked_at_yet(tmp_path: Path) -> None:
    path = tmp_path / "sealed"
    progress = Progress()
    for data in (b'"first!"', b'"second"'):
        path.write_bytes(b"%b %b\n" % (digest_of(data).encode(), data))
        os.utime(path, ns=(0, 0))
        progress.begin(path)
        assert not progress.is_done(1)
        progress.note([1])
        progress.begin(path)
        assert progress.is_done(1)


def test_progress_knows_each_line_in_whatever_order_they_are_done(tmp_path: Path) -> None:
    path = tmp_path / "sealed"
    path.write_bytes(b"some\n")
    progress = Progress()
    progress.begin(path)
    done: set[int] = set()
    for numbers in ([2, 5], [1], [4], [3, 7]):
        progress.note(numbers)
        done.update(numbers)
        assert {number for number in range(1, 10) if progress.is_done(number)} == done


@pytest.mark.parametrize("damage", [b"", b"#"])
def test_the_end_of_a_file_to_which_nobody_appends_is_no_torn_append(
    tmp_path: Path, damage: bytes
) -> None:
    journal = Journal(tmp_path / "outbox")
    for data in (b"first", b"second"):
        journal.append(data)
    (sealed,) = journal.seal()
    sealed.write_bytes(sealed.read_bytes()[:-3] + damage)
    assert [line.data for line in iter_lines(sealed, is_ended=True)] == [b"first", None]
    assert [line.data for line in iter_lines(sealed)] == [b"first"]


def test_what_is_no_file_of_the_journal_is_left_alone(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "outbox")
    journal.append(b"first")
    (journal.waiting / "sealed-000000000001~").touch()
    (sealed,) = journal.seal()
    assert sealed.name == "sealed-000000000001"


def test_a_file_that_is_sealed_between_the_list_and_the_look_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path / "outbox")
    for data in (b"1", b"2"):
        journal.append(data)
    listed, moments = journal.files, [journal.seal]

    def list_and_go_on() -> list[Path]:
        files = listed()
        if moments:
            moments.pop()()
        return files

    monkeypatch.setattr(journal, "files", list_and_go_on)
    assert [line.data for line in journal.iter_lines()] == [b"1", b"2"]
    assert [line.data for line in journal.iter_lines()] == [b"1", b"2"]


def test_a_name_that_leads_nowhere_keeps_nobody_reading(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "outbox")
    journal.append(b"1")
    journal.seal()
    (journal.waiting / "journal").symlink_to(tmp_path / "nowhere")
    assert [line.data for line in journal.iter_lines()] == [b"1"]
