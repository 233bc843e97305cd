"""A start that may be in the store although nobody said so is one record in the end."""

import json
import shutil
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy import event, text
from tests.support.asides import (
    CALL,
    begin_aside,
    in_a_fork,
    set_aside_whole,
    wanted,
)
from tests.support.evidence import check_evidence, ledger_of
from tests.support.interleaving import before_write
from tests.support.lossy_server import LossyServer
from tests.support.recording import content_of, stream_of
from tests.support.spools import left_in
from tests.support.template_stores import make_store

from tooltrail.artifacts import encode, is_in_use, is_spooled, remove_spool_folder
from tooltrail.records import (
    DEFAULT_POLICY,
    FamilyRegistry,
    InvalidRecordError,
    StartUncertainError,
    ToolCall,
    default_families,
)
from tooltrail.store import (
    OnUnavailable,
    Repairable,
    RepairedFolder,
    Store,
    Unended,
    find_repairable,
    find_unended,
    iter_record_checks,
    iter_rerenderings,
    new_id,
    open_store,
    repair,
    set_aside,
)
from tooltrail.store._recording.sessions import Opening, write_opened
from tooltrail.store._recording.starting import Started, commit_start

OUT = b"".join(b"line %d\n" % n for n in range(40_000))


@pytest.fixture
def on_unavailable() -> OnUnavailable:
    """Errors are what is tried."""
    return "raise"


def uncertain(store: Store, name: UUID) -> StartUncertainError:
    """What a program is told that lost the answer, and what it leaves in the spool."""
    folder = store.owner.claim(name)
    return StartUncertainError("the answer was lost", invocation_id=name, folder=folder)


def dead_link(store: Store, name: UUID) -> None:
    """What a program leaves that is killed while it has an invocation."""
    owner = f"owner-{store.info.id}-0123456789abcdef"
    (store.spool / f"{name}.owner").symlink_to(owner)


def assert_whole(store: Store) -> None:
    """Nothing is left to repair, and what the store holds is whole and as its ledger says."""
    assert left_in(store.spool) == []
    assert not find_repairable(store)
    check_evidence(store)
    assert {check.problem for check in iter_record_checks(store.reader)} <= {""}
    assert {r.state for r in iter_rerenderings(store.reader, store.families)} <= {"same"}


def test_a_start_whose_answer_was_lost_is_ended_when_its_program_is_gone(
    lossy: LossyServer, postgres_url: str, tmp_path: Path
) -> None:
    spool = tmp_path / "spool"
    lossy.lose_an_answer()

    def task() -> object:
        store = open_store(lossy.url, spool=spool, on_unavailable="raise")
        with pytest.raises(StartUncertainError) as caught:
            store.start_alone(CALL)
        error = caught.value
        assert error.folder == spool / str(error.invocation_id)
        assert is_in_use(error.folder)
        assert str(error).endswith(
            f"; whether the start of invocation {error.invocation_id} is recorded is not known"
        )
        return store

    artifacts = str(tmp_path / "artifacts")
    with make_store(postgres_url, artifacts=artifacts, spool=spool) as store:
        with in_a_fork(task) as kill:
            (row,) = store.reader.invocations().items
            assert row.state == "started"
            assert repair(store).folders == (RepairedFolder(row.id, "running"),)
            kill()
        assert repair(store).folders == (RepairedFolder(row.id, "interrupted"),)
        error = json.loads(store.reader.invocation(row.id).complete_json or "")["error"]
        assert "was not told that its start is recorded" in error["details"]["reason"]
        assert all(session.closed_at for session in store.reader.sessions())
        assert_whole(store)


def test_a_start_that_was_refused_leaves_nothing_in_the_spool(sqlite_store: Store) -> None:
    with sqlite_store.database.write() as connection:
        connection.execute(text("CREATE TABLE parent (id INTEGER PRIMARY KEY)"))
        connection.execute(
            text(
                "CREATE TABLE child (id INTEGER"
                " REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED)"
            )
        )
        connection.execute(
            text(
                "CREATE TRIGGER refuse AFTER INSERT ON invocations"
                " BEGIN INSERT INTO child VALUES (1); END"
            )
        )
    # The statement is taken, and the commit is not.
    with pytest.raises(InvalidRecordError):
        sqlite_store.start_alone(CALL)
    assert [path for path in sqlite_store.spool.iterdir() if path.suffix == ".owner"] == []


def test_a_program_that_is_interrupted_at_its_commit_leaves_its_claim(sqlite_store: Store) -> None:
    def press_ctrl_c(_: object) -> None:
        raise KeyboardInterrupt

    engine = sqlite_store.database.engine
    event.listen(engine, "commit", press_ctrl_c)
    try:
        with pytest.raises(KeyboardInterrupt):
            sqlite_store.start_alone(CALL)
    finally:
        event.remove(engine, "commit", press_ctrl_c)
    (link,) = sqlite_store.spool.glob("*-*.owner")
    assert is_in_use(link.with_suffix(""))


@pytest.mark.parametrize("in_session", [False, True])
def test_what_was_set_aside_ends_what_had_been_started(store: Store, in_session: bool) -> None:
    session = store.open_session()
    starting = session.start if in_session else store.start_alone
    started = starting(CALL, family="command")
    attempted = uncertain(store, started.id)
    aside = set_aside_whole(
        store.spool,
        wanted(store),
        session=str(session.id) if in_session else None,
        attempted=attempted,
        stdout=OUT,
    )
    assert aside.folder.name == f"aside-{started.id}"
    assert not is_spooled(attempted.folder)

    for dry_run in (True, False):
        found = repair(store, dry_run=dry_run).folders
        assert found == (RepairedFolder(started.id, "recorded", len(OUT)),)

    detail = store.reader.invocation(started.id)
    summary = detail.summary
    assert (summary.state, summary.exit_status) == ("success", 3)
    assert summary.started_at == started.started_at
    assert content_of(store.reader, stream_of(detail, "stdout")) == OUT
    own = store.reader.session(summary.session_id)
    assert (own.id == session.id) == in_session
    assert (own.closed_at is None) == in_session
    kinds = ["session.opened", "invocation.started", "invocation.finished"]
    expected = kinds if in_session else [*kinds, "session.closed"]
    assert [entry.kind for entry in ledger_of(store, own.id)] == expected
    assert store.reader.counts().invocations == {"success": 1}
    assert_whole(store)


def test_a_start_that_never_came_through_is_recorded_with_its_id(store: Store) -> None:
    name = new_id()
    attempted = uncertain(store, name)
    set_aside_whole(store.spool, wanted(store), attempted=attempted, stdout=OUT)
    assert repair(store).folders == (RepairedFolder(name, "recorded", len(OUT)),)
    assert store.reader.counts().invocations == {"success": 1}
    assert_whole(store)


def test_a_program_that_is_killed_after_an_uncertain_start_is_interrupted_once(
    store: Store, database: str
) -> None:
    session = store.open_session()

    def task() -> object:
        spool = store.spool
        own = open_store(database, spool=spool, on_unavailable="raise")
        started = own.join_session(session.id).start(CALL, family="command")
        aside = begin_aside(spool, wanted(store), attempted=uncertain(own, started.id))
        capture = aside.capture("stdout")
        capture.write(OUT)
        capture.flush()
        return own, aside, capture

    with in_a_fork(task) as kill:
        assert [one.outcome for one in repair(store).folders] == ["running"]
        kill()
    (one,) = repair(store).folders
    assert (one.outcome, one.recovered_bytes) == ("interrupted", len(OUT))
    assert store.reader.counts().invocations == {"interrupted": 1}
    assert_whole(store)


def test_both_that_a_killed_program_left_are_one_record(sqlite_store: Store) -> None:
    started = sqlite_store.start_alone(CALL, family="command")
    attempted = uncertain(sqlite_store, started.id)
    set_aside_whole(sqlite_store.spool, wanted(sqlite_store), attempted=attempted, stdout=OUT)
    # As if it had been killed after its record was durable, and before that took this place.
    dead_link(sqlite_store, started.id)
    found = {one.outcome: one.recovered_bytes for one in repair(sqlite_store).folders}
    assert found == {"recorded": len(OUT), "cleared": 0}
    assert sqlite_store.reader.counts().invocations == {"success": 1}
    assert_whole(sqlite_store)


def test_an_end_that_is_not_the_stored_one_is_kept_with_its_output(
    store: Store, tmp_path: Path
) -> None:
    started = store.start_alone(CALL, family="command")
    attempted = uncertain(store, started.id)
    own = tmp_path / "own"
    aside = set_aside_whole(own, wanted(store), attempted=attempted, stdout=OUT, stderr=b"short")
    told = {path.name: path.read_bytes() for path in aside.folder.iterdir()}
    assert set(told) == {"record.json", "stdout.zst", "stderr.zst"}
    # The link could not be removed, and this repair does not look into the other spool.
    dead_link(store, started.id)
    assert [one.outcome for one in repair(store).folders] == ["interrupted"]

    kept = own / "kept" / f"aside-{started.id}"
    for dry_run in (True, False):
        assert {path.name: path.read_bytes() for path in aside.folder.iterdir()} == told
        found = repair(store, also=[own], dry_run=dry_run).folders
        reason = f"not in the store: stderr, stdout, record.json; kept in {kept}"
        assert found == (RepairedFolder(started.id, "kept", reason=reason, kept_in=str(kept)),)

    assert {path.name: path.read_bytes() for path in kept.iterdir()} == told
    assert not aside.folder.exists()
    assert repair(store, also=[own]).folders == ()
    assert store.reader.counts().invocations == {"interrupted": 1}


def test_the_start_of_a_killed_program_is_not_kept_when_the_store_has_it(
    sqlite_store: Store, tmp_path: Path
) -> None:
    started = sqlite_store.start_alone(CALL, family="command")

    def task() -> object:
        attempted = uncertain(sqlite_store, started.id)
        return begin_aside(tmp_path / "own", wanted(sqlite_store), attempted=attempted)

    with in_a_fork(task) as kill:
        kill()
    started.interrupt("by hand")
    (one,) = repair(sqlite_store, also=[tmp_path / "own"]).folders
    assert (one.outcome, one.reason) == ("cleared", "its record had ended already")
    assert list((tmp_path / "own").iterdir()) == []


def test_a_call_with_other_arguments_than_the_stored_one_is_kept(sqlite_store: Store) -> None:
    other = ToolCall.of("exec", {"argv": ["make", "nothing"]})
    started = sqlite_store.start_alone(other, family="command")
    aside = set_aside_whole(
        sqlite_store.spool, wanted(sqlite_store), attempted=uncertain(sqlite_store, started.id)
    )
    started.interrupt("by hand")
    (one,) = repair(sqlite_store).folders
    kept = sqlite_store.spool / "kept" / aside.folder.name
    reason = f"not in the store: record.json; kept in {kept}"
    assert (one.outcome, one.reason) == ("kept", reason)
    assert (kept / "record.json").is_file()


@pytest.mark.parametrize("is_stored", [True, False])
def test_what_is_left_of_a_folder_whose_record_is_gone_already_is_no_riddle(
    sqlite_store: Store, is_stored: bool
) -> None:
    aside = set_aside_whole(sqlite_store.spool, wanted(sqlite_store), stdout=OUT)
    data = (aside.folder / "stdout.zst").read_bytes()
    (one,) = repair(sqlite_store).folders
    # As if the repair had been killed while it deleted the folder.
    aside.folder.mkdir()
    name = "stdout" if is_stored else "other"
    rest = data if is_stored else encode(b"never seen")
    (aside.folder / f"{name}.zst").write_bytes(rest)
    (again,) = repair(sqlite_store).folders
    assert again.invocation_id == one.invocation_id
    kept = sqlite_store.spool / "kept" / aside.folder.name / f"{name}.zst"
    assert (again.outcome, kept.is_file()) == (("cleared", False) if is_stored else ("kept", True))
    assert not aside.folder.exists()


def test_a_record_with_the_id_of_another_call_is_left(sqlite_store: Store) -> None:
    other = sqlite_store.start_alone(ToolCall(tool_name="Bash"))
    attempted = uncertain(sqlite_store, other.id)
    aside = set_aside_whole(sqlite_store.spool, wanted(sqlite_store), attempted=attempted)
    for dry_run in (True, False):
        (one,) = repair(sqlite_store, dry_run=dry_run).folders
        assert one.outcome == "unreadable"
        assert one.reason.startswith(f"invocation {other.id} was started as another call; left in")
    assert aside.folder.is_dir()
    assert sqlite_store.reader.invocation(other.id).summary.state == "started"


def assert_budgets_are_those_of_the_start(store: Store, name: UUID) -> None:
    with store.database.read() as connection:
        (row,) = connection.execute(text("SELECT policy_digest FROM invocations")).scalars()
        (shown,) = connection.execute(text("SELECT policy_digest FROM receipts")).scalars()
    detail = store.reader.invocation(name)
    assert detail.receipt is not None
    assert detail.policy_digest == row == shown == detail.receipt.policy_digest


def test_a_repair_that_knows_more_families_than_the_recorder_takes_it_in(
    database: str, tmp_path: Path
) -> None:
    artifacts, spool = str(tmp_path / "artifacts"), tmp_path / "spool"
    fewer = FamilyRegistry(*(f for f in default_families() if f.name in ("command", "generic")))
    with make_store(
        database, artifacts=artifacts, spool=spool, families=fewer, on_unavailable="raise"
    ) as recorder:
        started = recorder.start_alone(CALL, family="command")
        digest = recorder.policy.digest
        attempted = uncertain(recorder, started.id)
        set_aside_whole(
            spool, wanted(recorder), policy=recorder.policy, attempted=attempted, stdout=OUT
        )
    with open_store(database, artifacts=artifacts, spool=spool) as store:
        assert store.policy.digest != digest
        assert repair(store).folders == (RepairedFolder(started.id, "recorded", len(OUT)),)
        assert store.reader.invocation(started.id).policy_digest == digest
        assert_budgets_are_those_of_the_start(store, started.id)
        assert_whole(store)


def test_what_was_started_is_shown_within_the_budgets_that_it_was_started_with(
    store: Store,
) -> None:
    policy = DEFAULT_POLICY.for_tool("exec", preview_chars=900)
    started = store.start_alone(CALL, family="command", policy=policy)
    set_aside_whole(store.spool, wanted(store), attempted=uncertain(store, started.id), stdout=OUT)
    assert [one.outcome for one in repair(store).folders] == ["recorded"]
    receipt = store.reader.invocation(started.id).receipt
    assert receipt is not None
    assert len(receipt.text) < 2_000
    assert_budgets_are_those_of_the_start(store, started.id)
    assert_whole(store)


def test_a_start_that_comes_through_while_it_is_taken_in_keeps_its_budgets(
    sqlite_store: Store, tmp_path: Path
) -> None:
    aside = set_aside_whole(sqlite_store.spool, wanted(sqlite_store), stdout=OUT)
    name = UUID(aside.folder.name.removeprefix("aside-"))
    policy = DEFAULT_POLICY.for_tool("exec", preview_chars=900).covering(sqlite_store.families)
    family = sqlite_store.families.named("command")

    def come_through() -> None:
        (waiting,) = set_aside(sqlite_store)
        assert waiting.started_at is not None
        started = Started(name, waiting.started_at, CALL, family, policy)
        opening = Opening(new_id(), waiting.started_at, "{}", only_call=name)
        with open_store(str(sqlite_store.database.target), spool=tmp_path / "own") as other:
            commit_start(other, started, lambda connection: write_opened(connection, opening))

    with before_write(sqlite_store, come_through):
        (one,) = repair(sqlite_store).folders
    assert one.outcome == "recorded"
    assert sqlite_store.reader.invocation(name).policy_digest == policy.digest
    assert_budgets_are_those_of_the_start(sqlite_store, name)
    assert_whole(sqlite_store)


@pytest.mark.parametrize("has_link", [False, True])
def test_a_start_whose_end_was_set_aside_is_counted_once(
    store: Store, tmp_path: Path, has_link: bool
) -> None:
    started, own = store.start_alone(CALL, family="command"), tmp_path / "own"
    set_aside_whole(own, wanted(store), attempted=uncertain(store, started.id), stdout=OUT)
    if has_link:  # as if its program had been killed between the two
        dead_link(store, started.id)
        assert find_repairable(store) == Repairable(killed=(started.id,))
    else:
        assert find_unended(store) == Unended(running=0, elsewhere=1, unknown=0)
        assert repair(store, dry_run=True).elsewhere_count == 1

    assert find_repairable(store, also=[own]) == Repairable(set_aside=(started.id,))
    assert find_unended(store, also=[own]) == Unended(running=0, elsewhere=0, unknown=0)
    for dry_run in (True, False):
        assert repair(store, also=[own], dry_run=dry_run).elsewhere_count == 0
    assert not find_repairable(store, also=[own])
    assert_whole(store)


@pytest.mark.parametrize("has_spool", [True, False])
def test_a_start_whose_program_sets_its_end_aside_is_running(
    store: Store, tmp_path: Path, has_spool: bool
) -> None:
    started, own = store.start_alone(CALL, family="command"), tmp_path / "own"

    def task() -> object:
        return begin_aside(own, wanted(store), attempted=uncertain(store, started.id))

    with in_a_fork(task) as kill:
        remove_spool_folder(store.spool / str(started.id))
        if not has_spool:
            shutil.rmtree(store.spool)
        assert find_unended(store, also=[own]) == Unended(running=1, elsewhere=0, unknown=0)
        assert not find_repairable(store, also=[own])
        assert repair(store, also=[own]).elsewhere_count == 0
        kill()
    assert find_repairable(store, also=[own]) == Repairable(set_aside=(started.id,))


def test_what_is_recorded_already_and_still_lies_in_the_spool_is_a_leftover(
    sqlite_store: Store, tmp_path: Path
) -> None:
    aside = set_aside_whole(sqlite_store.spool, wanted(sqlite_store), stdout=OUT)
    shutil.copytree(aside.folder, tmp_path / "copy")
    (one,) = repair(sqlite_store).folders
    shutil.copytree(tmp_path / "copy", aside.folder)
    assert find_repairable(sqlite_store) == Repairable(leftover=(one.invocation_id,))


def test_a_record_that_cannot_be_read_settles_nothing(sqlite_store: Store) -> None:
    started = sqlite_store.start_alone(CALL, family="command")
    attempted = uncertain(sqlite_store, started.id)
    aside = set_aside_whole(sqlite_store.spool, wanted(sqlite_store), attempted=attempted)
    (aside.folder / "record.json").write_text("{")
    assert find_unended(sqlite_store) == Unended(running=0, elsewhere=1, unknown=0)
    assert not find_repairable(sqlite_store)
