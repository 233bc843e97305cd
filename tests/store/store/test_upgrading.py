"""A schema is moved in one transaction: by one of several who try, wholly or not at all."""

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import insert
from tests.support.effort import times
from tests.support.evidence import check_evidence
from tests.support.killing import count_moments, run_and_kill
from tests.support.processes import finish_all, start_worker
from tests.support.recording import run_command, with_frame_index
from tests.support.rows import all_rows, row_for
from tests.support.schema import downgraded, names_of, set_revision

from tooltrail.migrations import HEAD_REVISION
from tooltrail.records import InvalidRecordError, SchemaMismatchError, StoreNotFoundError
from tooltrail.store import (
    Loss,
    Store,
    check_database,
    downgrade_store,
    open_store,
    plan_downgrade,
    store_revision,
    upgrade_store,
)
from tooltrail.store._engines.database import open_database
from tooltrail.store._engines.targets import parse_target
from tooltrail.store._schema.revision import lock_schema
from tooltrail.store.tables import MaintenanceRunRow, metadata

RUNS = metadata.tables["maintenance_runs"]

KILLS = times(5)
"""Moments at which one who moves a schema is killed, spread over the whole move."""

STATEMENTS = (
    "ALTER TABLE artifacts ADD",
    "ALTER TABLE output_streams ADD",
    "CREATE TABLE maintenance_runs",
    "CREATE INDEX ix_maintenance_runs_finished_at",
    "CREATE TRIGGER maintenance_runs_no_delete",
    "CREATE TRIGGER maintenance_runs_no_update",
    "CREATE TABLE idempotency_keys",
    "CREATE TRIGGER idempotency_keys_no_delete",
    "CREATE TABLE range_traits",
    "UPDATE tooltrail_version",
    "COMMIT",
)


@pytest.fixture
def recorded(store: Store, database: str) -> str:
    """A store with records."""
    with store.open_session(title="before") as session:
        run_command(session, b"a line\n" * 20_000)
        run_command(session, b"short\n", exit_status=1)
    store.close()
    return database


@pytest.fixture
def old(recorded: str) -> str:
    """The same at revision 0001."""
    downgraded(recorded, "0001")
    return recorded


def artifacts_of(tmp_path: Path) -> str:
    return str(tmp_path / "artifacts")


def wait_until_settled(database: str) -> None:
    """Wait for the lock: a server may still be at work on what a killed client has asked for."""
    opened = open_database(parse_target(database))
    try:
        with opened.write() as connection:
            lock_schema(connection)
    finally:
        opened.close()


# Several at once


def test_of_several_who_upgrade_at_once_one_does_and_the_others_find_it_done(
    old: str, tmp_path: Path
) -> None:
    workers = [start_worker("upgrade", old) for _ in range(4)]
    said = sorted(finish_all(workers))
    assert said == [f"0001 {HEAD_REVISION}\n", *[f"{HEAD_REVISION} {HEAD_REVISION}\n"] * 3]
    with open_store(old, artifacts=artifacts_of(tmp_path)) as store:
        check_evidence(store)


# Killed
@pytest.mark.parametrize("at", STATEMENTS)
def test_an_upgrade_that_is_killed_before_a_statement_has_done_nothing(
    old: str, tmp_path: Path, at: str
) -> None:
    before = names_of(old)
    worker = start_worker("upgrade", old, at)
    _, err = worker.communicate()
    assert worker.returncode == -signal.SIGKILL, err.decode()
    assert store_revision(old) == "0001"
    assert names_of(old) == before
    assert upgrade_store(old) == ("0001", HEAD_REVISION)
    with open_store(old, artifacts=artifacts_of(tmp_path)) as store:
        check_evidence(store)


@pytest.mark.parametrize("down", [False, True], ids=["up", "down"])
def test_a_move_that_is_killed_at_any_moment_leaves_one_revision_or_the_other(
    recorded: str, tmp_path: Path, down: bool
) -> None:
    def back() -> None:
        downgrade_store(recorded, "0001", lose_data=True)

    def up() -> None:
        upgrade_store(recorded)

    move, undo = (back, up) if down else (up, back)
    names = {HEAD_REVISION: names_of(recorded)}
    back()
    names["0001"] = names_of(recorded)
    start, end = (HEAD_REVISION, "0001") if down else ("0001", HEAD_REVISION)
    if down:
        up()
    count = count_moments(move)
    undo()
    seen: set[str] = set()
    moments = {max(1, count * (n + 1) // KILLS) for n in range(KILLS - 1)}
    for moment in sorted(moments | {count - n for n in range(0, 60, 20)}):
        run_and_kill(move, moment)
        wait_until_settled(recorded)
        revision = store_revision(recorded)
        assert names_of(recorded) == names[revision]
        seen.add(revision)
        if revision == end:
            undo()
    # Whether a kill comes as late as behind the commit depends on the machine.
    assert start in seen
    upgrade_store(recorded)
    with open_store(recorded, artifacts=artifacts_of(tmp_path)) as store:
        check_evidence(store)


# Downgrades


def test_what_a_downgrade_would_lose_is_counted_and_nothing_is_changed(
    store: Store, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_frame_index(monkeypatch)
    run_command(store.open_session(), b"a line\n" * 20_000)
    with store.database.write() as connection:
        connection.execute(insert(MaintenanceRunRow).values(row_for(RUNS)))
        before = all_rows(connection)
    losses = (Loss("artifacts", "frame_index", 1), Loss("maintenance_runs", None, 1))
    plan = plan_downgrade(database, "0001")
    assert (plan.before, plan.after, plan.losses) == (HEAD_REVISION, "0001", losses)
    wanted = "no place for 1 value of artifacts.frame_index, 1 row of maintenance_runs; nothing was"
    with pytest.raises(InvalidRecordError, match=wanted):
        downgrade_store(database, "0001")
    with store.database.read() as connection:
        assert all_rows(connection) == before
    assert check_database(store.database) == []


def test_a_downgrade_that_may_lose_data_keeps_all_else(
    recorded: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(recorded, artifacts=artifacts_of(tmp_path)) as store:
        with_frame_index(monkeypatch)
        run_command(store.open_session(), b"another line\n" * 20_000)
    plan = downgrade_store(recorded, "0001", lose_data=True)
    assert plan.losses == (Loss("artifacts", "frame_index", 1),)
    assert store_revision(recorded) == "0001"
    upgrade_store(recorded)
    with open_store(recorded, artifacts=artifacts_of(tmp_path)) as store:
        check_evidence(store)
        assert store.reader.counts().invocations == {"success": 3}


def test_a_downgrade_without_loss_needs_no_permission(store: Store, database: str) -> None:
    run_command(store.open_session(), b"short\n")
    store.close()
    assert downgrade_store(database, "0001").losses == ()
    assert store_revision(database) == "0001"


def test_a_downgrade_to_where_the_store_is_changes_nothing(recorded: str) -> None:
    names = names_of(recorded)
    plan = downgrade_store(recorded, HEAD_REVISION)
    assert (plan.before, plan.after, plan.losses) == (HEAD_REVISION, HEAD_REVISION, ())
    assert names_of(recorded) == names


@pytest.mark.parametrize("move", [plan_downgrade, downgrade_store])
def test_only_an_earlier_revision_is_gone_back_to(
    old: str, move: Callable[[str, str], object]
) -> None:
    with pytest.raises(
        InvalidRecordError, match=rf"{HEAD_REVISION} is later than 0001.*`tooltrail db upgrade`"
    ):
        move(old, HEAD_REVISION)
    for name in ("base", "-1", "0000", "000", "head", ""):
        with pytest.raises(
            InvalidRecordError,
            match=r"no revision is named .*; there are 0001, 0002, 0003, 0004, 0005, 0006, 0007",
        ):
            move(old, name)
    set_revision(old, "9999")
    with pytest.raises(SchemaMismatchError, match="9999, which this program does not know"):
        move(old, "0001")
    assert store_revision(old) == "9999"


@pytest.mark.parametrize("move", [plan_downgrade, downgrade_store])
def test_what_is_no_store_cannot_be_gone_back_with(
    database: str, move: Callable[[str, str], object]
) -> None:
    with pytest.raises(StoreNotFoundError):
        move(database, "0001")
