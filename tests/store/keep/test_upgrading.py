"""Upgrading a schema: one of several programs does it, in one transaction, beside no ingester."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.support.effort import times
from tests.support.empty_databases import empty_database
from tests.support.evidence import check_database
from tests.support.keeping import check, ingested
from tests.support.killing import count_moments, run_and_kill
from tests.support.threads import at_once

from tooltrail.migrations import HEAD_REVISION
from tooltrail.records import SchemaMismatchError, StoreNotFoundError
from tooltrail.store.engines.database import Database
from tooltrail.store.engines.targets import parse_target
from tooltrail.store.info import read_revision
from tooltrail.store.keep.upgrading import migrate, upgrade_store
from tooltrail.store.locking import ingest_lock
from tooltrail.store.opening import store_revision
from tooltrail.store.store import Store

HANG_S = 60
KILLS = times(4)


def set_revision(store: Store, name: str) -> None:
    with store.database.write() as connection:
        connection.execute("UPDATE tooltrail_version SET version_num = ?", (name,))


def assert_lacks_its_row(database: Database) -> None:
    (problem,) = check_database(database)
    assert "lacks its row in store_info" in problem


def test_a_store_at_head_is_left_as_it_is(store: Store, database: str) -> None:
    ingested(store, b"a line\n")
    assert at_once(*[lambda: upgrade_store(database)] * 3) == [(HEAD_REVISION, HEAD_REVISION)] * 3
    check(store)
    assert check_database(store.database) == []


@pytest.mark.both_engines
def test_a_move_waits_until_no_ingester_works(store: Store, database: str) -> None:
    began = threading.Event()

    def upgrade() -> tuple[str, str]:
        began.set()
        return upgrade_store(database)

    with ThreadPoolExecutor(1) as pool:
        with ingest_lock(store.database):
            moving = pool.submit(upgrade)
            assert began.wait(HANG_S)
            with pytest.raises(TimeoutError):
                moving.result(0.5)
        assert moving.result(HANG_S) == (HEAD_REVISION, HEAD_REVISION)


def test_a_revision_that_this_program_does_not_know_is_not_touched(
    store: Store, database: str
) -> None:
    set_revision(store, "9999")
    with pytest.raises(SchemaMismatchError, match="9999, which this program does not know"):
        upgrade_store(database)
    assert store_revision(database) == "9999"


@pytest.mark.both_engines
def test_a_database_without_a_store_cannot_be_upgraded(database: str) -> None:
    with pytest.raises(StoreNotFoundError):
        upgrade_store(database)


@pytest.mark.both_engines
def test_migrations_that_are_killed_at_any_moment_did_all_or_nothing(database: str) -> None:
    target = parse_target(database)
    opened = empty_database(database)

    def revision() -> str | None:
        with opened.read() as connection:
            return read_revision(connection)

    def run() -> None:
        migrate(target)

    run()
    count = count_moments(run)
    assert_lacks_its_row(opened)
    for n in range(KILLS):
        with opened.write() as connection:
            _drop_all(connection.is_sqlite, connection.run, connection.query)
        run_and_kill(run, max(1, count * (n + 1) // KILLS))
        if revision() is not None:
            assert_lacks_its_row(opened)
        run()
        assert_lacks_its_row(opened)
    opened.close()


def _drop_all(
    is_sqlite: bool, run: Callable[[str], None], query: Callable[[str], list[tuple[object, ...]]]
) -> None:
    if not is_sqlite:
        run("DROP SCHEMA public CASCADE")
        run("CREATE SCHEMA public")
        return
    for kind in ("view", "table"):
        found = query(f"SELECT name FROM sqlite_master WHERE type = '{kind}'")
        for (name,) in found:
            run(f"DROP {kind} {name}")
