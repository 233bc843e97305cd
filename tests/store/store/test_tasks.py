"""Tasks record without holding up their loop, and share the waits for the disk."""

import asyncio
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.support.ended import BASH, made
from tests.support.evidence import check_evidence

from tooltrail.records import IdempotencyConflictError, InvalidRecordError
from tooltrail.store import Finished, Store
from tooltrail.store._recording.group_commit import GroupCommit, Write
from tooltrail.store._recording.threads import THREADS

TASKS = 40


def writers() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name.startswith("tooltrail-writer")]


def test_tasks_record_at_once_and_each_gets_its_own(store: Store) -> None:
    session = store.open_session()

    async def all_of_them() -> list[Finished]:
        tasks = (session.arecord(BASH, made(b"%d\n" % n)) for n in range(TASKS))
        return await asyncio.gather(*tasks)

    told = asyncio.run(all_of_them())
    for n, one in enumerate(told):
        assert f"\n{n}\n" in one.receipt.text
        assert store.reader.invocation(one.invocation_id).summary.state == "success"
    assert 1 < len(writers()) <= THREADS
    assert len({one.invocation_id for one in told}) == TASKS
    check_evidence(store)
    store.close()
    assert writers() == []


def test_what_record_would_raise_the_task_raises(sqlite_store: Store) -> None:
    session = sqlite_store.open_session()

    async def attempts() -> None:
        await session.arecord(BASH, made(), idempotency_key="k")
        with pytest.raises(IdempotencyConflictError):
            await session.arecord(BASH, made(b"other"), idempotency_key="k")
        with pytest.raises(InvalidRecordError):
            await session.arecord(BASH, made(), idempotency_key="")

    asyncio.run(attempts())
    assert sqlite_store.reader.counts().invocations == {"success": 1}


def test_a_task_that_is_cancelled_leaves_a_whole_record_or_none(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first has begun and is recorded; the last waits for a thread and is not."""
    session = sqlite_store.open_session()
    come: list[Write[Any]] = []
    run = GroupCommit.run

    def note(group: GroupCommit, write: Write[Any]) -> object:
        come.append(write)
        return run(group, write)

    def until_all_have_come() -> None:
        while len(come) < THREADS:
            time.sleep(0.01)

    async def cancel_all() -> None:
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1) as pool:
            begun, release = threading.Event(), threading.Event()

            def hold() -> None:
                with sqlite_store.database.write():
                    begun.set()
                    release.wait()

            holder = loop.run_in_executor(pool, hold)
            await loop.run_in_executor(None, begun.wait)
            tasks = [
                asyncio.ensure_future(
                    session.arecord(BASH, made(b"%d\n" % n), idempotency_key=str(n))
                )
                for n in range(THREADS + 5)
            ]
            await loop.run_in_executor(None, until_all_have_come)
            for task in tasks:
                task.cancel()
            told = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(isinstance(one, asyncio.CancelledError) for one in told)
            release.set()
            await holder

    monkeypatch.setattr(GroupCommit, "run", note)
    asyncio.run(cancel_all())
    sqlite_store.close()  # waits for what has begun
    assert sqlite_store.reader.counts().invocations == {"success": THREADS}
    for n in range(THREADS + 5):
        session.record(BASH, made(b"%d\n" % n), idempotency_key=str(n))
    assert sqlite_store.reader.counts().invocations == {"success": THREADS + 5}
    check_evidence(sqlite_store)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own(sqlite_store: Store) -> None:
    session = sqlite_store.open_session()
    asyncio.run(session.arecord(BASH, made(b"parent\n")))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            asyncio.run(session.arecord(BASH, made(b"child\n")))
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    asyncio.run(session.arecord(BASH, made(b"parent again\n")))
    assert sqlite_store.reader.counts().invocations == {"success": 3}
    check_evidence(sqlite_store)


def test_a_store_that_was_closed_makes_threads_anew(sqlite_store: Store) -> None:
    session = sqlite_store.open_session()
    for _ in range(2):
        asyncio.run(session.arecord(BASH, made()))
        sqlite_store.close()
        assert writers() == []
    assert sqlite_store.reader.counts().invocations == {"success": 2}
