"""Facts of many tasks are appended together, once, and each task gets the answer to its own."""

import asyncio
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.ended import made, shell_call
from tests.support.killing import end_of, fork
from tests.support.recording import ingested_rows

from tooltrail.journal import Acknowledge, Cursor, Entry, Frame, read_journal
from tooltrail.journal.ended_calls import EndedCall
from tooltrail.journal.session import Session
from tooltrail.records import InvalidRecordError, Message, UnavailableError
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


def test_a_child_that_is_forked_while_another_thread_starts_a_task_records_by_itself(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = store.open_session()
    is_starting, may_go_on = threading.Event(), threading.Event()

    def say() -> None:
        asyncio.run(session.amessage(Message.of("user", "hello")))

    class SlowThread(threading.Thread):
        def start(self) -> None:
            if self.name == "tooltrail":  # other libraries start threads in a forked child
                is_starting.set()
                may_go_on.wait()
            super().start()

    def say_in_child() -> None:
        signal.alarm(10)
        monkeypatch.undo()
        say()

    other = threading.Thread(target=say)
    monkeypatch.setattr(threading, "Thread", SlowThread)
    other.start()
    is_starting.wait()
    child = fork(say_in_child)
    may_go_on.set()
    other.join()
    assert end_of(child) == 0
    assert ingested_rows(store, "SELECT count(*) FROM messages") == [(2,)]
