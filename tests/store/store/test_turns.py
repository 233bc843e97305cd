"""Whoever writes to an SQLite file waits for its turn: for so long, and for the living alone."""

import errno
import fcntl
import os
import signal
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path
from typing import NoReturn

import pytest
from tests.support.processes import NOBODY, run_python, start_worker
from tests.support.template_stores import make_store
from tests.support.waiting import until

from tooltrail.records import UnavailableError
from tooltrail.store import OnUnavailable, Store, open_store
from tooltrail.store._engines import sqlite_connections as connections
from tooltrail.store._engines import turns as _turns
from tooltrail.store._engines.turns import WriteTurns

LONG = 60.0


@pytest.fixture
def on_unavailable() -> OnUnavailable:
    """Errors are what is tried."""
    return "raise"


def lock_of(store: Store) -> Path:
    return Path(f"{store.database.target}-lock")


def write(store: Store) -> None:
    store.open_session()


def is_free(path: Path) -> bool:
    """Whether somebody who comes now is let in."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


@contextmanager
def held(path: Path) -> Generator[int]:
    """Somebody else has the lock, until the block ends; the descriptor."""
    descriptor = os.open(path, os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def a_holder(store: Store) -> Generator[subprocess.Popen[bytes]]:
    """A process that has begun to write."""
    process = start_worker("hold", str(store.database.target), takes_input=True)
    assert process.stdout is not None
    assert process.stdout.readline() == b"holding\n"
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def is_waited_for(store: Store) -> bool:
    turns = store.database.turns
    file = None if turns is None else turns._opened  # pyright: ignore[reportPrivateUsage]  nothing else tells it
    return file is not None and file._is_blocking  # pyright: ignore[reportPrivateUsage]


def waiting_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "tooltrail-turns"]


@pytest.fixture
def hasty(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store whose writers do not wait for long; it has been written to."""
    write(sqlite_store)
    monkeypatch.setattr(connections, "BUSY_TIMEOUT_S", 0.2)
    return sqlite_store


def test_a_write_has_the_lock_as_long_as_it_lasts(sqlite_store: Store) -> None:
    with sqlite_store.database.write():
        assert not is_free(lock_of(sqlite_store))
    assert is_free(lock_of(sqlite_store))
    with pytest.raises(KeyError), sqlite_store.database.write():
        raise KeyError
    assert is_free(lock_of(sqlite_store))


def test_whoever_comes_while_another_writes_writes_after_it(sqlite_store: Store) -> None:
    write(sqlite_store)
    with ThreadPoolExecutor(1) as pool:
        with held(lock_of(sqlite_store)):
            waiting = pool.submit(write, sqlite_store)
            until(lambda: bool(waiting_threads()))
            assert not waiting.done()
        waiting.result(LONG)
    assert sqlite_store.reader.counts().sessions == 2


def test_who_reads_waits_for_nobody(hasty: Store) -> None:
    with held(lock_of(hasty)):
        assert hasty.reader.counts().sessions == 1


def test_a_holder_that_was_stopped_makes_the_store_unavailable(hasty: Store) -> None:
    with a_holder(hasty) as holder:
        os.kill(holder.pid, signal.SIGSTOP)
        with pytest.raises(UnavailableError, match="it is locked by another process"):
            write(hasty)
        os.kill(holder.pid, signal.SIGCONT)
        holder.communicate()
        assert holder.returncode == 0
    until(lambda: is_free(lock_of(hasty)))
    write(hasty)
    assert hasty.reader.counts().sessions == 2


def test_a_holder_that_is_killed_gives_its_turn_to_who_waits(sqlite_store: Store) -> None:
    write(sqlite_store)
    with a_holder(sqlite_store) as holder, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(write, sqlite_store)
        until(lambda: bool(waiting_threads()))
        holder.kill()
        waiting.result(LONG)


def test_a_turn_that_comes_too_late_is_given_back(hasty: Store) -> None:
    with held(lock_of(hasty)):
        for _ in range(3):
            with pytest.raises(UnavailableError, match="it is locked by another process"):
                write(hasty)
        assert len(waiting_threads()) == 1
    until(lambda: is_free(lock_of(hasty)))
    write(hasty)


def test_a_wait_whose_caller_has_gone_serves_the_next_one(
    hasty: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ThreadPoolExecutor(1) as pool:
        with held(lock_of(hasty)):
            with pytest.raises(UnavailableError):
                write(hasty)
            monkeypatch.setattr(connections, "BUSY_TIMEOUT_S", LONG)
            waiting = pool.submit(write, hasty)
            assert len(waiting_threads()) == 1
        waiting.result(LONG)
    assert is_free(lock_of(hasty))


def test_a_thread_that_has_nothing_to_wait_for_any_more_goes(hasty: Store) -> None:
    with held(lock_of(hasty)), pytest.raises(UnavailableError):
        write(hasty)
    until(lambda: not waiting_threads())
    with held(lock_of(hasty)), pytest.raises(UnavailableError):
        write(hasty)
    hasty.close()
    until(lambda: not waiting_threads())


def test_one_thread_waits_for_turn_after_turn(
    hasty: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_turns, "IDLE_S", LONG)
    monkeypatch.setattr(connections, "BUSY_TIMEOUT_S", LONG)
    with ThreadPoolExecutor(1) as pool:
        for number in range(3):
            with held(lock_of(hasty)):
                waiting = pool.submit(write, hasty)
                until(lambda: is_waited_for(hasty))
                assert len(waiting_threads()) == 1
            waiting.result(LONG)
            assert hasty.reader.counts().sessions == 2 + number
    hasty.close()
    until(lambda: not waiting_threads())


def test_threads_of_one_process_wait_for_each_other_as_long(hasty: Store) -> None:
    with (
        ThreadPoolExecutor(1) as pool,
        hasty.database.write(),
        pytest.raises(UnavailableError, match="it is locked by another process"),
    ):
        pool.submit(write, hasty).result(LONG)


def test_a_forked_child_does_not_have_the_turn_of_its_parent(hasty: Store) -> None:
    ready, go = os.pipe(), os.pipe()
    try:
        with hasty.database.write():
            child = os.fork()
            if not child:
                _try_and_stay(hasty, ready[1], go)
            assert os.read(ready[0], 5) == b"tried"
            assert not is_free(lock_of(hasty))
        # The child lives, and keeps nothing; what waited for it may have the lock for a moment.
        until(lambda: is_free(lock_of(hasty)))
        assert os.waitpid(child, os.WNOHANG) == (0, 0)
    finally:
        for descriptor in (*ready, *go):
            os.close(descriptor)
    assert os.waitpid(child, 0)[1] == 0


def _try_and_stay(store: Store, ready: int, go: tuple[int, int]) -> NoReturn:
    """As a child: try to write in vain, and end with the parent's end of a pipe."""
    status = 1
    try:
        os.close(go[1])
        with pytest.raises(UnavailableError):
            write(store)
        os.write(ready, b"tried")
        os.read(go[0], 1)
        status = 0
    finally:
        os._exit(status)


def test_a_child_that_leaves_the_block_of_its_parent_leaves_the_lock_to_it(
    sqlite_store: Store,
) -> None:
    turns = sqlite_store.database.turns
    assert turns is not None
    child = -1
    try:
        with turns.turn(time.monotonic() + LONG):
            child = os.fork()
            if child:
                assert os.waitpid(child, 0)[1] == 0
                assert not is_free(lock_of(sqlite_store))
    except BaseException:
        if not child:
            os._exit(1)
        raise
    if not child:
        os._exit(0)
    assert is_free(lock_of(sqlite_store))


def test_what_a_child_forgets_its_block_does_not_touch_any_more(sqlite_store: Store) -> None:
    turns = sqlite_store.database.turns
    assert turns is not None
    with turns.turn(time.monotonic() + LONG):
        assert len(descriptors()) == 1
        _turns._forget_parent()  # pyright: ignore[reportPrivateUsage]  what a fork calls
        assert descriptors() == []
        write(sqlite_store)
    assert len(descriptors()) == 1
    assert is_free(lock_of(sqlite_store))


def test_a_child_of_a_process_that_waits_can_write(sqlite_store: Store) -> None:
    write(sqlite_store)
    with ThreadPoolExecutor(1) as pool:
        with held(lock_of(sqlite_store)) as descriptor:
            waiting = pool.submit(write, sqlite_store)
            until(lambda: bool(waiting_threads()))
            child = os.fork()
            if not child:
                status = 1
                try:
                    os.close(descriptor)
                    write(sqlite_store)
                    status = 0
                finally:
                    os._exit(status)
        waiting.result(LONG)
    assert os.waitpid(child, 0)[1] == 0
    assert sqlite_store.reader.counts().sessions == 3


def descriptors() -> list[Path]:
    """Locks that this process has open."""
    found: list[Path] = []
    for name in Path("/dev/fd").iterdir():
        with suppress(FileNotFoundError):  # that of the listing itself
            found.append(name.readlink())
    return [name for name in found if name.name.endswith("-lock")]


def test_a_store_that_is_closed_keeps_no_file_open(sqlite_store: Store) -> None:
    write(sqlite_store)
    assert len(descriptors()) == 1
    with sqlite_store.database.write():
        sqlite_store.database.close()
        assert not is_free(lock_of(sqlite_store))
    assert descriptors() == []
    write(sqlite_store)
    assert len(descriptors()) == 1


def test_the_lock_is_for_the_same_people_as_the_database(sqlite_store: Store) -> None:
    database = Path(str(sqlite_store.database.target))
    for mode, umask in product((0o600, 0o640, 0o660), (0o022, 0o077)):
        lock_of(sqlite_store).unlink(missing_ok=True)
        database.chmod(mode)
        before = os.umask(umask)
        try:
            write(sqlite_store)
        finally:
            os.umask(before)
        assert stat.S_IMODE(lock_of(sqlite_store).stat().st_mode) == mode


def test_a_lock_that_was_removed_is_made_anew(sqlite_store: Store) -> None:
    write(sqlite_store)
    lock_of(sqlite_store).unlink()
    with sqlite_store.database.write():
        assert not is_free(lock_of(sqlite_store))


@pytest.mark.parametrize("what", ["folder", "link", "pipe"])
def test_what_is_no_lock_is_left_alone(sqlite_store: Store, tmp_path: Path, what: str) -> None:
    lock = lock_of(sqlite_store)
    lock.unlink(missing_ok=True)
    if what == "folder":
        lock.mkdir()
    elif what == "link":
        lock.symlink_to(tmp_path / "elsewhere")
    else:
        os.mkfifo(lock)
    write(sqlite_store)
    assert not (tmp_path / "elsewhere").exists()


def test_where_the_file_system_has_no_locks_sqlite_waits_by_itself(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: int, __: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    write(sqlite_store)
    assert sqlite_store.reader.counts().sessions == 1


def test_where_no_thread_is_to_be_had_sqlite_waits_by_itself(
    hasty: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with held(lock_of(hasty)):
        write(hasty)
    assert hasty.reader.counts().sessions == 2


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that another user may write to, which pytest's own are not."""
    with tempfile.TemporaryDirectory(prefix="tooltrail-") as name:
        make_store(Path(name) / "trail.db").close()
        for path in (Path(name), *Path(name).rglob("*")):
            path.chmod(0o777 if path.is_dir() else 0o666)
        yield Path(name)


WRITE = """
import fcntl, os, sys
from tooltrail.store import open_store

with open_store(sys.argv[1]) as store, store.database.write():
    descriptor = os.open(sys.argv[1] + "-lock", os.O_RDONLY) if sys.argv[2] == "try" else -1
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB) if descriptor >= 0 else None
        print("written")
    except BlockingIOError:
        print("written in its turn")
"""


def test_a_lock_that_others_made_is_taken_by_who_can_read_it(open_folder: Path) -> None:
    lock = open_folder / "trail.db-lock"
    lock.touch(mode=0o644)
    said, _ = run_python(WRITE, str(open_folder / "trail.db"), "try", user=NOBODY)
    assert said == "written in its turn\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="a file of somebody else takes root to make")
def test_a_lock_that_others_keep_to_themselves_is_done_without(open_folder: Path) -> None:
    lock = open_folder / "trail.db-lock"
    lock.touch(mode=0o600)
    with held(lock):
        said, _ = run_python(WRITE, str(open_folder / "trail.db"), "write", user=NOBODY)
    assert said == "written\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="a file of somebody else takes root to make")
@pytest.mark.parametrize(("mode", "is_locked"), [(0o644, True), (0o600, False)])
def test_to_lock_a_file_of_others_takes_the_right_to_read_it(
    open_folder: Path, *, mode: int, is_locked: bool
) -> None:
    lock = open_folder / "trail.db-lock"
    lock.touch(mode=mode)
    os.seteuid(NOBODY)
    try:
        with WriteTurns(open_folder / "trail.db").turn(time.monotonic() + LONG):
            assert len(descriptors()) == is_locked
    finally:
        os.seteuid(0)


@pytest.mark.skipif(os.geteuid() != 0, reason="files are given away by root alone")
def test_what_root_makes_belongs_to_the_owner_of_the_database(open_folder: Path) -> None:
    os.chown(open_folder / "trail.db", NOBODY, NOBODY)
    with open_store(open_folder / "trail.db") as store:
        write(store)
    status = (open_folder / "trail.db-lock").stat()
    assert (status.st_uid, status.st_gid) == (NOBODY, NOBODY)


GROUP = 60_000
OWNER = 60_001


@pytest.mark.skipif(os.geteuid() != 0, reason="it takes root to become several users")
def test_who_of_a_group_comes_first_makes_the_lock_for_all_of_it(open_folder: Path) -> None:
    database = open_folder / "trail.db"
    os.chown(database, OWNER, GROUP)
    database.chmod(0o660)
    child = os.fork()
    if not child:
        status = 1
        try:
            os.setgroups([GROUP])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os.umask(0o077)
            with WriteTurns(database).turn(time.monotonic() + LONG):
                status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    made = Path(f"{database}-lock").stat()
    assert (made.st_uid, made.st_gid, stat.S_IMODE(made.st_mode)) == (NOBODY, GROUP, 0o660)


def test_of_a_folder_that_is_gone_nothing_is_locked(tmp_path: Path) -> None:
    turns = WriteTurns(tmp_path / "gone" / "trail.db")
    with turns.turn(time.monotonic()):
        assert not (tmp_path / "gone").exists()


def test_in_a_folder_that_cannot_be_written_no_lock_is_made(open_folder: Path) -> None:
    open_folder.chmod(0o555)
    try:
        code = WRITE.replace("store.database.write()", "store.database.read()")
        said, _ = run_python(code, str(open_folder / "trail.db"), "read", user=NOBODY)
        with_turn = (
            "from pathlib import Path\nfrom tooltrail.store._engines.turns import WriteTurns\n"
        )
        with_turn += "with WriteTurns(Path(sys.argv[1])).turn(0.0): print('done without')"
        done, _ = run_python(with_turn, str(open_folder / "trail.db"), user=NOBODY)
    finally:
        open_folder.chmod(0o777)
    assert (said, done) == ("written\n", "done without\n")
    assert not (open_folder / "trail.db-lock").exists()
