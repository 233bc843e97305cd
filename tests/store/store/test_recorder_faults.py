"""Faults in a finish: what failed has left nothing, and what waits for the artifacts is found."""

import dataclasses
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection, event, insert
from tests.support.evidence import assert_only_started, check_evidence
from tests.support.interleaving import before_write
from tests.support.outputs import returned
from tests.support.processes import NOBODY, run_python
from tests.support.recording import command_output, content_of, run_command
from tests.support.rows import row_counts, row_for
from tests.support.template_stores import make_store

from tooltrail.records import (
    CanonicalResult,
    CommandBudget,
    FamilyRegistry,
    Renderer,
    ToolCall,
    UnavailableError,
)
from tooltrail.records.families import command, generic
from tooltrail.store import Store, iter_record_checks, open_store, relocate, repair
from tooltrail.store._engines import persistence, prepared
from tooltrail.store._engines.prepared import Row
from tooltrail.store.tables import metadata

BIG = b"a line of a long output\n" * 50_000
"""Long enough to become an artifact."""

BASH = ToolCall(tool_name="Bash")


def test_a_fault_at_any_statement_of_a_finish_leaves_nothing_and_a_retry_succeeds(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = store.open_session()
    executed: list[str] = []
    left = 0

    def execute(sql: str, values_of: Callable[[Row], Any], row: Row) -> object:
        nonlocal left
        executed.append(sql)
        left -= 1
        if left == 0:
            raise RuntimeError("injected")
        return accepted(sql, values_of, row)

    accepted = prepared._accepted  # pyright: ignore[reportPrivateUsage]  each statement passes it
    monkeypatch.setattr(prepared, "_accepted", execute)
    run_command(session, BIG, b"warning\n")
    in_finish = next(n for n, sql in enumerate(executed) if sql.startswith("UPDATE inv"))
    count = len(executed) - in_finish
    assert count > 10
    for at in range(1, count + 1):
        invocation = session.start(BASH)
        output = command_output(invocation, BIG + b"%d" % at, b"warning %d\n" % at)
        counts = row_counts(store)
        left = at
        with pytest.raises(RuntimeError, match="injected"):
            invocation.finish(output)
        assert row_counts(store) == counts
        assert_only_started(store, invocation.id)
        assert (invocation.spool / "stdout.zst").is_file()
        invocation.finish(output)
        assert not invocation.spool.exists()
    check_evidence(store)


def test_a_renderer_that_raises_leaves_a_started_invocation_and_its_spool(
    database: str, tmp_path: Path
) -> None:
    moods = ["broken"]

    def render(canonical: CanonicalResult, budget: CommandBudget) -> str:
        if moods:
            raise RuntimeError("no words")
        return command.render_command(canonical, budget)

    moody = Renderer("moody", 1, render)
    families = FamilyRegistry(generic.FAMILY, dataclasses.replace(command.FAMILY, renderer=moody))
    with make_store(
        database, artifacts=str(tmp_path / "artifacts"), spool=tmp_path / "spool", families=families
    ) as store:
        invocation = store.open_session().start(BASH)
        output = command_output(invocation, BIG)
        with pytest.raises(RuntimeError, match="no words"):
            invocation.finish(output)
        assert_only_started(store, invocation.id)
        assert (invocation.spool / "stdout.zst").is_file()

        moods.clear()
        invocation.finish(output)

        detail = store.reader.invocation(invocation.id)
        assert detail.receipt is not None
        assert detail.receipt.renderer_name == "moody"
        check_evidence(store)


def test_while_the_artifact_root_is_away_the_record_is_finished_and_its_output_waits(
    store: Store, tmp_path: Path
) -> None:
    invocation = store.open_session().start(BASH)
    output = command_output(invocation, BIG, BIG[:9000])
    root = tmp_path / "artifacts"
    root.rename(tmp_path / "unmounted")

    finished = invocation.finish(output)

    assert [stream.role for stream in finished.postponed] == ["stdout"]
    assert (invocation.spool / "stdout.zst").is_file()
    detail = store.reader.invocation(invocation.id)
    assert detail.summary.state == "success"
    assert detail.artifacts == ()
    reasons = {stream.role: stream.postponed_reason for stream in detail.streams}
    assert reasons["stderr"] is None
    assert str(root) in (reasons["stdout"] or "")
    assert all("not stored yet: " in cut.reason for cut in detail.omissions)
    with pytest.raises(UnavailableError, match="stream stdout is not stored yet"):
        store.reader.open_stream(detail.streams[0])
    (waiting,) = store.reader.waiting_streams(detail.summary.session_id)
    assert (waiting.invocation_id, waiting.role) == (invocation.id, "stdout")
    assert [check.problem for check in iter_record_checks(store.reader)] == [""]

    (tmp_path / "unmounted").rename(root)
    assert [one.outcome for one in repair(store, dry_run=True).folders] == ["stored"]
    assert [one.outcome for one in repair(store).folders] == ["stored"]
    assert not invocation.spool.exists()
    with store.reader.open_stream(detail.streams[0]) as stdout:
        assert stdout.read() == BIG
    assert store.reader.artifacts(invocation=invocation.id) == store.reader.artifacts()
    (artifact,) = store.reader.artifacts()
    assert store.reader.artifact_owners(artifact.path) == [invocation.id]
    assert repair(store).folders == ()
    check_evidence(store)


def test_a_long_output_in_memory_is_kept_in_the_database_while_the_artifact_root_is_away(
    store: Store, tmp_path: Path
) -> None:
    invocation = store.open_session().start(ToolCall(tool_name="mcp__list"))
    (tmp_path / "artifacts").rename(tmp_path / "unmounted")

    finished = invocation.finish(returned("mcp__list", BIG.decode()))

    assert finished.postponed == ()
    assert "full output: kept in the database]" in finished.receipt.text
    assert not invocation.spool.exists()
    (stream,) = store.reader.invocation(invocation.id).streams
    assert stream.postponed_reason is None
    assert content_of(store.reader, stream) == BIG
    assert store.reader.waiting_streams() == []
    (tmp_path / "unmounted").rename(tmp_path / "artifacts")
    check_evidence(store)


def test_a_program_whose_old_root_is_gone_follows_the_relocation(
    sqlite_store: Store, tmp_path: Path
) -> None:
    store = sqlite_store
    session = store.open_session()
    run_command(session, BIG)
    with open_store(str(store.database.target)) as other:
        relocate(other, str(tmp_path / "new"), delete_old=True)
    shutil.rmtree(tmp_path / "artifacts")

    for n in range(2):
        assert run_command(session, BIG + b"%d" % n).postponed == ()
    assert store.reader.waiting_streams() == []
    check_evidence(store)


def test_a_sink_that_dies_before_a_commit_that_must_look_at_it_postpones_the_output(
    sqlite_store: Store, tmp_path: Path
) -> None:
    store = sqlite_store
    invocation = store.open_session().start(BASH)
    output = command_output(invocation, BIG, BIG + b"1")
    # A pruning that was killed: whoever commits a reference must look at its object.
    with store.database.write() as connection:
        table = metadata.tables["maintenance_runs"]
        connection.execute(insert(table).values(row_for(table)))
    root = tmp_path / "artifacts"

    with before_write(store, lambda: root.rename(tmp_path / "unmounted")):
        finished = invocation.finish(output)

    assert [stream.role for stream in finished.postponed] == ["stdout", "stderr"]
    assert store.reader.invocation(invocation.id).artifacts == ()
    (tmp_path / "unmounted").rename(root)
    assert [one.outcome for one in repair(store).folders] == ["stored"]
    check_evidence(store)


def test_a_read_only_artifact_folder_postpones_the_output() -> None:
    with tempfile.TemporaryDirectory(prefix="tooltrail-") as name:
        make_store(Path(name, "store", "trail.db")).close()
        if not os.geteuid():
            for path in (Path(name), *Path(name).rglob("*")):
                os.chown(path, NOBODY, NOBODY)
        said, _ = run_python(SEALED_ARTIFACTS, name, user=NOBODY, imports="tests.support.recording")
    assert said.split("\n") == ["postponed True", "success True", "stored True", ""]


SEALED_ARTIFACTS = """
from pathlib import Path
from tests.support.recording import command_output
from tooltrail.records import ToolCall
from tooltrail.store import open_store, repair
with open_store(Path(sys.argv[1], "store", "trail.db")) as store:
    invocation = store.open_session().start(ToolCall(tool_name="Bash"))
    output = command_output(invocation, b"a line of a long output\\n" * 50_000)
    root = Path(sys.argv[1], "store", "artifacts")
    root.chmod(0o555)
    print("postponed", bool(invocation.finish(output).postponed))
    print(store.reader.invocation("@last").summary.state, invocation.spool.exists())
    root.chmod(0o755)
    (folder,) = repair(store).folders
    print(folder.outcome, bool(store.reader.artifacts()))
"""


def test_a_server_that_drops_the_connection_in_a_finish_leaves_nothing(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(persistence, "_FIRST_PAUSE_S", 0.0001)
    with make_store(
        postgres_url,
        artifacts=str(tmp_path / "artifacts"),
        spool=tmp_path / "spool",
        on_unavailable="raise",
    ) as store:
        invocation = store.open_session().start(BASH)
        output = command_output(invocation, BIG)
        counts = row_counts(store)

        def drop(sql: str, values_of: Callable[[Row], Any], row: Row) -> object:
            if sql.startswith("INSERT INTO receipts"):
                with psycopg.connect(postgres_url, autocommit=True) as other:
                    other.execute(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                        " WHERE datname = current_database() AND xact_start IS NOT NULL"
                        " AND pid <> pg_backend_pid()"
                    )
            return accepted(sql, values_of, row)

        accepted = prepared._accepted  # pyright: ignore[reportPrivateUsage]  each statement passes it
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(prepared, "_accepted", drop)
            with pytest.raises(UnavailableError):
                invocation.finish(output)

        assert row_counts(store) == counts
        assert_only_started(store, invocation.id)
        invocation.finish(output)
        check_evidence(store)


def test_artifacts_are_durable_before_the_transaction_begins(store: Store) -> None:
    invocation = store.open_session().start(BASH)
    output = command_output(invocation, BIG)
    stored_at_begin: list[int] = []

    def look(_: Connection) -> None:
        stored_at_begin.append(len(list(store.archive.sink.list("sha256/"))))

    event.listen(store.database.engine, "begin", look)
    invocation.finish(output)
    event.remove(store.database.engine, "begin", look)

    assert stored_at_begin == [1]
