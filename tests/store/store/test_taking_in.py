"""What was set aside while a store was away is recorded in it: whole, as it was, and once."""

import json
import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from sqlalchemy import event, text
from tests.support.asides import (
    CALL,
    begin_aside,
    in_a_fork,
    output_of,
    record_of,
    rewrite_record,
    set_aside_whole,
    streams_of,
    wanted,
)
from tests.support.evidence import check_evidence, ledger_of
from tests.support.interleaving import before_write
from tests.support.killing import count_moments, run_and_kill
from tests.support.recording import content_of, stream_of
from tests.support.spools import left_in
from tests.support.upkeep import runs_of

from tooltrail.artifacts.codec import FRAME_SIZE
from tooltrail.records import (
    DEFAULT_POLICY,
    CompleteOutput,
    ContentItem,
    GenericOutput,
    StreamRecord,
    ToolError,
    UnavailableError,
)
from tooltrail.store import (
    Aside,
    Repairable,
    RepairedFolder,
    Store,
    WantedStore,
    find_repairable,
    iter_record_checks,
    iter_rerenderings,
    kept_folders,
    open_aside,
    open_store,
    repair,
    set_aside,
)
from tooltrail.store._recording.sessions import only_call_of

STEPS = 24
"""Moments of a repair, spread over it, at which it is killed."""

OUT = b"".join(b"line %d\n" % n for n in range(40_000))
ERR = b"a warning\n"


def id_of(aside: Aside) -> UUID:
    return UUID(record_of(aside)["id"])


def assert_clean(store: Store) -> None:
    """Nothing is left in the spool, and what the store holds is whole and as its ledger says."""
    # The file of this process, which lives, may be there still.
    assert left_in(store.spool) == []
    assert not find_repairable(store)
    check_evidence(store)
    assert {check.problem for check in iter_record_checks(store.reader)} <= {""}
    assert {r.state for r in iter_rerenderings(store.reader, store.families)} <= {"same"}


def assert_left(store: Store, aside: Aside, reason: str) -> None:
    """It cannot be read, which is said, and nothing is done about it."""
    before = {path.name: path.read_bytes() for path in aside.folder.iterdir()}
    for dry_run in (True, False):
        (left,) = repair(store, dry_run=dry_run).folders
        assert left.outcome == "unreadable"
        assert reason in left.reason
        assert str(aside.folder) in left.reason
    assert {path.name: path.read_bytes() for path in aside.folder.iterdir()} == before
    assert store.reader.counts().invocations == {}
    assert runs_of(store) == []


@pytest.mark.parametrize("by_id", [True, False])
def test_a_record_that_was_set_aside_is_recorded_whole_and_as_it_was(
    store: Store, by_id: bool
) -> None:
    policy = DEFAULT_POLICY.for_tool("exec", preview_chars=900)
    aside = set_aside_whole(
        store.spool, wanted(store, by_id=by_id), policy=policy, stdout=OUT, stderr=ERR
    )
    record, name = record_of(aside), id_of(aside)
    covering = policy.covering(store.families)
    assert find_repairable(store) == Repairable(set_aside=(name,))

    report = repair(store)

    assert report.folders == (RepairedFolder(name, "recorded", len(OUT) + len(ERR)),)
    detail = store.reader.invocation(name)
    summary = detail.summary
    assert (summary.state, summary.exit_status, summary.call_id) == ("success", 3, "call 1")
    assert detail.arguments == CALL.arguments_bytes
    assert summary.started_at.isoformat() == record["started_at"]
    assert summary.finished_at is not None
    assert summary.finished_at.isoformat() == record["finished_at"]
    elapsed = (summary.finished_at - summary.started_at).total_seconds()
    assert summary.duration_ms == round(elapsed * 1000)
    assert content_of(store.reader, stream_of(detail, "stdout")) == OUT
    assert content_of(store.reader, stream_of(detail, "stderr")) == ERR
    assert json.loads(detail.complete_json or "") == record["complete_output"]
    assert detail.policy_digest == covering.digest
    assert detail.receipt is not None
    assert len(detail.receipt.text) < 2_000
    assert_clean(store)


def test_it_has_a_session_of_its_own_with_the_times_and_the_place_of_the_call(
    store: Store,
) -> None:
    record = record_of(set_aside_whole(store.spool, wanted(store), stdout=OUT))
    repair(store)
    (session,) = store.reader.sessions()
    assert session.opened_at.isoformat() == record["started_at"]
    assert session.closed_at is not None
    assert session.closed_at.isoformat() == record["finished_at"]
    assert json.loads(session.environment) == record["environment"]
    assert [entry.kind for entry in ledger_of(store, session.id)] == [
        "session.opened",
        "invocation.started",
        "invocation.finished",
        "session.closed",
    ]


def test_a_failure_is_recorded_as_that_failure(store: Store) -> None:
    aside = begin_aside(store.spool, wanted(store))
    error = ToolError(kind="command_spawn_failed", message="no such command", details={"n": 1.5})
    aside.finish(CompleteOutput.failure("exec", error))
    record = record_of(aside)
    repair(store)
    detail = store.reader.invocation(UUID(record["id"]))
    assert (detail.summary.state, detail.summary.error_kind) == ("error", "command_spawn_failed")
    assert json.loads(detail.complete_json or "") == record["complete_output"]
    assert_clean(store)


def test_it_goes_to_the_session_that_it_named_when_that_is_open(store: Store) -> None:
    session = store.open_session()
    aside = set_aside_whole(store.spool, wanted(store), session=str(session.id)[-12:], stdout=OUT)
    name = id_of(aside)
    assert [one.reason for one in repair(store).folders] == [""]
    assert store.reader.invocation(name).summary.session_id == session.id
    (view,) = store.reader.sessions()
    assert view.closed_at is None
    assert_clean(store)


@pytest.mark.parametrize("name", ["closed", "dead", "@last"])
def test_where_the_session_that_it_named_takes_none_it_has_its_own_and_that_is_said(
    store: Store, name: str
) -> None:
    with store.open_session() as session:
        pass
    given = str(session.id) if name == "closed" else name
    why = {
        "closed": f"session {session.id} is closed",
        "dead": "no session is named 'dead'",
        "@last": "which session was @last then is not known",
    }[name]
    set_aside_whole(store.spool, wanted(store), session=given, stdout=OUT)

    (one,) = repair(store).folders

    assert (one.outcome, one.reason) == ("recorded", f"in a session of its own: {why}")
    own, _ = store.reader.sessions()
    assert own.title == f"set aside for session {given}"
    assert own.closed_at is not None
    assert_clean(store)


def test_what_was_lost_of_its_output_stays_counted(store: Store) -> None:
    aside = begin_aside(store.spool, wanted(store))
    streams = streams_of(aside, stdout=OUT)
    lossy = {"produced_line_count": 50_000, "loss_reason": "the disk was full"}
    for role in ("stdout", "stderr"):
        update = {**lossy, "produced_size": streams[role].size + 100}
        streams[role] = streams[role].model_copy(update=update)
    aside.finish(output_of(streams))
    name = id_of(aside)
    repair(store)
    detail = store.reader.invocation(name)
    for role, data in (("stdout", OUT), ("stderr", b"")):
        stream = stream_of(detail, role)
        assert (stream.produced_size, stream.loss_reason) == (len(data) + 100, "the disk was full")
        assert content_of(store.reader, stream) == data
    assert detail.summary.truncated
    assert_clean(store)


def test_the_account_of_a_repair_names_what_it_recorded(store: Store) -> None:
    name = id_of(set_aside_whole(store.spool, wanted(store), stdout=ERR))
    repair(store)
    (run,) = runs_of(store)
    assert run.report is not None
    assert run.report["folders"] == [
        {
            "invocation_id": str(name),
            "outcome": "recorded",
            "recovered_bytes": len(ERR),
            "lost_bytes": 0,
        }
    ]


def test_a_dry_run_looks_and_changes_nothing(store: Store) -> None:
    aside = set_aside_whole(store.spool, wanted(store), stdout=OUT)
    (one,) = repair(store, dry_run=True).folders
    assert (one.outcome, one.recovered_bytes) == ("recorded", len(OUT))
    assert sorted(path.name for path in aside.folder.iterdir()) == ["record.json", "stdout.zst"]
    assert store.reader.counts().invocations == {}


def test_it_is_recorded_once_although_it_comes_back(store: Store, tmp_path: Path) -> None:
    aside = set_aside_whole(store.spool, wanted(store), stdout=OUT)
    name, copy = id_of(aside), tmp_path / "copy"
    shutil.copytree(aside.folder, copy)
    repair(store)
    shutil.copytree(copy, aside.folder)
    assert repair(store).folders == (
        RepairedFolder(name, "cleared", reason="its record had ended already"),
    )
    assert store.reader.counts().invocations == {"success": 1}
    assert_clean(store)


def test_repairs_at_the_same_time_record_it_once(store: Store, database: str) -> None:
    for n in range(6):
        set_aside_whole(store.spool, wanted(store), stdout=b"%d\n" % n + OUT)

    def mend(_: int) -> list[str]:
        root = store.archive.sink.url
        with open_store(database, artifacts=root, spool=store.spool) as again:
            return [one.outcome for one in repair(again).folders]

    with ThreadPoolExecutor(3) as pool:
        outcomes = [outcome for found in pool.map(mend, range(3)) for outcome in found]
    assert outcomes == ["recorded"] * 6
    assert store.reader.counts().invocations == {"success": 6}
    assert_clean(store)


def test_another_spool_is_looked_into_when_it_is_named(store: Store, tmp_path: Path) -> None:
    aside = set_aside_whole(tmp_path / "own", wanted(store), stdout=OUT)
    name = id_of(aside)
    assert repair(store).folders == ()
    assert find_repairable(store, also=[tmp_path / "own"]) == Repairable(set_aside=(name,))
    report = repair(store, also=[tmp_path / "own", store.spool, tmp_path / "nowhere"])
    assert [one.outcome for one in report.folders] == ["recorded"]
    assert not aside.folder.exists()


def test_a_record_whose_program_lives_is_left_alone(store: Store) -> None:
    def task() -> Aside:
        aside = begin_aside(store.spool, wanted(store))
        aside.capture("stdout").write(OUT)
        return aside

    with in_a_fork(task):
        assert [one.outcome for one in repair(store).folders] == ["running"]
        assert [one.state for one in set_aside(store)] == ["running"]
        assert not find_repairable(store)
    assert [one.state for one in set_aside(store)] == ["unfinished"]


@pytest.mark.parametrize("named", [True, False])
def test_a_record_of_a_killed_program_is_interrupted_with_what_it_had_printed(
    store: Store, named: bool
) -> None:
    session = store.open_session() if named else None

    def task() -> Aside:
        where = str(session.id) if session else None
        aside = begin_aside(store.spool, wanted(store), session=where)
        capture = aside.capture("stdout")
        capture.write(OUT)
        capture.flush()
        return aside

    with in_a_fork(task) as kill:
        kill()
    (waiting,) = set_aside(store)

    (one,) = repair(store).folders

    assert one == RepairedFolder(waiting.invocation_id, "interrupted", len(OUT))
    detail = store.reader.invocation(waiting.invocation_id)
    summary = detail.summary
    assert (summary.state, summary.duration_ms) == ("interrupted", None)
    assert summary.started_at == waiting.started_at
    assert content_of(store.reader, stream_of(detail, "stdout")) == OUT
    (view,) = store.reader.sessions()
    last = ledger_of(store, view.id)[-1]
    if named:
        assert view.closed_at is None
    else:
        assert (last.kind, last.payload) == (
            "session.closed",
            {"reason": "its only call was interrupted"},
        )
    assert_clean(store)


def test_a_record_that_never_began_is_cleared(store: Store) -> None:
    aside = begin_aside(store.spool, wanted(store))
    (aside.folder / "record.json").unlink()
    assert repair(store).folders == ()  # this process lives
    assert set_aside(store) == []
    del aside
    (link,) = store.spool.glob("*.owner")
    link.unlink()
    assert [one.outcome for one in repair(store, dry_run=True).folders] == ["cleared"]
    assert [(one.outcome, one.reason) for one in repair(store).folders] == [
        ("cleared", "it never began")
    ]
    assert_clean(store)


def test_output_without_a_record_is_left(store: Store) -> None:
    aside = set_aside_whole(store.spool, wanted(store), stdout=OUT)
    (aside.folder / "record.json").unlink()
    assert_left(store, aside, "it has output and no record")
    assert [one.state for one in set_aside(store)] == ["unreadable"]


def cut(aside: Aside) -> str:
    path = aside.folder / "record.json"
    path.write_bytes(path.read_bytes()[:-100])
    return "record.json is not whole: it is no JSON"


def edited(aside: Aside) -> str:
    path = aside.folder / "record.json"
    path.write_text(path.read_text().replace('"exit_status":3', '"exit_status":0'))
    return "record.json was altered: it is not what its digest names"


def no_object(aside: Aside) -> str:
    (aside.folder / "record.json").write_text("[]")
    return "record.json is not a record: it is no JSON object"


def newer(aside: Aside) -> str:
    rewrite_record(aside, schema_version=2)
    return "record.json is of version 2, this program reads version 1"


def lacking(aside: Aside) -> str:
    rewrite_record(aside, call={"arguments_raw": "{}"})
    return "record.json is not a record: call.tool_name: Field required"


def of_another(aside: Aside) -> str:
    other = str(uuid4())
    rewrite_record(aside, id=other)
    return f"record.json is of invocation {other}"


def of_no_family(aside: Aside) -> str:
    rewrite_record(aside, family="nobody")
    return "nobody"


def with_no_policy(aside: Aside) -> str:
    rewrite_record(aside, policy={"families": 1})
    return "not a policy"


def of_another_kind(aside: Aside) -> str:
    output = record_of(aside)["complete_output"]
    rewrite_record(aside, complete_output={**output, "status": "error"})
    return "its complete output is none of family command"


def with_a_flipped_byte(aside: Aside) -> str:
    path = aside.folder / "stdout.zst"
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 1
    path.write_bytes(data)
    return "stdout.zst was cut or altered since it was captured"


def with_a_cut_stream(aside: Aside) -> str:
    path = aside.folder / "stdout.zst"
    path.write_bytes(path.read_bytes()[:100])
    return "stdout.zst was cut or altered since it was captured"


def without_a_stream(aside: Aside) -> str:
    (aside.folder / "stdout.zst").unlink()
    return "stdout.zst is missing"


def with_one_more_stream(aside: Aside) -> str:
    shutil.copy(aside.folder / "stdout.zst", aside.folder / "more.zst")
    return "more.zst is not told of in record.json"


@pytest.mark.parametrize(
    "damage",
    [
        cut,
        edited,
        no_object,
        newer,
        lacking,
        of_another,
        with_a_flipped_byte,
        with_a_cut_stream,
        without_a_stream,
        with_one_more_stream,
    ],
)
def test_what_is_not_as_it_was_written_is_left_and_named(
    sqlite_store: Store, damage: Callable[[Aside], str]
) -> None:
    aside = set_aside_whole(sqlite_store.spool, wanted(sqlite_store), stdout=OUT)
    reason = damage(aside)
    assert_left(sqlite_store, aside, reason)


@pytest.mark.parametrize("damage", [of_no_family, with_no_policy, of_another_kind])
def test_what_this_program_cannot_record_is_left_and_named(
    sqlite_store: Store, damage: Callable[[Aside], str]
) -> None:
    aside = set_aside_whole(sqlite_store.spool, wanted(sqlite_store), stdout=OUT)
    reason = damage(aside)
    (left,) = repair(sqlite_store).folders
    assert (left.outcome, reason in left.reason) == ("unreadable", True)
    assert (aside.folder / "stdout.zst").is_file()
    assert sqlite_store.reader.counts().invocations == {}
    assert sqlite_store.reader.sessions() == []


def test_one_that_cannot_be_read_does_not_keep_the_others_from_it(sqlite_store: Store) -> None:
    edited(set_aside_whole(sqlite_store.spool, wanted(sqlite_store), stdout=OUT))
    set_aside_whole(sqlite_store.spool, wanted(sqlite_store), stdout=OUT)
    outcomes = [one.outcome for one in repair(sqlite_store).folders]
    assert outcomes == ["unreadable", "recorded"]


@pytest.mark.parametrize("by", ["place", "id"])
def test_a_record_for_another_store_is_left_alone_and_said(store: Store, by: str) -> None:
    place = store.database.target.place
    other = WantedStore(database="postgresql://elsewhere:5432/records")
    said = other.database
    if by == "id":
        other = WantedStore(database=place, id=uuid4())
        said = f"store {other.id} in {place}"
    aside = set_aside_whole(store.spool, other, stdout=OUT)
    name = id_of(aside)
    assert repair(store).folders == (RepairedFolder(name, "foreign", reason=f"it is for {said}"),)
    assert [(one.state, one.database) for one in set_aside(store)] == [("foreign", other.database)]
    assert not find_repairable(store)
    assert runs_of(store) == []
    assert (aside.folder / "stdout.zst").is_file()


def test_a_store_that_was_moved_is_known_by_its_id(sqlite_store: Store) -> None:
    moved = WantedStore(database="/somewhere/else.db", id=sqlite_store.info.id)
    set_aside_whole(sqlite_store.spool, moved, stdout=OUT)
    assert [one.outcome for one in repair(sqlite_store).folders] == ["recorded"]


def test_while_the_artifacts_are_away_it_stays_as_it_is(store: Store) -> None:
    aside = set_aside_whole(store.spool, wanted(store), stdout=OUT)
    name = id_of(aside)
    root = Path(store.archive.sink.url.removeprefix("file://"))
    root.rename(root.with_name("unmounted"))
    assert [one.outcome for one in repair(store).folders] == ["failed"]
    assert store.reader.counts().invocations == {}
    assert store.reader.sessions() == []
    root.with_name("unmounted").rename(root)
    assert [one.outcome for one in repair(store).folders] == ["recorded"]
    assert stream_of(store.reader.invocation(name), "stdout").artifact_path is not None
    assert_clean(store)


def test_a_store_that_refuses_its_end_has_nothing_of_it(sqlite_store: Store) -> None:
    set_aside_whole(sqlite_store.spool, wanted(sqlite_store), stdout=OUT)
    with sqlite_store.database.write() as connection:
        connection.execute(
            text(
                "CREATE TRIGGER refuse BEFORE INSERT ON receipts "
                "BEGIN SELECT RAISE(ABORT, 'not now'); END"
            )
        )
    (one,) = repair(sqlite_store).folders
    assert (one.outcome, one.reason.endswith("refused the record: not now")) == ("failed", True)
    counts = sqlite_store.reader.counts()
    assert (counts.invocations, counts.sessions) == ({}, 0)
    with sqlite_store.database.write() as connection:
        connection.execute(text("DROP TRIGGER refuse"))
    assert [one.outcome for one in repair(sqlite_store).folders] == ["recorded"]


def test_a_spool_that_takes_nothing_loses_the_output_and_says_so(
    sqlite_store: Store, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    aside = begin_aside(tmp_path / "file" / "spool", wanted(sqlite_store))
    assert not aside.is_begun
    streams = streams_of(aside, stdout=OUT)
    assert (streams["stdout"].size, streams["stdout"].produced_size) == (0, len(OUT))
    with pytest.raises(UnavailableError, match="cannot be written: Not a directory"):
        aside.finish(output_of(streams))


def test_a_spool_that_can_be_written_again_at_the_end_takes_the_whole_record(
    sqlite_store: Store, tmp_path: Path
) -> None:
    spool = tmp_path / "file"
    spool.write_text("")
    aside = begin_aside(spool, wanted(sqlite_store))
    assert not aside.is_begun
    spool.unlink()
    aside.finish(output_of(streams_of(aside, stdout=OUT)))
    assert [one.outcome for one in repair(sqlite_store, also=[spool]).folders] == ["recorded"]
    assert_clean(sqlite_store)


def test_a_repair_of_a_copy_that_is_quicker_leaves_nothing_to_record(
    sqlite_store: Store, tmp_path: Path
) -> None:
    aside = set_aside_whole(sqlite_store.spool, wanted(sqlite_store), stdout=OUT)
    shutil.copytree(aside.folder, tmp_path / "copy" / aside.folder.name)
    outcomes: list[str] = []

    def be_quicker() -> None:
        with open_store(str(sqlite_store.database.target), spool=tmp_path / "copy") as other:
            outcomes[:] = [one.outcome for one in repair(other).folders]

    with before_write(sqlite_store, be_quicker):
        (one,) = repair(sqlite_store).folders
    assert (outcomes, one.outcome) == (["recorded"], "cleared")
    assert sqlite_store.reader.counts().invocations == {"success": 1}
    assert_clean(sqlite_store)


def test_streams_in_the_lists_of_a_result_are_recorded(store: Store) -> None:
    aside = open_aside(
        [store.spool],
        CALL,
        wanted=wanted(store),
        session=None,
        family="generic",
        policy=DEFAULT_POLICY,
    )
    streams: list[StreamRecord] = []
    for n, data in enumerate((OUT, ERR)):
        capture = aside.capture(f"content.{n}")
        capture.write(data)
        streams.append(capture.close().record)
    result = GenericOutput(content=tuple(ContentItem(stream=stream) for stream in streams))
    aside.finish(CompleteOutput.success("exec", result))
    name = id_of(aside)
    assert [one.outcome for one in repair(store).folders] == ["recorded"]
    detail = store.reader.invocation(name)
    assert content_of(store.reader, stream_of(detail, "content.0")) == OUT
    assert content_of(store.reader, stream_of(detail, "content.1")) == ERR
    assert detail.summary.family == "generic"
    assert_clean(store)


def test_a_small_output_is_published_where_the_policy_keeps_none_inline(store: Store) -> None:
    policy = DEFAULT_POLICY.model_copy(update={"inline_bytes": 0})
    aside = set_aside_whole(store.spool, wanted(store), policy=policy, stdout=ERR)
    name = id_of(aside)
    assert [one.outcome for one in repair(store).folders] == ["recorded"]
    assert stream_of(store.reader.invocation(name), "stdout").artifact_path is not None
    assert_clean(store)


def test_a_record_that_the_system_cannot_read_is_tried_again(sqlite_store: Store) -> None:
    aside = set_aside_whole(sqlite_store.spool, wanted(sqlite_store), stdout=OUT)
    path = aside.folder / "record.json"
    data = path.read_bytes()
    path.unlink()
    path.symlink_to("/proc/self/mem")
    (one,) = repair(sqlite_store).folders
    assert (one.outcome, one.reason) == ("failed", f"{path} cannot be read: Input/output error")
    path.unlink()
    path.write_bytes(data)
    assert [one.outcome for one in repair(sqlite_store).folders] == ["recorded"]


def test_a_damaged_file_of_a_killed_program_is_kept_beside_what_is_recovered(
    sqlite_store: Store,
) -> None:
    noise = os.urandom(3 * FRAME_SIZE)

    def task() -> Aside:
        aside = begin_aside(sqlite_store.spool, wanted(sqlite_store))
        capture = aside.capture("stdout")
        capture.write(noise)
        capture.flush()
        return aside

    with in_a_fork(task) as kill:
        kill()
    (waiting,) = set_aside(sqlite_store)
    path = waiting.path / "stdout.zst"
    data = bytearray(path.read_bytes())
    data[FRAME_SIZE + 9_000] ^= 0xFF  # in the second frame
    path.write_bytes(data)
    (one,) = repair(sqlite_store).folders
    assert (one.outcome, one.recovered_bytes) == ("interrupted", FRAME_SIZE)
    assert "stdout.zst" in one.reason
    kept = sqlite_store.spool / "kept" / waiting.path.name / "stdout.zst"
    assert kept.read_bytes() == bytes(data)
    assert repair(sqlite_store).folders == ()


def test_a_damaged_end_behind_all_that_was_told_is_kept_and_said(sqlite_store: Store) -> None:
    aside = set_aside_whole(sqlite_store.spool, wanted(sqlite_store), stdout=OUT)
    path = aside.folder / "stdout.zst"
    with path.open("ab") as file:
        file.write(bytes(100))
    (one,) = repair(sqlite_store).folders
    kept = sqlite_store.spool / "kept" / aside.folder.name
    assert (one.outcome, one.lost_bytes, one.kept_in) == ("recorded", 0, str(kept))
    assert one.reason.startswith(f"{kept / 'stdout.zst'} is damaged: no frame begins at byte ")
    assert kept_folders(sqlite_store) == [kept]


def test_a_session_whose_opening_cannot_be_read_is_left_open(sqlite_store: Store) -> None:
    own = sqlite_store.start_alone(CALL)
    with sqlite_store.database.write() as connection:
        connection.execute(text("DROP TRIGGER ledger_entries_no_update"))
        connection.execute(text("UPDATE ledger_entries SET payload = '{' WHERE n = 0"))
        key = connection.scalar(text("SELECT key FROM sessions"))
        assert key is not None
        assert only_call_of(connection, key) is None
        connection.execute(text("UPDATE ledger_entries SET payload = '[]' WHERE n = 0"))
        assert only_call_of(connection, key) is None
        payload = {"id": f'{{"only_call":"{own.id}"}}'}
        connection.execute(text("UPDATE ledger_entries SET payload = :id WHERE n = 0"), payload)
        assert only_call_of(connection, key) == own.id


@pytest.mark.parametrize("name", ["known", "closed", "unknown"])
def test_the_session_is_found_on_the_connection_that_has_the_store_for_itself(
    sqlite_store: Store, name: str
) -> None:
    session = sqlite_store.open_session()
    if name == "closed":
        session.close()
    named = str(uuid4()) if name == "unknown" else str(session.id)
    set_aside_whole(sqlite_store.spool, wanted(sqlite_store), session=named, stdout=ERR)
    pool, in_use = sqlite_store.database.engine.pool, [0]
    most: list[int] = []

    def take(*_: object) -> None:
        in_use[0] += 1
        most.append(in_use[0])

    def give(*_: object) -> None:
        in_use[0] -= 1

    event.listen(pool, "checkout", take)
    event.listen(pool, "checkin", give)
    try:
        (one,) = repair(sqlite_store).folders
    finally:
        event.remove(pool, "checkout", take)
        event.remove(pool, "checkin", give)
    assert one.outcome == "recorded"
    assert max(most) == 1
    place = sqlite_store.reader.invocation(one.invocation_id).summary.session_id
    assert (place == session.id) == (name == "known") == (not one.reason)


def mend(database: str) -> None:
    with open_store(database) as store:
        repair(store)


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_repair_that_is_killed_at_each_of_its_steps_records_it_once(
    sqlite_store: Store, is_whole: bool
) -> None:
    database = str(sqlite_store.database.target)

    def leave(seed: int) -> UUID:
        content = b"call %d\n" % seed + OUT
        if is_whole:
            return id_of(set_aside_whole(sqlite_store.spool, wanted(sqlite_store), stdout=content))

        def task() -> Aside:
            aside = begin_aside(sqlite_store.spool, wanted(sqlite_store))
            capture = aside.capture("stdout")
            capture.write(content)
            capture.flush()
            return aside

        with in_a_fork(task) as kill:
            kill()
        return set_aside(sqlite_store)[-1].invocation_id

    # What a repair imports is not to be counted: one that is killed later has it already.
    leave(STEPS + 1)
    mend(database)
    leave(0)
    steps = count_moments(partial(mend, database))
    ended = "success" if is_whole else "interrupted"
    late = 0
    for step in range(STEPS):
        name = leave(step + 1)
        # A few calls more or less are made from time to time, so that the last may come too late.
        late += run_and_kill(partial(mend, database), 1 + step * steps // STEPS)
        repair(sqlite_store)
        detail = sqlite_store.reader.invocation(name)
        assert detail.summary.state == ended
        stdout = content_of(sqlite_store.reader, stream_of(detail, "stdout"))
        assert stdout == b"call %d\n" % (step + 1) + OUT
    assert late <= STEPS // 6
    assert sqlite_store.reader.counts().invocations == {ended: STEPS + 2}
    assert all(session.closed_at for session in sqlite_store.reader.sessions())
    assert_clean(sqlite_store)
