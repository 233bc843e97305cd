"""A pool has all its places again, whatever became of those who had them."""

import gc
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import psycopg
import pytest
import sqlalchemy
from sqlalchemy import create_engine
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from tests.support.ended import BASH, made
from tests.support.evidence import check_evidence
from tests.support.interrupting import interrupted_at

import tooltrail.store
from tooltrail.store import Finished, InvocationFilter, Session, Store
from tooltrail.store._engines import bounded_pool
from tooltrail.store._engines.bounded_pool import BoundedPool, placed

FOLDERS = [
    str(Path(module.__file__ or "").parent) for module in (tooltrail.store, sqlalchemy, psycopg)
]
EVERY = 11
"""Of the moments of a record one in so many is tried."""


def pool_of(store: Store) -> BoundedPool:
    pool = store.database.engine.pool
    assert isinstance(pool, BoundedPool)
    return pool


def test_a_place_that_nobody_has_any_more_is_free() -> None:
    pool = BoundedPool(lambda: None, pool_size=2)
    first, second = pool.take_place(0), pool.take_place(0)
    assert pool.free_count == 0
    with pytest.raises(PoolTimeoutError):
        pool.take_place(0)
    del first
    assert pool.free_count == 1
    with pytest.raises(KeyboardInterrupt):
        raise KeyboardInterrupt(second)
    del second
    assert pool.free_count == 2


def test_a_place_that_only_the_collector_would_find_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bounded_pool, "_PATIENCE_S", 0.001)
    pool = BoundedPool(lambda: None, pool_size=1)
    circle: list[object] = [pool.take_place(0)]
    circle.append(circle)
    gc.disable()
    try:
        del circle
        assert pool.free_count == 0
        assert pool.take_place(1) is not None
    finally:
        gc.enable()


def test_who_waits_for_a_place_gets_the_next_that_is_free() -> None:
    pool = BoundedPool(lambda: None, pool_size=1)
    place = [pool.take_place(0)]
    with ThreadPoolExecutor(4) as threads:
        waiting = [threads.submit(lambda: id(pool.take_place(60))) for _ in range(4)]
        place.clear()
        assert all(one.result(60) for one in waiting)
    assert pool.free_count == 1


def interrupt_plainly() -> None:
    raise KeyboardInterrupt


def test_an_error_that_an_interruption_led_to_is_told_as_that() -> None:
    engine = create_engine("sqlite://", poolclass=BoundedPool, pool_size=1)

    def interrupt() -> None:
        try:
            interrupt_plainly()
        finally:
            raise AssertionError("left half-way")

    with pytest.raises(KeyboardInterrupt), placed(engine, 0):
        interrupt()
    # Who records because of an interruption was not interrupted meanwhile.
    try:
        interrupt_plainly()
    except KeyboardInterrupt:
        with pytest.raises(ZeroDivisionError), placed(engine, 0):
            raise ZeroDivisionError from None
    engine.dispose()


def test_a_pool_without_places_is_refused() -> None:
    with pytest.raises(TypeError, match="no places"), placed(create_engine("sqlite://"), 0):
        pass


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_at_any_moment_costs_no_connection_and_is_nothing_else(
    postgres_store: Store,
) -> None:
    session = postgres_store.open_session()
    for _ in range(3):  # until all is prepared, and the limits were heard of
        session.record(BASH, made(b"before\n"))
    acknowledged: list[Finished] = []
    for moment in count(1, EVERY):
        finished, is_reached = record_interrupted(session, moment)
        acknowledged += finished
        acknowledged.append(session.record(BASH, made(b"after %d\n" % moment)))
        if not is_reached:
            break
    assert len(acknowledged) > 20
    gc.collect()
    pool = pool_of(postgres_store)
    assert pool.free_count == pool.size()
    where = InvocationFilter(sessions=(session.id,))
    kept = {found.id for found in postgres_store.reader.invocations(where).items}
    assert kept >= {finished.invocation_id for finished in acknowledged}
    check_evidence(postgres_store)


def record_interrupted(session: Session, moment: int) -> tuple[list[Finished], bool]:
    """What a record that was interrupted has acknowledged, and whether it was."""
    finished: list[Finished] = []
    reached: list[int] = []
    try:
        with interrupted_at(moment, FOLDERS) as reached:
            finished.append(session.record(BASH, made(b"interrupted at %d\n" % moment)))
    except KeyboardInterrupt:
        assert reached
    return finished, bool(reached)
