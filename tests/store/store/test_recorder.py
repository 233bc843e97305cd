"""Starting and finishing: what is acknowledged is there, and what failed has left nothing."""

import copy
import dataclasses
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from sqlalchemy import Connection, event, func, insert, select
from sqlalchemy.pool import ConnectionPoolEntry
from tests.support.away import remove_store
from tests.support.disks import SmallDisk, small_disk
from tests.support.ended import made
from tests.support.evidence import check_evidence, ledger_of
from tests.support.interleaving import before_write
from tests.support.outputs import returned
from tests.support.policies import policy_with
from tests.support.processes import NOBODY, run_python
from tests.support.recording import (
    captured,
    command_output,
    content_of,
    in_memory,
    run_command,
    run_tool,
    stream_of,
)
from tests.support.rows import row_for

from tooltrail.records import (
    DEFAULT_POLICY,
    CanonicalResult,
    CommandBudget,
    CommandOutput,
    CompleteOutput,
    ContentItem,
    DamageError,
    DiskFullError,
    FamilyRegistry,
    GenericOutput,
    InvalidRecordError,
    InvocationFinishedError,
    NotFoundError,
    Renderer,
    SessionClosedError,
    ToolCall,
    ToolError,
    UnavailableError,
    digest_of,
)
from tooltrail.records.families import command, generic
from tooltrail.store import (
    EndedCall,
    Store,
    _persistence,
    _prepared,
    create_store,
    iter_record_checks,
    open_store,
    relocate,
    repair,
)
from tooltrail.store._prepared import Row
from tooltrail.store.tables import metadata

BIG = b"a line of a long output\n" * 50_000
"""Long enough to become an artifact."""

BASH = ToolCall(tool_name="Bash")

LOOK = """
from tooltrail.store import open_store
with open_store(sys.argv[1], artifacts=sys.argv[2]) as store:
    detail = store.reader.invocation(sys.argv[3])
    print(detail.summary.state, detail.arguments.decode(), detail.receipt)
"""


def row_counts(store: Store) -> dict[str, int]:
    with store.database.read() as connection:
        return {
            name: connection.scalar(select(func.count()).select_from(table)) or 0
            for name, table in metadata.tables.items()
        }


def assert_only_started(store: Store, invocation_id: UUID) -> None:
    detail = store.reader.invocation(invocation_id)
    assert detail.summary.state == "started"
    assert detail.summary.finished_at is None
    assert (detail.complete_json, detail.canonical_json, detail.receipt) == (None, None, None)
    assert (detail.streams, detail.artifacts, detail.omissions) == ((), (), ())


def generic_with(stream_change: dict[str, object]) -> CompleteOutput:
    stream = in_memory("content.0", b"short").model_copy(update=stream_change)
    result = GenericOutput(content=(ContentItem(stream=stream),))
    return CompleteOutput(tool_name="Read", status="success", summary_text="read", result=result)


def test_a_start_is_seen_by_another_process_before_the_tool_ends(
    store: Store, database: str, tmp_path: Path
) -> None:
    call = ToolCall.of("Bash", {"command": "make"})
    invocation = store.open_session().start(call)

    seen, _ = run_python(LOOK, database, str(tmp_path / "artifacts"), str(invocation.id))

    assert seen.split() == ["started", '{"command":"make"}', "None"]


def test_a_finish_is_seen_by_another_process_when_it_returns(
    store: Store, database: str, tmp_path: Path
) -> None:
    finished = run_command(store.open_session(), b"hello\n")

    seen, _ = run_python(LOOK, database, str(tmp_path / "artifacts"), str(finished.invocation_id))

    assert seen.startswith("success {} ReceiptView(text='Process exited with code 0")


def test_what_finish_hands_back_is_what_the_store_keeps(store: Store) -> None:
    finished = run_command(store.open_session(), BIG, b"warning\n", exit_status=3)

    detail = store.reader.invocation(finished.invocation_id)

    assert detail.canonical_json is not None
    assert detail.canonical_json == finished.canonical.to_json().decode()
    assert detail.receipt is not None
    assert detail.receipt.text == finished.receipt.text
    assert detail.receipt.policy_digest == DEFAULT_POLICY.digest
    assert (detail.receipt.renderer_name, detail.receipt.renderer_version) == ("command", 1)
    assert detail.summary.state == finished.state == "success"
    assert detail.summary.exit_status == 3
    assert detail.summary.output_size == len(BIG) + len(b"warning\n")
    assert detail.summary.truncated is True
    assert [role for role, _ in detail.artifacts] == ["stdout"]
    assert json.loads(detail.canonical_json)["result"]["artifacts"] == [
        {"path": path} for _, path in detail.artifacts
    ]
    assert {(o.stage, o.field, o.unit) for o in detail.omissions} == {
        ("projection", "stdout", "bytes"),
        ("projection", "stdout", "lines"),
    }
    assert content_of(store.reader, stream_of(detail, "stdout")) == BIG


def test_the_spool_is_there_while_the_tool_runs_and_gone_when_all_is_durable(store: Store) -> None:
    invocation = store.open_session().start(BASH)
    output = command_output(invocation, BIG)
    assert (invocation.spool / "stdout.zst").is_file()

    invocation.finish(output)

    assert not invocation.spool.exists()


def test_a_failure_keeps_its_kind_and_its_own_final_state(store: Store) -> None:
    session = store.open_session()
    states = {
        "permission_denied": "denied",
        "cancelled": "cancelled",
        "interrupted": "interrupted",
        "anything_else": "error",
    }
    for kind, state in states.items():
        error = ToolError(kind=kind, message="no", details={"why": [1, None]})
        finished = session.start(BASH).finish(CompleteOutput.failure("Bash", error))
        summary = store.reader.invocation(finished.invocation_id).summary
        assert (summary.state, summary.error_kind) == (state, kind)


def test_a_policy_for_one_invocation_is_stored_with_it_alone(store: Store) -> None:
    small = policy_with(inline_bytes=4)
    session = store.open_session()
    other = session.start(BASH, policy=small)
    other.finish(command_output(other, b"12345"))
    mine = run_command(session, b"12345")

    detail = store.reader.invocation(other.id)

    assert detail.policy_digest == small.digest
    assert stream_of(detail, "stdout").artifact_path is not None
    mine_detail = store.reader.invocation(mine.invocation_id)
    assert mine_detail.policy_digest == DEFAULT_POLICY.digest
    assert stream_of(mine_detail, "stdout").artifact_path is None


def test_finishing_twice_is_refused_and_changes_nothing(store: Store) -> None:
    invocation = store.open_session().start(BASH)
    output = command_output(invocation, BIG)
    invocation.finish(output)
    before, counts = store.reader.invocation(invocation.id), row_counts(store)

    with pytest.raises(InvocationFinishedError, match=str(invocation.id)):
        invocation.finish(output)
    with pytest.raises(InvocationFinishedError):
        invocation.finish(CompleteOutput.failure("Bash", ToolError(kind="late", message="late")))

    assert store.reader.invocation(invocation.id) == before
    assert row_counts(store) == counts


def test_two_holders_of_one_invocation_cannot_both_finish_it(store: Store) -> None:
    invocation = store.open_session().start(BASH)
    other = copy.copy(invocation)
    invocation.finish(generic_failure("first"))
    before, counts = store.reader.invocation(invocation.id), row_counts(store)

    with pytest.raises(InvocationFinishedError):
        other.finish(generic_failure("second"))

    assert store.reader.invocation(invocation.id) == before
    assert row_counts(store) == counts


def generic_failure(message: str) -> CompleteOutput:
    return CompleteOutput.failure("Bash", ToolError(kind="broken", message=message))


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

    accepted = _prepared._accepted  # pyright: ignore[reportPrivateUsage]  each statement passes it
    monkeypatch.setattr(_prepared, "_accepted", execute)
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
    with create_store(
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


@pytest.mark.parametrize("on_unavailable", ["raise"])
def test_a_full_disk_leaves_a_started_invocation_and_a_retry_succeeds(sqlite_store: Store) -> None:
    store = sqlite_store
    session = store.open_session()
    running = [session.start(BASH) for _ in range(100)]
    outputs = [command_output(one, digest_of(b"%d" % n).encode()) for n, one in enumerate(running)]
    with store.database.read() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()

    def limit(connection: Connection) -> None:
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")

    event.listen(store.database.engine, "begin", limit)
    ended: list[UUID] = []

    def finish_all() -> None:
        # Some have room in pages that are there.
        for one, output in zip(running, outputs, strict=True):
            ended.append(one.finish(output).invocation_id)

    with pytest.raises(UnavailableError, match="the disk is full"):
        finish_all()
    event.remove(store.database.engine, "begin", limit)

    def lift(connection: Connection) -> None:
        connection.exec_driver_sql("PRAGMA max_page_count = 1000000")

    rest = running[len(ended) :]
    states = {one.id: one.state for one in store.reader.invocations(limit=1000).items}
    assert {states[one.id] for one in rest} == {"started"}
    event.listen(store.database.engine, "begin", lift)
    for one, output in zip(rest, outputs[len(ended) :], strict=True):
        assert one.finish(output).state == "success"
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


@pytest.fixture
def disk_store(tmp_path: Path) -> Iterator[tuple[SmallDisk, Store]]:
    """A store whose database alone is on a small disk."""
    with (
        small_disk(tmp_path / "disk", 8 << 20) as disk,
        create_store(
            disk.folder / "trail.db",
            artifacts=str(tmp_path / "artifacts"),
            spool=tmp_path / "spool",
            on_unavailable="raise",
        ) as store,
    ):
        yield disk, store


NOISE = b"".join(digest_of(b"%d" % n).encode() for n in range(30_000))
"""Not compressible, so that it needs room."""


def begun_anew(store: Store) -> Store:
    """The same store with a log that has no room of its own yet."""
    store.close()
    return store


@pytest.mark.fault
def test_on_a_full_disk_a_small_record_is_whole_in_the_room_that_is_held_back(
    disk_store: tuple[SmallDisk, Store],
) -> None:
    disk, store = disk_store
    session = store.open_session()
    invocation, other = session.start(BASH), session.start(BASH)
    output, later = command_output(invocation, b"one\n"), command_output(other, b"two\n")
    reserve = disk.folder / "trail.db-reserve"
    assert reserve.stat().st_size == 1024 * 1024
    begun_anew(store)
    disk.fill()

    assert invocation.finish(output).state == "success"
    assert not reserve.exists()
    check_evidence(store)

    begun_anew(store)
    disk.fill()
    with pytest.raises(DiskFullError, match="the disk is full"):
        other.finish(later)
    assert store.reader.invocation(other.id).summary.state == "started"
    assert other.spool.exists()
    disk.free()
    other.finish(later)
    check_evidence(store)
    store.open_session()
    assert reserve.exists()


@pytest.mark.fault
def test_the_room_that_is_held_back_serves_for_many_records_of_every_size(
    disk_store: tuple[SmallDisk, Store],
) -> None:
    disk, store = disk_store
    session = store.open_session()
    running = [session.start(BASH) for _ in range(90)]
    texts = [
        [b"short %d\n" % n, NOISE[n : n + 12_000], NOISE[n : n + 90_000]][n % 3] for n in range(90)
    ]
    outputs = [command_output(one, text) for one, text in zip(running, texts, strict=True)]
    begun_anew(store)
    disk.fill()

    ended = [one.finish(output) for one, output in zip(running, outputs, strict=True)]

    assert [one.state for one in ended] == ["success", "error", "error"] * 30
    kinds = {one.canonical.error.kind for one in ended if one.canonical.error}
    assert kinds == {"low_disk_space"}
    for one, text in zip(ended, texts, strict=True):
        stdout = stream_of(store.reader.invocation(one.invocation_id), "stdout")
        assert content_of(store.reader, stdout) == text
    check_evidence(store)


@pytest.mark.fault
def test_without_room_for_a_result_its_record_is_an_error_that_names_what_there_was(
    disk_store: tuple[SmallDisk, Store],
) -> None:
    disk, store = disk_store
    invocation = store.open_session().start(BASH)
    short, longer = NOISE[:100], NOISE[:5000]
    result = CommandOutput(
        command="make",
        exit_status=0,
        stdout=captured(invocation, "stdout", NOISE),
        stderr=captured(invocation, "stderr", longer),
        order=in_memory("order", short),
    )
    begun_anew(store)
    disk.fill()

    finished = invocation.finish(CompleteOutput.success("Bash", result))

    assert finished.state == "error"
    error = finished.canonical.error
    assert error is not None
    assert error.kind == "low_disk_space"
    assert error.message == "the tool ran, but the disk has no room for the record of its result"
    assert "command exited with status" in str(error.details)
    assert "no more than 4,096 are written" in str(error.details)
    disk.free()
    detail = store.reader.invocation(invocation.id)
    contents = {s.role: content_of(store.reader, s) for s in detail.streams}
    assert contents == {"stdout": NOISE, "stderr": longer, "order": short}
    check_evidence(store)


@pytest.mark.fault
def test_of_what_is_in_memory_alone_an_error_names_what_the_disk_has_no_room_for(
    disk_store: tuple[SmallDisk, Store],
) -> None:
    disk, store = disk_store
    invocation = store.open_session().start(ToolCall(tool_name="Read"))
    begun_anew(store)
    disk.fill()

    finished = invocation.finish(returned("Read", NOISE[:3500].decode()))

    assert (finished.state, store.reader.invocation(invocation.id).streams) == ("error", ())
    assert finished.canonical.error is not None
    assert digest_of(NOISE[:3500]) in str(finished.canonical.error.details)
    check_evidence(store)


@pytest.mark.fault
def test_on_a_full_disk_an_interruption_is_recorded_in_the_room_that_is_held_back(
    disk_store: tuple[SmallDisk, Store],
) -> None:
    disk, store = disk_store
    invocation = store.open_session().start(BASH)
    printed = captured(invocation, "stdout", NOISE)
    begun_anew(store)
    disk.fill()

    assert invocation.interrupt("killed", [printed]).state == "interrupted"

    (stdout,) = store.reader.invocation(invocation.id).streams
    assert content_of(store.reader, stdout) == NOISE
    check_evidence(store)


ON_A_FULL_DISK = """
from pathlib import Path
from tests.support.away import remove_store
from tests.support.disks import SmallDisk
from tests.support.recording import command_output
from tooltrail.records import DiskFullError, ToolCall
from tooltrail.store import open_store
folder = Path(sys.argv[1])
disk = SmallDisk(folder)
with open_store(folder / "trail.db") as store:
    session = store.open_session()
    running = [session.start(ToolCall(tool_name="Bash")) for _ in range(40)]
    texts = [b"%d " % n * (20_000 if n % 2 else 5) for n in range(40)]
    outputs = [command_output(one, text) for one, text in zip(running, texts)]
    store.close()
    disk.fill()
    for n, (one, output) in enumerate(zip(running, outputs)):
        if n == 20:
            store.close()
            disk.fill()
        try:
            print(one.id, one.finish(output).state)
        except DiskFullError as error:
            print(one.id, "told")
"""


SAID = {
    "error": "the disk has no room for the record of its result",
    "interrupted": "interrupted",
}


@pytest.mark.fault
def test_of_many_calls_on_a_full_disk_none_is_lost_and_repair_ends_the_rest(
    tmp_path: Path,
) -> None:
    with small_disk(tmp_path / "disk", 12 << 20) as disk:
        create_store(disk.folder / "trail.db").close()
        said, _ = run_python(ON_A_FULL_DISK, str(disk.folder))
        told = [(UUID(id_), word) for id_, word in map(str.split, said.splitlines())]
        assert len(told) == 40
        assert {word for _, word in told[:20]} == {"success", "error"}
        assert {word for _, word in told[20:]} == {"told"}
        disk.free()
        with open_store(disk.folder / "trail.db") as store:
            outcomes = {one.invocation_id: one.outcome for one in repair(store).folders}
            assert [outcomes[id_] for id_, _ in told[20:]] == ["interrupted"] * 20
            assert set(outcomes.values()) <= {"interrupted", "stored"}
            for n, (id_, word) in enumerate(told):
                detail = store.reader.invocation(id_)
                state = "interrupted" if word == "told" else word
                assert detail.summary.state == state
                assert detail.receipt is not None
                assert state == "success" or SAID[state] in detail.receipt.text
                text = b"%d " % n * (20_000 if n % 2 else 5)
                assert content_of(store.reader, stream_of(detail, "stdout")) == text
            check_evidence(store)


@pytest.mark.fault
def test_on_a_full_disk_for_artifacts_the_output_waits_in_the_spool(tmp_path: Path) -> None:
    with (
        small_disk(tmp_path / "disk", 8 << 20) as disk,
        create_store(tmp_path / "trail.db", artifacts=str(disk.folder / "artifacts")) as store,
    ):
        invocation = store.open_session().start(BASH)
        noise = b"".join(digest_of(b"%d" % n).encode() for n in range(3_000))
        output = command_output(invocation, noise)
        disk.fill()

        (postponed,) = invocation.finish(output).postponed

        assert postponed.digest == digest_of(noise)
        disk.free()
        assert [one.outcome for one in repair(store).folders] == ["stored"]
        (stdout, _) = store.reader.invocation(invocation.id).streams
        with store.reader.open_stream(stdout) as source:
            assert source.read() == noise
        check_evidence(store)


def test_a_read_only_artifact_folder_postpones_the_output() -> None:
    with tempfile.TemporaryDirectory(prefix="tooltrail-") as name:
        create_store(Path(name, "store", "trail.db")).close()
        if not os.geteuid():
            for path in (Path(name), *Path(name).rglob("*")):
                os.chown(path, NOBODY, NOBODY)
        said, _ = run_python(SEALED_ARTIFACTS, name, user=NOBODY)
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
    monkeypatch.setattr(_persistence, "_FIRST_PAUSE_S", 0.0001)
    with create_store(
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

        accepted = _prepared._accepted  # pyright: ignore[reportPrivateUsage]  each statement passes it
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(_prepared, "_accepted", drop)
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


def test_a_closed_session_takes_no_new_records_and_lets_running_ones_finish(store: Store) -> None:
    session = store.open_session()
    running = session.start(BASH)
    session.close()
    counts = row_counts(store)

    refused: list[Callable[[], object]] = [
        session.close,
        lambda: session.start(BASH),
        lambda: session.add_message("user", "too late"),
        lambda: store.join_session(session.id).start(BASH),
    ]
    for attempt in refused:
        with pytest.raises(SessionClosedError, match=str(session.id)):
            attempt()
    assert row_counts(store) == counts

    running.finish(command_output(running, b"done\n"))
    assert store.reader.invocation(running.id).summary.state == "success"
    assert [e.kind for e in ledger_of(store, session.id)] == [
        "session.opened",
        "invocation.started",
        "session.closed",
        "invocation.finished",
    ]


def test_a_session_used_as_a_context_is_closed_at_its_end(store: Store) -> None:
    with store.open_session() as session:
        assert store.reader.session(session.id).closed_at is None
    view = store.reader.session(session.id)
    assert view.closed_at is not None
    assert view.closed_at >= view.opened_at


def test_a_session_knows_its_parent_title_agent_and_environment(store: Store) -> None:
    parent = store.open_session(title="the parent", agent="planner")
    child = store.open_session(parent=parent.id)
    grandchild = store.open_session(parent=child.id)

    views = {view.id: view for view in store.reader.sessions()}

    assert [views[s.id].parent_id for s in (parent, child, grandchild)] == [
        None,
        parent.id,
        child.id,
    ]
    assert (views[parent.id].title, views[parent.id].agent) == ("the parent", "planner")
    assert (views[child.id].title, views[child.id].agent) == (None, None)
    assert json.loads(views[parent.id].environment)["pid"] > 0
    assert ledger_of(store, child.id)[0].payload["parent"] == str(parent.id)


def test_an_unknown_session_cannot_be_joined_nor_be_a_parent(store: Store) -> None:
    nobody = uuid4()
    counts = row_counts(store)
    with pytest.raises(NotFoundError, match=str(nobody)):
        store.join_session(nobody)
    with pytest.raises(NotFoundError, match=str(nobody)):
        store.open_session(parent=nobody)
    assert row_counts(store) == counts


def test_messages_and_invocations_share_one_order(store: Store) -> None:
    session = store.open_session()
    session.add_message("user", "list the files")
    run_command(session, b"a\n")
    session.add_message("assistant", "there is one")
    run_tool(session, "content")

    _, messages, invocations = store.reader.conversation(session.id)

    assert [(m.seq, m.role, m.text) for m in messages] == [
        (0, "user", "list the files"),
        (2, "assistant", "there is one"),
    ]
    assert [i.summary.seq for i in invocations] == [1, 3]
    check_evidence(store)


def test_a_session_without_its_ledger_head_is_damage(sqlite_store: Store) -> None:
    session = sqlite_store.open_session()
    with sqlite_store.database.write() as connection:
        connection.exec_driver_sql("DROP TRIGGER ledger_heads_no_delete")
        connection.exec_driver_sql(f"DELETE FROM ledger_heads WHERE session_key = {session.key}")
    with pytest.raises(DamageError, match="no ledger head"):
        session.start(BASH)


def test_a_session_of_a_store_that_was_made_anew_at_its_place_is_not_taken_for_another(
    store: Store, database: str, tmp_path: Path
) -> None:
    old = store.open_session()
    ended = old.start(BASH)
    store.database.close()
    remove_store(database)
    with create_store(database, artifacts=str(tmp_path / "a2"), spool=tmp_path / "s2") as anew:
        told = f"session {old.id} is not in the store any more, where no session is in its place"
        with pytest.raises(NotFoundError, match=told):
            old.record(BASH, made())
        other = anew.open_session()
        assert other.key == old.key
        started = other.start(BASH)
        told = f"where session {other.id} is now in its place: the store was made anew"
        attempts: list[Callable[[], object]] = [
            lambda: old.start(BASH),
            lambda: old.record(BASH, made()),
            lambda: old.record_many([EndedCall(BASH, made())] * 2),
            lambda: old.add_message("user", "hello"),
            lambda: ended.finish(made()),
            old.close,
        ]
        for attempt in attempts:
            with pytest.raises(NotFoundError, match=told):
                attempt()
        _, messages, invocations = anew.reader.conversation(other.id)
        assert (messages, [one.summary.id for one in invocations]) == ([], [started.id])
        assert anew.reader.session(other.id).closed_at is None
        check_evidence(anew)


def test_output_of_another_family_is_refused(store: Store) -> None:
    session = store.open_session()
    command_run = CompleteOutput.success(
        "Read",
        CommandOutput(exit_status=0, stdout=in_memory("stdout"), stderr=in_memory("stderr")),
    )
    invocation = session.start(ToolCall(tool_name="Read"))
    with pytest.raises(InvalidRecordError, match="file_read family"):
        invocation.finish(command_run)
    assert_only_started(store, invocation.id)
    invocation.finish(returned("Read", "right"))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"content": None}, id="bytes that were never captured"),
        pytest.param({"digest": digest_of(b"something else")}, id="the digest of other bytes"),
        pytest.param(
            {"produced_size": 10**60, "loss_reason": "lost"}, id="a size that no column holds"
        ),
    ],
)
def test_a_stream_that_could_not_be_read_back_is_refused(
    store: Store, change: dict[str, object]
) -> None:
    session = store.open_session()
    for policy in (DEFAULT_POLICY, policy_with(inline_bytes=0)):
        invocation = session.start(ToolCall(tool_name="Read"), policy=policy)
        counts = row_counts(store)
        with pytest.raises(InvalidRecordError):
            invocation.finish(generic_with(change))
        assert row_counts(store) == counts
        assert_only_started(store, invocation.id)


def test_a_stream_is_found_again_when_it_was_captured_under_another_policy(store: Store) -> None:
    invocation = store.open_session().start(
        ToolCall(tool_name="Read"), policy=policy_with(inline_bytes=0)
    )
    stream = captured(invocation, "content.0", b"short")
    assert stream.content is None
    result = GenericOutput(content=(ContentItem(stream=stream),))
    invocation.finish(
        CompleteOutput(tool_name="Read", status="success", summary_text="read", result=result)
    )
    detail = store.reader.invocation(invocation.id)
    assert content_of(store.reader, detail.streams[0]) == b"short"


def test_two_streams_with_the_same_bytes_are_stored_once(store: Store) -> None:
    finished = run_command(store.open_session(), BIG, BIG)
    detail = store.reader.invocation(finished.invocation_id)
    assert [content_of(store.reader, stream) for stream in detail.streams] == [BIG, BIG]
    assert len(store.reader.artifacts()) == 1


@pytest.mark.parametrize("role", ["../stdout", "/etc/stdout", "a/../../b", "a\\b", "x" * 300])
def test_a_capture_cannot_leave_the_spool(sqlite_store: Store, role: str) -> None:
    invocation = sqlite_store.open_session().start(BASH)
    with pytest.raises(InvalidRecordError):
        invocation.capture(role)
    assert not invocation.spool.exists()


def test_a_connection_does_not_outlive_its_store(sqlite_store: Store) -> None:
    closed: list[ConnectionPoolEntry] = []
    event.listen(sqlite_store.database.engine, "close", lambda *a: closed.append(a[1]))
    run_tool(sqlite_store.open_session(), "content")
    sqlite_store.close()
    assert closed


def test_a_session_for_one_call_begins_and_ends_with_it(store: Store) -> None:
    invocation = store.start_alone(BASH)
    (session,) = store.reader.sessions()
    assert (session.opened_at, session.closed_at) == (invocation.started_at, None)
    invocation.finish(command_output(invocation, b"out"))
    (session,) = store.reader.sessions()
    assert session.closed_at is not None
    opened, *_, closed = ledger_of(store, session.id)
    assert opened.payload["only_call"] == str(invocation.id)
    assert (closed.kind, closed.payload) == ("session.closed", {})
    check_evidence(store)


def test_a_session_for_one_call_outlives_others_that_joined_it(store: Store) -> None:
    own = store.start_alone(BASH)
    (session,) = store.reader.sessions()
    joined = store.join_session(session.id).start(BASH)
    joined.interrupt("it was asked to stop")
    assert store.reader.sessions()[0].closed_at is None
    own.interrupt("and so was this")
    assert store.reader.sessions()[0].closed_at is not None


def test_a_session_for_one_call_that_others_have_closed_stays_as_it_is(store: Store) -> None:
    own = store.start_alone(BASH)
    (session,) = store.reader.sessions()
    store.join_session(session.id).close()
    own.interrupt("it was asked to stop")
    kinds = [entry.kind for entry in ledger_of(store, session.id)]
    assert kinds.count("session.closed") == 1
    check_evidence(store)


def test_a_call_alone_that_cannot_be_started_leaves_nothing(store: Store) -> None:
    with pytest.raises(NotFoundError):
        store.start_alone(BASH, family="nobody")
    assert store.reader.sessions() == []
