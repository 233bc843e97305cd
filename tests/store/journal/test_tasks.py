"""Facts of many tasks and threads are appended together, once, and each one gets its own answer."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.support.ended import made, shell_call
from tests.support.journals import check_acknowledged, entry
from tests.support.recording import ingested_rows

from tooltrail.journal import Acknowledge, Cursor, Entry, Frame, JournalLog, read_journal
from tooltrail.journal.ended_calls import EndedCall
from tooltrail.journal.session import Session
from tooltrail.journal.tasks import AppendingThread
from tooltrail.records import InvalidRecordError, UnavailableError
from tooltrail.store import Store, create_store

ROWS = "SELECT count(*) FROM invocations"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with create_store(tmp_path / "a.db", acknowledge="store") as opened:
        yield opened


def frame_count(store: Store) -> int:
    items = read_journal(store.spool / "journal", Cursor())
    return sum(isinstance(item, Frame) for item in items)


async def together(store: Store, outputs: dict[str, bytes]) -> list[object]:
    """Record calls with these keys from one task each; give what they got or what they raised."""
    session = Session.join(store.recorder, "s")

    async def record(key: str, output: bytes) -> Acknowledge:
        ended = EndedCall(shell_call(), made(output), idempotency_key=key.strip("+"))
        return (await session.arecord(ended)).acknowledged

    work = (record(key, output) for key, output in outputs.items())
    return await asyncio.gather(*work, return_exceptions=True)


def test_a_rejected_fact_fails_its_task_alone_and_no_fact_is_appended_twice(store: Store) -> None:
    asyncio.run(together(store, {"taken": b"first"}))
    before = frame_count(store)
    got = asyncio.run(together(store, {"a": b"", "taken": b"second", "b": b""}))
    assert [got[0], type(got[1]), got[2]] == ["store", InvalidRecordError, "store"]
    assert frame_count(store) == before + 3 * 2


def test_a_failed_sync_fails_every_task_and_nothing_is_appended_twice(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise UnavailableError("the disk failed")

    with monkeypatch.context() as patch:
        patch.setattr(store.recorder.log, "sync", fail)
        got = asyncio.run(together(store, {"a": b"", "b": b"", "c": b""}))
    assert {type(one) for one in got} == {UnavailableError}
    assert ingested_rows(store, ROWS) == [(3,)]
    assert frame_count(store) == 3 * 2


def test_a_task_whose_loop_was_closed_leaves_the_thread_working(store: Store) -> None:
    may_go_on = threading.Event()

    def make() -> tuple[list[Entry], None]:
        may_go_on.wait(60)
        raise InvalidRecordError("nobody waits for this")

    async def leave() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(store.recorder.append_async(make), 0.01)

    asyncio.run(leave())
    may_go_on.set()
    assert asyncio.run(together(store, {"a": b""})) == ["store"]


class Slow:
    """A journal whose appends wait for the test."""

    def __init__(self, folder: Path) -> None:
        self.log = JournalLog(folder)
        self.appending = AppendingThread(self.record, lambda _: "journal")
        self.may_go_on = threading.Event()
        self.has_begun = threading.Semaphore(0)
        self.sizes = list[int]()
        self.refused = list[Entry]()

    def record(self, entries: Sequence[Entry]) -> Sequence[Cursor]:
        self.sizes.append(len(entries))
        self.has_begun.release()
        assert self.may_go_on.wait(60)
        return self.log.record(entries)

    def record_in_threads(self, *entries: Entry) -> None:
        """Record each fact in a thread. The third and later ones wait for the second append."""

        def record(one: Entry) -> None:
            try:
                self.appending.record([one])
            except InvalidRecordError:
                self.refused.append(one)

        threads = [threading.Thread(target=record, args=(one,)) for one in entries]
        for thread in threads[:2]:  # one appends by itself, and one by the appending thread
            thread.start()
            assert self.has_begun.acquire(timeout=60)
        waiting = self.appending._jobs
        for count, thread in enumerate(threads[2:], 1):
            thread.start()
            while waiting.qsize() < count:
                thread.join(0.001)
        self.may_go_on.set()
        for thread in threads:
            thread.join()


def test_threads_that_record_during_an_append_are_appended_together(tmp_path: Path) -> None:
    slow = Slow(tmp_path)
    slow.record_in_threads(*[entry(f"p{number}", 0) for number in range(6)])
    assert slow.sizes == [1, 1, 4]
    assert slow.refused == []
    check_acknowledged(tmp_path, [(f"p{number}", 0) for number in range(6)])


def test_a_refused_fact_fails_its_thread_alone(tmp_path: Path) -> None:
    slow = Slow(tmp_path)
    entries = [entry(f"p{number}", 0) for number in range(6)]
    faulty = Entry(entries[4].fact.replaced(role=4))
    slow.record_in_threads(*entries[:4], faulty, entries[5])
    assert slow.sizes == [1, 1, 4, 1, 1, 1, 1]
    assert slow.refused == [faulty]
    check_acknowledged(tmp_path, [(f"p{number}", 0) for number in (0, 1, 2, 3, 5)])


def test_facts_are_recorded_where_no_thread_can_be_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Slow(tmp_path)
    first = threading.Thread(target=slow.appending.record, args=([entry("p0", 0)],))
    first.start()
    assert slow.has_begun.acquire(timeout=60)

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        slow.may_go_on.set()
        slow.appending.record([entry("p1", 0)])
    first.join()
    slow.record_in_threads(entry("p2", 0), entry("p3", 0))
    check_acknowledged(tmp_path, [(f"p{number}", 0) for number in range(4)])
