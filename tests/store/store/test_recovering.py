"""What killed programs leave is brought into the store, once, and nobody else is touched."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text
from tests.support.disks import small_disk
from tests.support.evidence import check_evidence
from tests.support.processes import ROOT
from tests.support.recording import captured, command_output, content_of, stream_of
from tests.support.spool_writer import SpoolWriter, digits
from tests.support.spools import names_in
from tests.support.template_stores import make_store
from tests.support.upkeep import runs_of

from tooltrail.artifacts import SpoolOwner, spooled_streams
from tooltrail.artifacts.codec import compress_frame
from tooltrail.records import FamilyRegistry, ToolCall, canonical_json
from tooltrail.records.families import generic
from tooltrail.store import (
    Repairable,
    RepairedFolder,
    Store,
    find_repairable,
    iter_record_checks,
    iter_rerenderings,
    new_id,
    now,
    open_store,
    repair,
)
from tooltrail.store._recording import writes
from tooltrail.store._recording.starting import Started, write_started
from tooltrail.store._repairing.repaired import put_away

BASH = ToolCall(tool_name="Bash")


@contextmanager
def writer_of(store: Store, database: str) -> Generator[SpoolWriter]:
    root = Path(store.archive.sink.url.removeprefix("file://"))
    with SpoolWriter(database, root, store.spool) as writer:
        yield writer


def kill_after(store: Store, database: str, *steps: str) -> UUID:
    """The invocation of a process that was killed after these steps."""
    with writer_of(store, database) as writer:
        name = UUID(writer.do("start"))
        for step in steps:
            writer.do(step)
    return name


def assert_clean(store: Store) -> None:
    """Nothing is left in the spool, and what the store holds is whole and as its ledger says."""
    assert names_in(store.spool) == []
    assert not find_repairable(store)
    check_evidence(store)
    assert [check.problem for check in iter_record_checks(store.reader)] == [""] * len(
        store.reader.invocations().items
    )
    assert {r.state for r in iter_rerenderings(store.reader, store.families)} <= {"same"}


def test_the_output_of_a_killed_program_is_recovered(store: Store, database: str) -> None:
    name = kill_after(
        store, database, "fill stdout 400000", "flush stdout", "write stderr oops", "close stderr"
    )
    assert find_repairable(store) == Repairable(killed=(name,))

    report = repair(store)

    expected = RepairedFolder(name, "interrupted", recovered_bytes=400_000 + 5)
    assert report.folders == (expected,)
    assert report.elsewhere_count == 0
    detail = store.reader.invocation(name)
    summary = detail.summary
    assert (summary.state, summary.error_kind) == ("interrupted", "interrupted")
    assert (summary.output_size, summary.truncated) == (400_005, True)
    # How long it ran is not known: nobody saw it end.
    assert summary.finished_at is not None
    assert summary.duration_ms is None
    assert content_of(store.reader, stream_of(detail, "stdout")) == digits(400_000)
    assert content_of(store.reader, stream_of(detail, "stderr")) == b"oops\n"
    assert stream_of(detail, "stdout").artifact_path is not None
    assert_clean(store)


def test_a_repair_that_does_something_leaves_an_account_and_any_other_none(
    store: Store, database: str
) -> None:
    repair(store)
    assert runs_of(store) == []
    name = kill_after(store, database, "write stdout said", "flush stdout")
    repair(store, dry_run=True)
    assert runs_of(store) == []

    repair(store)
    repair(store)

    (run,) = runs_of(store)
    assert (run.kind, run.outcome, run.object_count, run.stored_bytes) == (
        "repair",
        "finished",
        1,
        5,
    )
    assert run.report == {
        "folders": [
            {
                "invocation_id": str(name),
                "outcome": "interrupted",
                "recovered_bytes": 5,
                "lost_bytes": 0,
            }
        ]
    }


def test_a_repair_while_the_artifacts_are_away_leaves_everything_as_it_is(
    store: Store, database: str
) -> None:
    name = kill_after(store, database, "fill stdout 400000", "flush stdout", "close stdout")
    root = Path(store.archive.sink.url.removeprefix("file://"))
    root.rename(root.with_name("unmounted"))

    (failed,) = repair(store).folders

    assert (failed.outcome, str(root) in failed.reason) == ("failed", True)
    assert store.reader.invocation(name).summary.state == "started"
    assert (store.spool / str(name) / "stdout.zst").is_file()
    root.with_name("unmounted").rename(root)
    assert [one.outcome for one in repair(store).folders] == ["interrupted"]
    detail = store.reader.invocation(name)
    assert content_of(store.reader, stream_of(detail, "stdout")) == digits(400_000)
    assert_clean(store)


def test_what_a_killed_repair_had_staged_goes_with_the_next_one(store: Store) -> None:
    staging = store.spool / f"recovering-{new_id()}"
    staging.mkdir(parents=True)
    (staging / "stdout.zst").write_bytes(b"half of it")
    repair(store, dry_run=True)
    assert staging.exists()
    repair(store)
    assert not staging.exists()


def test_the_record_of_a_killed_program_keeps_the_contract(store: Store, database: str) -> None:
    name = kill_after(store, database, "write stdout said", "flush stdout")
    repair(store)
    detail = store.reader.invocation(name)
    stream = stream_of(detail, "stdout")
    assert detail.canonical_json is not None
    envelope = canonical_json.decode(detail.canonical_json)
    reason = (
        "the program that recorded it ended without finishing it, could not record its end, or was "
        "not told that its start is recorded; "
        "what it had not written to its spool yet is lost and cannot be counted"
    )
    assert envelope == {
        "tool_name": "Bash",
        "status": "error",
        "summary_text": "the call was interrupted before it was done",
        "result": None,
        "error": {
            "kind": "interrupted",
            "message": "the call was interrupted before it was done",
            "details": {
                "reason": reason,
                "partial_output": [
                    {"role": "stdout", "digest": stream.digest, "size": 5, "produced_size": 5}
                ],
            },
            "recovery_hint": "look at what it did before you make the call again",
            "retryable": True,
        },
    }
    assert [(o.stage, o.field, o.unit, o.before, o.after) for o in detail.omissions] == [
        ("projection", "stdout", "bytes", 5, 0),
        ("projection", "stdout", "lines", 1, 0),
    ]
    assert detail.receipt is not None
    assert detail.receipt.text.startswith("Error (interrupted): the call was interrupted")


def test_a_program_that_was_killed_before_it_printed_is_recovered_too(
    store: Store, database: str
) -> None:
    name = kill_after(store, database)
    assert repair(store).folders == (RepairedFolder(name, "interrupted"),)
    detail = store.reader.invocation(name)
    assert (detail.summary.state, detail.streams, detail.summary.truncated) == (
        "interrupted",
        (),
        False,
    )
    assert_clean(store)


def test_what_is_lost_in_the_middle_of_a_frame_counts_as_a_byte_at_least(
    store: Store, database: str
) -> None:
    name = kill_after(store, database, "write stdout kept", "flush stdout")
    file = store.spool / str(name) / "stdout.zst"
    lost = compress_frame(b"z" * 100).data
    with file.open("ab") as spool:
        spool.write(lost[:-1])

    (one,) = repair(store).folders

    assert one == RepairedFolder(name, "interrupted", recovered_bytes=5, lost_bytes=1)
    detail = store.reader.invocation(name)
    stream = stream_of(detail, "stdout")
    assert (stream.size, stream.produced_size) == (5, 6)
    assert stream.loss_reason == "the program that recorded it ended in the middle of a frame"
    assert [(o.stage, o.before, o.after) for o in detail.omissions if o.unit == "bytes"] == [
        ("capture", 6, 5),
        ("projection", 5, 0),
    ]
    assert_clean(store)


def test_a_damaged_file_is_recovered_up_to_there_and_kept(store: Store, database: str) -> None:
    name = kill_after(store, database, "write stdout kept", "flush stdout")
    file = store.spool / str(name) / "stdout.zst"
    with file.open("ab") as spool:
        spool.write(bytes(100))
    damaged = file.read_bytes()

    (one,) = repair(store).folders

    assert (one.outcome, one.recovered_bytes, one.lost_bytes) == ("interrupted", 5, 1)
    kept = store.spool / "kept" / str(name)
    problem = f"{kept / 'stdout.zst'} is damaged: the frame at byte 0 of the stored file ends there"
    assert one.reason == f"{problem}: zeros follow"
    assert one.kept_in == str(kept)
    detail = store.reader.invocation(name)
    assert content_of(store.reader, stream_of(detail, "stdout")) == b"kept\n"
    assert stream_of(detail, "stdout").loss_reason == one.reason
    assert (kept / "stdout.zst").read_bytes() == damaged
    assert names_in(store.spool) == ["kept"]
    assert not find_repairable(store)
    assert repair(store).folders == ()


def test_a_living_program_is_left_alone(store: Store, database: str) -> None:
    with writer_of(store, database) as writer:
        name = UUID(writer.do("start"))
        writer.do("write stdout so far")
        writer.do("flush stdout")
        assert not find_repairable(store)
        assert repair(store).folders == (RepairedFolder(name, "running"),)
        writer.do("write stdout further")
        writer.do("close stdout")
        writer.do("finish")
        detail = store.reader.invocation(name)
        assert detail.summary.state == "success"
        assert content_of(store.reader, stream_of(detail, "stdout")) == b"so far\nfurther\n"


def test_a_fork_that_lives_on_does_not_keep_its_parent_from_being_recovered(
    store: Store, database: str
) -> None:
    with writer_of(store, database) as writer:
        name = UUID(writer.do("start"))
        child = int(writer.do("fork"))
        try:
            writer.kill()
            assert repair(store).folders == (RepairedFolder(name, "interrupted"),)
        finally:
            os.kill(child, signal.SIGKILL)


def test_what_is_started_with_another_spool_is_only_counted(
    store: Store, database: str, tmp_path: Path
) -> None:
    root = store.archive.sink.url.removeprefix("file://")
    with open_store(database, artifacts=root, spool=tmp_path / "other") as other:
        invocation = other.open_session().start(BASH)
        assert repair(store) == replace(repair(store), folders=(), elsewhere_count=1)
        assert store.reader.invocation(invocation.id).summary.state == "started"
        assert names_in(other.spool)
        assert repair(other).elsewhere_count == 0


def test_what_another_store_has_in_the_same_spool_is_left_alone(
    store: Store, tmp_path: Path
) -> None:
    other = make_store(tmp_path / "other.db", artifacts=str(tmp_path / "other"), spool=store.spool)
    name = kill_after(other, str(tmp_path / "other.db"), "write stdout x", "flush stdout")
    empty = kill_after(other, str(tmp_path / "other.db"))
    assert not find_repairable(store)
    assert repair(store).folders == ()
    assert find_repairable(other) == Repairable(killed=(name, empty))
    assert [one.outcome for one in repair(other).folders] == ["interrupted"] * 2
    other.close()


def test_a_start_that_never_was_committed_leaves_nothing(store: Store) -> None:
    owner = SpoolOwner(store.spool, str(store.info.id))
    name = uuid4()
    owner.claim(name)
    del owner
    assert not find_repairable(store)
    assert repair(store, dry_run=True).folders == repair(store).folders
    assert names_in(store.spool) == []


def test_a_start_that_fails_leaves_no_folder(store: Store) -> None:
    session = store.open_session()
    session.close()
    with pytest.raises(Exception, match="is closed"):
        session.start(BASH)
    assert [name[:6] for name in names_in(store.spool)] == ["owner-"]


def test_output_of_an_invocation_that_nobody_knows_is_left_and_said(store: Store) -> None:
    folder = store.spool / str(uuid4())
    folder.mkdir(parents=True)
    (folder / "stdout.zst").write_bytes(compress_frame(b"whose?").data)
    (one,) = repair(store).folders
    assert (one.outcome, one.reason) == ("unknown", f"this store does not know {folder}")
    assert list(spooled_streams(folder)) == ["stdout"]
    assert not find_repairable(store)


def finished_with_leftovers(store: Store, output: bytes, left: bytes) -> UUID:
    """An invocation that has ended, with a folder as a crash behind the commit leaves it."""
    invocation = store.open_session().start(BASH)
    invocation.finish(command_output(invocation, output))
    folder = store.spool / str(invocation.id)
    folder.mkdir()
    (folder / "stdout.zst").write_bytes(compress_frame(left).data)
    return invocation.id


@pytest.mark.parametrize("output", [b"short\n", b"a long line of output\n" * 4_000])
def test_a_folder_whose_content_is_stored_goes(store: Store, output: bytes) -> None:
    name = finished_with_leftovers(store, output, output)
    assert find_repairable(store) == Repairable(leftover=(name,))
    (one,) = repair(store, dry_run=True).folders
    assert (one.outcome, find_repairable(store).leftover) == ("cleared", (name,))
    assert repair(store).folders == (one,)
    assert not (store.spool / str(name)).exists()
    assert not find_repairable(store)


def test_a_file_that_is_not_stored_is_kept_when_its_record_has_ended(store: Store) -> None:
    name = finished_with_leftovers(store, b"stored\n", b"not stored\n")
    (one,) = repair(store).folders
    kept = store.spool / "kept" / str(name)
    assert (one.outcome, one.kept_in) == ("kept", str(kept))
    assert one.reason == f"not in the store: stdout; kept in {kept}"
    assert (kept / "stdout.zst").is_file()
    assert not (store.spool / str(name)).exists()
    assert repair(store).folders == ()


def test_a_file_is_kept_when_its_artifact_has_gone(store: Store) -> None:
    output = b"a long line of output\n" * 4_000
    name = finished_with_leftovers(store, output, output)
    path = stream_of(store.reader.invocation(name), "stdout").artifact_path
    assert path is not None
    store.archive.sink.delete(path)
    assert [one.outcome for one in repair(store).folders] == ["kept"]


def test_a_file_that_cannot_be_kept_stays_where_it_is(store: Store) -> None:
    finished_with_leftovers(store, b"stored\n", b"not stored\n")
    (store.spool / "kept").write_text("in the way")
    (one,) = repair(store).folders
    assert one.outcome == "failed"
    assert "cannot be put away" in one.reason
    (store.spool / "kept").unlink()
    assert [one.outcome for one in repair(store).folders] == ["kept"]


def test_a_folder_that_cannot_be_removed_is_said(sqlite_store: Store) -> None:
    invocation = sqlite_store.open_session().start(BASH)
    invocation.interrupt("stopped")
    # Nobody can remove what something is mounted on.
    with small_disk(sqlite_store.spool / str(invocation.id), 1 << 20):
        (one,) = repair(sqlite_store).folders
        assert (one.outcome, one.reason) == ("failed", f"{invocation.spool} cannot be removed")


def test_the_order_of_chunks_is_recovered_and_counted_as_no_output(
    store: Store, database: str
) -> None:
    name = kill_after(
        store, database, "write stdout said", "flush stdout", "write order 1 5 0", "flush order"
    )
    assert repair(store).folders == (RepairedFolder(name, "interrupted", recovered_bytes=5),)
    detail = store.reader.invocation(name)
    assert content_of(store.reader, stream_of(detail, "order")) == b"1 5 0\n"
    assert detail.summary.output_size == 5
    assert {omission.field for omission in detail.omissions} == {"stdout"}
    assert_clean(store)


def test_a_dry_run_says_the_same_and_changes_nothing(store: Store, database: str) -> None:
    name = kill_after(store, database, "fill stdout 70000", "flush stdout")
    before = sorted(store.spool.rglob("*"))
    looked = repair(store, dry_run=True)
    assert sorted(store.spool.rglob("*")) == before
    assert store.reader.invocation(name).summary.state == "started"
    assert repair(store) == looked


def test_a_closed_session_takes_the_end_of_its_last_call(store: Store, database: str) -> None:
    name = kill_after(store, database, "write stdout x", "flush stdout")
    session = store.reader.invocation(name).summary.session_id
    store.join_session(session).close()
    assert [one.outcome for one in repair(store).folders] == ["interrupted"]
    assert_clean(store)


def test_a_family_that_this_program_does_not_know_is_no_obstacle(
    store: Store, database: str
) -> None:
    name = kill_after(store, database, "write stdout x", "flush stdout")
    root = store.archive.sink.url.removeprefix("file://")
    families = FamilyRegistry(generic.FAMILY)
    with open_store(database, artifacts=root, spool=store.spool, families=families) as other:
        assert [one.outcome for one in repair(other).folders] == ["interrupted"]
        assert other.reader.invocation(name).summary.family == "command"


def test_one_that_cannot_be_repaired_does_not_keep_the_others_from_it(
    store: Store, database: str
) -> None:
    bad = kill_after(store, database, "write stdout x", "flush stdout")
    good = kill_after(store, database, "write stdout y", "flush stdout")
    (store.spool / str(bad) / f"{'r' * 70}.zst").write_bytes(b"")
    first, second = repair(store).folders
    assert (first.invocation_id, first.outcome) == (bad, "failed")
    assert "no stream can have the role" in first.reason
    assert (second.invocation_id, second.outcome) == (good, "interrupted")
    assert store.reader.invocation(bad).summary.state == "started"
    # As it was, and without what was staged for it.
    assert names_in(store.spool) == [str(bad), f"{bad}.owner"]
    assert not list(store.spool.glob("recovering-*"))
    (store.spool / str(bad) / f"{'r' * 70}.zst").unlink()
    assert [one.outcome for one in repair(store).folders] == ["interrupted"]
    assert_clean(store)


def test_a_store_without_a_spool_has_nothing_to_repair(sqlite_store: Store) -> None:
    assert not find_repairable(sqlite_store)
    assert repair(sqlite_store).folders == ()


def test_a_spool_without_room_is_repaired_when_there_is_some_again(
    tmp_path: Path, sqlite_store: Store
) -> None:
    with small_disk(tmp_path / "disk", 8 << 20) as disk:
        database = str(sqlite_store.database.target)
        with open_store(database, spool=disk.folder / "spool") as store:
            name = kill_after(store, database, "fill stdout 2000000", "flush stdout")
            disk.fill()
            (one,) = repair(store).folders
            assert one.outcome == "failed"
            assert "low disk space: of 0 free bytes" in one.reason
            assert store.reader.invocation(name).summary.state == "started"
            disk.free()
            (one,) = repair(store).folders
            assert (one.outcome, one.recovered_bytes) == ("interrupted", 2_000_000)
            detail = store.reader.invocation(name)
            assert content_of(store.reader, stream_of(detail, "stdout")) == digits(2_000_000)


REPAIR = """
import sys
from pathlib import Path
from tooltrail.store import open_store, repair
with open_store(sys.argv[1], artifacts=sys.argv[2], spool=Path(sys.argv[3])) as store:
    for one in repair(store).folders:
        print(one.invocation_id, one.outcome)
"""


def start_repair(store: Store, database: str) -> subprocess.Popen[bytes]:
    root = store.archive.sink.url.removeprefix("file://")
    return subprocess.Popen(
        [sys.executable, "-c", REPAIR, database, root, str(store.spool)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        env={k: v for k, v in os.environ.items() if not k.startswith("COV")},
    )


def test_several_repairs_at_once_do_each_invocation_once(store: Store, database: str) -> None:
    names = {
        str(kill_after(store, database, "fill stdout 70000", "flush stdout")) for _ in range(3)
    }
    repairs = [start_repair(store, database) for _ in range(3)]
    done = [line.split() for process in repairs for line in process.communicate()[0].splitlines()]
    assert {process.returncode for process in repairs} == {0}
    assert sorted(done) == sorted([name.encode(), b"interrupted"] for name in names)
    assert_clean(store)


def test_an_interruption_that_is_witnessed_keeps_its_output_too(store: Store) -> None:
    invocation = store.open_session().start(BASH)
    partial = captured(invocation, "stdout", b"so far\n" * 5_000)
    finished = invocation.interrupt("the user pressed Ctrl-C", [partial])
    assert finished.state == "interrupted"
    detail = store.reader.invocation(invocation.id)
    assert content_of(store.reader, stream_of(detail, "stdout")) == b"so far\n" * 5_000
    assert detail.summary.duration_ms is not None
    del invocation
    assert not list(store.spool.glob("*-*-*-*-*/stdout.zst"))
    check_evidence(store)


def test_a_start_that_the_server_commits_after_its_client_died_is_waited_for(
    postgres_url: str, tmp_path: Path
) -> None:
    with make_store(postgres_url, artifacts=str(tmp_path / "a"), spool=tmp_path / "s") as store:
        session = store.open_session()
        name = uuid4()
        owner = SpoolOwner(store.spool, str(store.info.id))
        owner.claim(name)
        del owner
        family = store.families.named("command")
        started = Started(name, now(), BASH, family, store.policy)
        with ThreadPoolExecutor(1) as pool:
            with store.database.write() as connection:
                chain = writes.lock_chain(connection, session.key, session.id)
                write_started(
                    connection, chain, started.beginning, writes.Body.of(BASH.arguments_bytes)
                )
                done = pool.submit(repair, store)
                while not is_waited_for(store):
                    assert not done.done()
            # Committed while the repair was waiting.
            assert done.result().folders == (RepairedFolder(name, "interrupted"),)
        assert_clean(store)


def test_what_is_kept_is_for_its_owner_alone_however_open_the_umask_is(store: Store) -> None:
    name = new_id()
    folder = store.spool / str(name)
    (folder / "part").mkdir(parents=True)
    (folder / "part" / "stdout.zst").write_bytes(b"x")
    before = os.umask(0)
    try:
        put_away(folder, [folder / "part" / "stdout.zst"])
    finally:
        os.umask(before)
    made = [store.spool / "kept", store.spool / "kept" / str(name)]
    made.append(made[-1] / "part")
    assert [path.stat().st_mode & 0o777 for path in made] == [0o700] * 3
    assert (made[-1] / "stdout.zst").read_bytes() == b"x"


def is_waited_for(store: Store) -> bool:
    """Whether somebody waits for a lock in the database of a store."""
    waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
    with store.database.read() as connection:
        return bool(connection.scalar(waiting))


def test_in_a_file_in_the_place_of_the_spool_nothing_waits_to_be_repaired(
    sqlite_store: Store,
) -> None:
    shutil.rmtree(sqlite_store.spool)
    sqlite_store.spool.write_text("")
    assert find_repairable(sqlite_store) == Repairable()
