"""A process that forks shares its stores with the child, and neither loses what it records."""

import asyncio
import ctypes
import gc
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count, takewhile
from pathlib import Path
from types import FrameType

import pytest
from tests.support.ended import BASH, made
from tests.support.evidence import check_evidence
from tests.support.processes import run_python
from tests.support.template_stores import make_store

from tooltrail.records import UnavailableError
from tooltrail.store import Session, Store, look_up_newest, open_store
from tooltrail.store._engines import forks

LONG = 60


def in_child(run: Callable[[], None]) -> int:
    """Fork, and run something in the child, which says on standard error why it failed."""
    child = os.fork()
    if not child:
        _run_and_end(run)
    return child


def _run_and_end(run: Callable[[], None]) -> None:
    status = 1
    try:
        run()
        status = 0
    except BaseException:  # noqa: BLE001  the parent reads the exit status
        traceback.print_exc(file=sys.__stderr__)
    finally:
        os._exit(status)


def succeeded(child: int) -> bool:
    return os.waitpid(child, 0)[1] == 0


def count_of(store: Store) -> int:
    return sum(store.reader.counts().invocations.values())


@contextmanager
def reading(store: Store) -> Generator[None]:
    """Another thread reads, for as long as the block lasts."""
    reads, end = threading.Event(), threading.Event()

    def read() -> None:
        with store.database.read() as connection:
            connection.exec_driver_sql("SELECT count(*) FROM invocations").fetchall()
            reads.set()
            assert end.wait(LONG)

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(read)
        assert reads.wait(LONG)
        try:
            yield
        finally:
            end.set()
            future.result(LONG)


def test_a_child_goes_on_recording_when_its_parent_has_closed_the_store(
    tmp_path: Path,
) -> None:
    database = tmp_path / "trail.db"
    closed_read, closed_write = os.pipe()
    recorded_read, recorded_write = os.pipe()
    store = make_store(database)
    session = store.open_session()
    session.record(BASH, made(b"before\n"))

    def record() -> None:
        os.close(closed_write)
        session.record(BASH, made(b"at first\n"))
        os.write(recorded_write, b".")
        os.read(closed_read, 1)
        for n in range(3):
            session.record(BASH, made(b"%d\n" % n))
        os.write(recorded_write, b".")
        # Killed, it brings nothing home from wherever it went.
        os.read(closed_read, 1)

    child = in_child(record)
    os.close(closed_read)
    os.close(recorded_write)
    try:
        assert os.read(recorded_read, 1)
        store.close()
        os.write(closed_write, b".")
        assert os.read(recorded_read, 1)
        os.kill(child, 9)
        os.waitpid(child, 0)
    finally:
        for descriptor in (closed_write, recorded_read):
            os.close(descriptor)
    with open_store(database) as again:
        assert count_of(again) == 5
        check_evidence(again)


def test_children_that_are_forked_while_tasks_record_can_record(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forks, "WAIT_S", LONG)
    session = store.open_session()
    rounds, tasks = 6, 20

    def record(n: int) -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(session.record, BASH, made(b"child %d\n" % n)).result(LONG)

    async def fork_beside(n: int) -> int:
        begun = [asyncio.ensure_future(session.arecord(BASH, made())) for _ in range(tasks)]
        await asyncio.wait(begun, return_when=asyncio.FIRST_COMPLETED)
        child = in_child(lambda: record(n))
        await asyncio.gather(*begun)
        return child

    children = [asyncio.run(fork_beside(n)) for n in range(rounds)]
    assert [succeeded(child) for child in children] == [True] * rounds
    assert count_of(store) == rounds * (tasks + 1)
    check_evidence(store)


def test_threads_that_fork_at_once_do_so_one_after_the_other(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forks, "WAIT_S", LONG)
    session = sqlite_store.open_session()

    def fork(n: int) -> bool:
        session.record(BASH, made(b"%d\n" % n))
        return succeeded(in_child(lambda: _record(session)))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(fork, range(12), timeout=LONG))
    assert count_of(sqlite_store) == 24


def _record(session: Session) -> None:
    session.record(BASH, made(b"in the child\n"))


def do_nothing() -> None:
    pass


def is_signalled(file: Path, moment: int) -> bool:
    """Use a file, and at the n-th call of or in the code for that handle a signal, which forks."""
    calls = count(1)

    def handle(frame: FrameType, *_: object) -> None:
        if frame.f_code.co_filename == forks.__file__ and next(calls) == moment:
            sys.setprofile(None)
            with forks.no_fork(file):
                assert succeeded(in_child(do_nothing))

    sys.setprofile(handle)
    try:
        with forks.no_fork(file):
            pass
    finally:
        sys.setprofile(None)
    return next(calls) > moment


def test_a_signal_may_come_at_any_moment_and_who_handles_it_may_fork(tmp_path: Path) -> None:
    moments = takewhile(lambda moment: is_signalled(tmp_path / "trail.db", moment), count(1))
    assert len(list(moments)) > 10


def test_a_fork_waits_for_who_reads_and_may_read_more(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forks, "WAIT_S", LONG)
    session = sqlite_store.open_session()
    reads, begun = threading.Event(), threading.Event()

    def read_twice() -> int:
        with sqlite_store.database.read():
            reads.set()
            assert begun.wait(LONG)
            return count_of(sqlite_store)

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(read_twice)
        assert reads.wait(LONG)

        def wait_for(_holds: Callable[[], bool], _seconds: float) -> bool:
            begun.set()
            return _changed.__class__.wait_for(_changed, _holds, _seconds)

        _changed = forks._forks._changed  # pyright: ignore[reportPrivateUsage]  when a fork waits
        monkeypatch.setattr(_changed, "wait_for", wait_for)
        child = in_child(lambda: _record(session))
        assert future.result(LONG) == 0
    assert succeeded(child)
    assert count_of(sqlite_store) == 1


@pytest.mark.parametrize("on_unavailable", ["raise"])
def test_a_child_does_not_use_a_file_that_was_in_use(
    sqlite_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forks, "WAIT_S", 0.01)
    session = sqlite_store.open_session()
    session.record(BASH, made())
    file = str(sqlite_store.database.target)
    (tmp_path / "link.db").hardlink_to(file)

    def try_all() -> None:
        with pytest.raises(UnavailableError, match="start the process anew"):
            session.record(BASH, made())
        with pytest.raises(UnavailableError, match="start the process anew"):
            sqlite_store.reader.counts()
        with pytest.raises(UnavailableError, match="start the process anew"):
            open_store(tmp_path / "link.db")
        assert look_up_newest(file, limit=1) is None
        with make_store(tmp_path / "o.db", artifacts=str(tmp_path / "a")) as other:
            _record(other.open_session())
        sqlite_store.close()

    with reading(sqlite_store):
        child = in_child(try_all)
        assert succeeded(child)
        session.record(BASH, made())
    # Nobody uses it any more: it is closed for the next child, which goes on by itself.
    closed_read, closed_write = os.pipe()

    def go_on() -> None:
        os.close(closed_write)
        os.read(closed_read, 1)
        _record(session)
        os.kill(os.getpid(), 9)

    child = in_child(go_on)
    sqlite_store.close()
    gc.collect()
    os.close(closed_write)
    os.close(closed_read)
    os.waitpid(child, 0)
    with open_store(file) as again:
        assert count_of(again) == 3
        check_evidence(again)


def test_the_end_of_a_child_that_was_forked_by_who_reads_takes_no_log_away(tmp_path: Path) -> None:
    database = tmp_path / "trail.db"
    done_read, done_write = os.pipe()
    make_store(database).close()
    store = open_store(database)
    session = store.open_session()
    with store.database.read() as connection:
        connection.exec_driver_sql("SELECT count(*) FROM invocations").fetchall()
        child = os.fork()
        if not child:
            os.close(done_write)
            os.read(done_read, 1)
    if not child:
        gc.collect()
        os._exit(0)
    os.close(done_read)
    store.close()
    code = (
        "import os, sys, uuid; from tests.support.ended import BASH, made;"
        "from tooltrail.store import open_store;"
        "session = open_store(sys.argv[1]).join_session(uuid.UUID(sys.argv[2]));"
        "session.record(BASH, made()); os.kill(os.getpid(), 9)"
    )
    run_python(code, str(database), str(session.id), expected=-9)
    os.close(done_write)
    assert succeeded(child)
    with open_store(database) as again:
        assert count_of(again) == 1


def test_a_signal_that_comes_while_its_thread_forks_may_record(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forks, "WAIT_S", 0.2)
    session = sqlite_store.open_session()

    def handle(_number: int, _frame: FrameType | None) -> None:
        _record(session)

    before = signal.signal(signal.SIGALRM, handle)
    try:
        with reading(sqlite_store):
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            assert succeeded(in_child(do_nothing))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert count_of(sqlite_store) == 1


@pytest.mark.parametrize("on_unavailable", ["raise"])
def test_a_child_that_is_forked_by_who_reads_does_not_use_the_file(sqlite_store: Store) -> None:
    session = sqlite_store.open_session()

    def try_in_vain() -> None:
        with pytest.raises(UnavailableError, match="start the process anew"):
            _record(session)

    with sqlite_store.database.read():
        child = in_child(try_in_vain)
    assert succeeded(child)
    assert count_of(sqlite_store) == 0


@pytest.mark.parametrize("on_unavailable", ["raise"])
def test_a_child_of_a_program_that_forks_by_itself_does_not_use_what_was_open(
    sqlite_store: Store,
) -> None:
    session = sqlite_store.open_session()
    session.record(BASH, made())
    library = ctypes.PyDLL(None)
    child = library.fork()
    if not child:
        # As a server in C does, which says nothing to Python before.
        library.PyOS_AfterFork_Child()

        def try_in_vain() -> None:
            with pytest.raises(UnavailableError, match="start the process anew"):
                _record(session)

        _run_and_end(try_in_vain)
    assert succeeded(child)
    session.record(BASH, made())
    assert count_of(sqlite_store) == 2
    check_evidence(sqlite_store)
