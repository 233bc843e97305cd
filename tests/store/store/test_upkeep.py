"""A reference always resolves: pruned or moved between two steps of a record, it makes no odds."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Connection
from tests.support.evidence import check_evidence
from tests.support.interleaving import before_write
from tests.support.processes import finish_all, start_worker
from tests.support.recording import command_output, run_command, statements_of, without_housekeeping
from tests.support.template_stores import make_store
from tests.support.upkeep import NO_GRACE, prune_all, publish, runs_of

from tooltrail.records import DamageError, ToolCall, UnavailableError
from tooltrail.store import (
    Invocation,
    PruningReport,
    Store,
    open_store,
    plan_pruning,
    prune,
    relocate,
    repair,
)
from tooltrail.store._engines.pipelines import answered
from tooltrail.store._recording import group_commit
from tooltrail.store._recording.upkeep import read_upkeep
from tooltrail.store._roots.maintenance import maintenance_run

WORKER = "tests.support.upkeep_worker"
BASH = ToolCall(tool_name="Bash")
BIG = b"a line of a long output\n" * 5_000
OTHER = b"another line of another output\n" * 5_000


@pytest.fixture
def other(store: Store, database: str, tmp_path: Path) -> Store:
    """The same store, opened by somebody else."""
    return reopened(store, database, tmp_path)


def reopened(store: Store, database: str, tmp_path: Path) -> Store:
    return open_store(
        database, artifacts=str(tmp_path / "artifacts"), spool=tmp_path / "other spool"
    )


def finish(invocation: Invocation, stdout: bytes = BIG, stderr: bytes = b"") -> None:
    invocation.finish(command_output(invocation, stdout, stderr))


def test_an_old_object_that_is_pruned_between_publishing_and_commit_is_published_anew(
    store: Store, other: Store
) -> None:
    path = publish(store, BIG)
    invocation = store.open_session().start(BASH)
    pruned: list[int] = []

    def come_in() -> None:
        pruned.append(prune_all(other).unreferenced.count)

    with before_write(store, come_in):
        finish(invocation, BIG, OTHER)

    # The one that the writer had found there, and the one that it had just put there.
    assert pruned == [2]
    assert store.archive.exists(path)
    check_evidence(store)
    other.close()


def test_an_object_that_a_killed_run_had_deleted_is_published_anew(
    store: Store, database: str, tmp_path: Path
) -> None:
    path = publish(store, BIG)
    holding = start_worker(
        "hold", database, str(tmp_path / "artifacts"), str(tmp_path / "spool"), module=WORKER
    )
    assert holding.stdout is not None
    assert holding.stdout.readline() == b"under way\n"
    holding.kill()
    holding.communicate()
    # Opened after the run began, which thus is no news to it.
    other = reopened(store, database, tmp_path)
    invocation = other.open_session().start(BASH)

    with before_write(other, lambda: store.archive.sink.delete(path)):
        finish(invocation)

    assert store.archive.exists(path)
    check_evidence(other)
    # The next run knows it to be dead.
    prune_all(store)
    assert [run.outcome for run in runs_of(store)] == ["abandoned", "finished"]
    other.close()


def test_pruning_waits_for_a_commit_that_is_under_way_and_then_sees_its_references(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    artifacts = str(tmp_path / "artifacts")
    with (
        make_store(postgres_url, artifacts=artifacts, spool=tmp_path / "spool") as store,
        open_store(postgres_url, artifacts=artifacts) as other,
        ThreadPoolExecutor(1) as pool,
    ):
        path = publish(store, BIG)
        plan = plan_pruning(other, NO_GRACE)
        invocation = store.open_session().start(BASH)
        pending: list[Future[PruningReport]] = []

        def come_in(connection: Connection) -> None:
            """All is written, and the commit comes next."""
            answered(connection)
            pending.append(pool.submit(prune, other, plan))
            while not pending[0].done() and not advisory_waits(postgres_url):
                pass

        with monkeypatch.context() as patched:
            patched.setattr(group_commit, "answered", come_in)
            finish(invocation)

        report = pending[0].result()
        assert (report.unreferenced.count, report.adopted.count) == (0, 1)
        assert store.archive.exists(path)
        check_evidence(store)


def advisory_waits(url: str) -> bool:
    """Whether somebody waits for an advisory lock."""
    asked = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    with psycopg.connect(url) as connection:
        return connection.execute(asked).fetchone() is not None


def test_a_run_that_ends_between_two_looks_is_seen_by_either(store: Store, other: Store) -> None:
    publish(store, BIG)
    first = store.open_session().start(BASH)
    with before_write(store, lambda: prune_all(other)):
        finish(first)
    # What was seen last is what the next record begins with: nothing to look for any more.
    with statements_of(store.database.engine) as seen:
        finish(store.open_session().start(BASH), OTHER)
    runs = [sql for sql in without_housekeeping(seen) if "maintenance_runs" in sql]
    assert len(runs) == 1
    check_evidence(store)
    other.close()


def test_a_record_without_artifacts_asks_nothing_of_the_upkeep(store: Store) -> None:
    invocation = store.open_session().start(BASH)
    with statements_of(store.database.engine) as seen:
        finish(invocation, b"short\n")
    asked = [sql for sql in without_housekeeping(seen) if "maintenance" in sql or "advisory" in sql]
    assert asked == []


def test_a_record_with_artifacts_asks_once(store: Store) -> None:
    invocation = store.open_session().start(BASH)
    with statements_of(store.database.engine) as seen:
        finish(invocation, BIG, OTHER)
    asked = [sql for sql in without_housekeeping(seen) if "maintenance" in sql or "advisory" in sql]
    locks = ["advisory" in sql for sql in asked]
    assert locks == ([False] if store.database.engine.dialect.name == "sqlite" else [True, False])


def test_a_record_that_is_being_made_while_the_artifacts_move_goes_with_them(
    store: Store, other: Store, tmp_path: Path
) -> None:
    run_command(store.open_session(), OTHER)
    invocation = store.open_session().start(BASH)
    new = tmp_path / "new"

    with before_write(store, lambda: relocate(other, str(new), delete_old=True)):
        finish(invocation)

    assert store.archive.sink.url == f"file://{new}"
    check_evidence(store)
    # From now on it is there that this process publishes.
    run_command(store.open_session(), b"a third\n" * 5_000)
    assert len(store.reader.artifacts()) == 3
    check_evidence(store)
    other.close()


def test_a_root_that_is_gone_since_the_artifacts_were_moved_makes_nothing_wait(
    store: Store, other: Store, tmp_path: Path
) -> None:
    invocation = store.open_session().start(BASH)
    output = command_output(invocation, BIG)
    relocate(other, str(tmp_path / "new"))
    (tmp_path / "artifacts").rename(tmp_path / "gone")

    assert invocation.finish(output).postponed == ()
    check_evidence(store)
    other.close()


def test_output_waits_where_the_new_root_cannot_be_reached(
    store: Store, other: Store, tmp_path: Path
) -> None:
    invocation = store.open_session().start(BASH)
    output = command_output(invocation, BIG)
    new = tmp_path / "new"
    relocate(other, str(new))
    new.rename(tmp_path / "not mounted")

    finished = invocation.finish(output)

    assert [stream.role for stream in finished.postponed] == ["stdout"]
    (stream, *_) = store.reader.invocation(invocation.id).streams
    assert "new for artifacts: No such file" in str(stream.postponed_reason)
    (tmp_path / "not mounted").rename(new)
    assert [found.outcome for found in repair(store).folders] == ["stored"]
    check_evidence(store)
    other.close()


def test_upkeep_without_the_row_of_the_store_is_damage(store: Store) -> None:
    with store.database.write() as connection:
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("DROP TRIGGER store_info_no_delete")
        else:
            connection.exec_driver_sql("DROP TRIGGER store_info_no_delete ON store_info")
        connection.exec_driver_sql("DELETE FROM store_info")
    with pytest.raises(DamageError, match="own row"), store.database.read() as connection:
        read_upkeep(connection)


COUNT = 15


def recorders(database: str, artifacts: str, tmp_path: Path) -> Callable[[], bool]:
    """Two processes that record the same contents; call what is returned to know if they do."""
    workers = [
        start_worker(
            "record", database, artifacts, str(tmp_path / "spool"), str(COUNT), module=WORKER
        )
        for _ in range(2)
    ]

    def are_running() -> bool:
        if any(worker.poll() is None for worker in workers):
            return True
        finish_all(workers)
        return False

    return are_running


def test_two_processes_record_the_same_contents_while_a_third_prunes(
    store: Store, database: str, tmp_path: Path
) -> None:
    are_running = recorders(database, str(tmp_path / "artifacts"), tmp_path)
    rounds = 0
    while are_running():
        prune_all(store)
        rounds += 1

    assert rounds > 1
    assert store.reader.counts().invocations == {"success": 2 * COUNT}
    assert len(store.reader.artifacts()) == 2 * COUNT
    check_evidence(store)
    prune_all(store)
    assert prune_all(store).total.count == 0


def test_two_processes_record_while_the_artifacts_move_again_and_again(
    sqlite_store: Store, tmp_path: Path
) -> None:
    store = sqlite_store
    are_running = recorders(str(tmp_path / "trail.db"), "", tmp_path)
    roots = 0
    while are_running():
        roots += 1
        assert relocate(store, str(tmp_path / f"root {roots}"), delete_old=True).switched

    assert roots > 1
    assert store.reader.counts().invocations == {"success": 2 * COUNT}
    check_evidence(store)
    with open_store(tmp_path / "trail.db") as again:
        assert again.archive.sink.url == f"file://{tmp_path}/root {roots}"
        check_evidence(again)


def test_a_run_takes_the_turn_of_nobody_else(store: Store, other: Store) -> None:
    publish(store, BIG)
    with (
        maintenance_run(store.database, "repair", {}),
        pytest.raises(UnavailableError, match="another run of gc, relocate or repair"),
    ):
        prune_all(other)
    assert prune_all(other).total.count == 1
    assert [(run.kind, run.outcome) for run in runs_of(store)] == [
        ("repair", "finished"),
        ("gc", "finished"),
    ]
    other.close()
