"""Calls that are started and ended in two steps, with the store away for either or for both."""

import json
import os
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tests.support.asides import in_a_fork
from tests.support.away import away, without_pause
from tests.support.ended import BASH, failed, made
from tests.support.evidence import check_evidence
from tests.support.killing import count_moments, run_and_kill
from tests.support.lossy_server import END, START, LossyServer
from tests.support.outboxes import check_shown, printed
from tests.support.recording import captured, command_output, content_of, stream_of
from tests.support.template_stores import make_store

from tooltrail.artifacts import artifact_path, is_in_use
from tooltrail.records import (
    CompleteOutput,
    EndUncertainError,
    InvalidRecordError,
    InvocationFinishedError,
    StartUncertainError,
    ToolCall,
    ToolError,
    UnavailableError,
    digest_of,
)
from tooltrail.records.canonical_json import encode
from tooltrail.store import (
    Finished,
    Invocation,
    Store,
    find_backlog,
    find_repairable,
    find_unended,
    is_waiting,
    iter_record_checks,
    open_store,
    repair,
)
from tooltrail.store._outbox.journal_lines import iter_lines
from tooltrail.store._outbox.known_invocations import find_known_invocation
from tooltrail.store._repairing.spooled import interrupt

LONG = b"".join(b"%d\n" % number for number in range(30_000))
ODD = ToolCall(tool_name="Bash", arguments_raw='{"a": \ud800', call_id="\0", title="t")
_NAME = re.compile(r"[0-9a-f]{8}-")
ENDS = {
    "error": failed(),
    "denied": failed("permission_denied"),
    "cancelled": failed("cancelled"),
    "success": made(LONG),
}


def check_all(store: Store) -> None:
    check_evidence(store)
    assert {check.problem for check in iter_record_checks(store.reader)} <= {""}
    assert not find_repairable(store)
    assert not is_waiting(store)
    for session in store.reader.sessions():
        _, messages, invocations = store.reader.conversation(session.id)
        places = [one.seq for one in messages] + [one.summary.seq for one in invocations]
        assert sorted(places) == list(range(len(places)))


def end(invocation: Invocation, stdout: bytes) -> Finished:
    return invocation.finish(command_output(invocation, stdout, b"warning\n"))


def state_of(store: Store, invocation_id: UUID) -> str:
    return store.reader.invocation(invocation_id).summary.state


def left_in(spool: Path) -> set[str]:
    """What there is of invocations in a spool, named as they are."""
    return {path.name for path in spool.iterdir() if _NAME.match(path.name)}


def in_a_program_that_ends(task: Callable[[], object]) -> None:
    """Do something in a fork, which is killed then."""
    with in_a_fork(task) as kill:
        kill()


def hold_up(store: Store, database: str) -> None:
    """Put into the outbox first what cannot be delivered while the artifacts are away."""
    session, content = store.open_session(), LONG + b"held up"
    with away(store, database):
        session.record(BASH, made(content))
    journal = store.fallback.outbox.journal
    (line,) = iter_lines(journal.waiting / "journal")
    call: dict[str, Any] = json.loads(line.data or b"")
    # As after a commit that nobody answered.
    call["streams"][0]["path"] = artifact_path(digest_of(content))
    (journal.waiting / "journal").unlink()
    journal.append(encode(call))


@pytest.mark.parametrize("stdout", [b"short\n", LONG])
def test_a_call_that_is_started_and_ended_while_the_store_is_away_is_delivered_as_it_was_shown(
    patient: Store, database: str, stdout: bytes
) -> None:
    session = patient.open_session()
    with away(patient, database):
        invocation = session.start(ODD)
        assert not invocation.is_recorded
        finished = end(invocation, stdout)
        session.add_message("user", "behind it")
        kept = {str(invocation.id)} if stdout == LONG else set[str]()
        assert left_in(patient.spool) == kept
        with pytest.raises(InvocationFinishedError):
            end_again(invocation)
    assert (finished.recorded_in, finished.invocation_id) == ("outbox", invocation.id)
    assert [one.role for one in finished.postponed] == (["stdout"] if kept else [])
    repair(patient)
    check_shown(patient, finished)
    stored = patient.reader.invocation(invocation.id)
    assert stored.arguments == ODD.arguments_bytes
    assert (stored.summary.started_at, stored.summary.seq) == (invocation.started_at, 0)
    assert stored.summary.call_id == "\\0"
    assert stored.summary.duration_ms is not None
    assert printed(patient, session.id) == [stdout]
    assert left_in(patient.spool) == set()
    check_all(patient)


def end_again(invocation: Invocation) -> None:
    invocation.finish(made())


@pytest.mark.parametrize("state", list(ENDS))
def test_whatever_the_end_it_waits_and_is_the_same_later(
    patient: Store, database: str, state: str
) -> None:
    session = patient.open_session()
    with away(patient, database):
        finished = session.start(BASH).finish(ENDS[state])
        other = session.start(BASH)
        stopped = other.interrupt("it was stopped", [captured(other, "stdout", LONG)])
    assert (finished.state, stopped.state) == (state, "interrupted")
    repair(patient)
    check_shown(patient, finished, stopped)
    (stream,) = patient.reader.invocation(other.id).streams
    assert content_of(patient.reader, stream) == LONG
    check_all(patient)


def test_what_is_refused_is_raised_and_does_not_wait(patient: Store, database: str) -> None:
    with away(patient, database):
        invocation = patient.open_session().start(BASH)
        backlog = find_backlog(patient).entry_count
        with pytest.raises(InvalidRecordError, match="is of 'Bash', not of 'Other'"):
            invocation.finish(CompleteOutput.failure("Other", ToolError(kind="k", message="m")))
        assert find_backlog(patient).entry_count == backlog
        finished = invocation.finish(made())
    repair(patient)
    check_shown(patient, finished)


def test_a_call_alone_in_its_session_waits_with_it_and_closes_it(
    patient: Store, database: str
) -> None:
    with away(patient, database):
        first, second = patient.start_alone(BASH), patient.start_alone(BASH)
        finished = end(first, LONG)
    repair(patient)
    check_shown(patient, finished)
    for invocation, is_closed in ((first, True), (second, False)):
        session_id = patient.reader.invocation(invocation.id).summary.session_id
        assert (patient.reader.session(session_id).closed_at is not None) is is_closed
    without_pause(patient)
    late = end(second, b"late\n")
    assert late.recorded_in == "store"
    session_id = patient.reader.invocation(second.id).summary.session_id
    assert patient.reader.session(session_id).closed_at is not None
    check_shown(patient, late)
    check_all(patient)


def test_an_end_waits_whose_start_is_in_the_store_and_its_program_may_be_gone(
    patient: Store, database: str
) -> None:
    session = patient.open_session()
    ids: list[UUID] = []

    def record() -> None:
        invocations = [session.start(BASH) for _ in range(2)]
        os.write(write, b"".join(one.id.bytes for one in invocations))
        with away(patient, database):
            end(invocations[0], b"short\n")
            end(invocations[1], LONG)

    read, write = os.pipe()
    in_a_program_that_ends(record)
    os.close(write)
    with os.fdopen(read, "rb") as told:
        ids += [UUID(bytes=told.read(16)) for _ in range(2)]
    assert [state_of(patient, name) for name in ids] == ["started"] * 2
    assert find_repairable(patient).killed == ()
    unended = find_unended(patient)
    assert (unended.running, unended.elsewhere, unended.unknown) == (0, 0, 0)
    repair(patient)
    assert [state_of(patient, name) for name in ids] == ["success"] * 2
    assert printed(patient, session.id) == [b"short\n", LONG]
    check_all(patient)


def test_no_repair_ends_what_has_an_end_in_the_outbox_that_cannot_be_delivered_yet(
    patient: Store, database: str, tmp_path: Path
) -> None:
    session = patient.open_session()
    started = session.start(BASH)

    def record() -> None:
        invocation = session.start(BASH)
        hold_up(patient, database)
        with away(patient, database):
            end(invocation, LONG)
            # Neither its start nor its end is in the store.
            end(session.start(BASH), LONG + b"!")
            with session.start(BASH).capture("stdout") as capture:
                capture.write(b"killed\n")

    in_a_program_that_ends(record)
    (tmp_path / "artifacts").rename(tmp_path / "hidden")
    for dry_run in (True, False, False):
        report = repair(patient, dry_run=dry_run)
        outcomes = sorted(one.outcome for one in report.folders)
        assert outcomes == ["running", "waiting", "waiting", "waiting"]
        assert report.outbox.failure or dry_run
    assert find_repairable(patient).killed == ()
    assert find_unended(patient).unknown == 0
    assert patient.reader.counts().invocations == {"started": 2}
    (tmp_path / "hidden").rename(tmp_path / "artifacts")
    repair(patient)
    without_pause(patient)
    check_shown(patient, end(started, b"at last\n"))
    assert printed(patient, session.id) == [b"at last\n", LONG, LONG + b"!", b"killed\n"]
    assert patient.reader.counts().invocations == {"success": 4, "interrupted": 1}
    check_all(patient)


def test_while_an_outbox_cannot_be_read_no_repair_ends_what_may_have_an_end_there(
    sqlite_store: Store,
) -> None:
    store, session = sqlite_store, sqlite_store.open_session()
    in_a_program_that_ends(lambda: session.start(BASH))
    waiting = store.fallback.outbox.journal.waiting
    waiting.parent.mkdir()
    waiting.touch()
    (one,) = repair(store).folders
    assert (one.outcome, "cannot be read" in one.reason) == ("failed", True)
    waiting.unlink()
    assert [one.outcome for one in repair(store).folders] == ["interrupted"]
    check_all(store)


def test_what_is_started_away_and_ended_when_the_store_is_back_is_in_order(
    patient: Store, database: str
) -> None:
    with away(patient, database):
        session = patient.open_session()
        session.add_message("user", "first")
        invocation = session.start(BASH)
        session.add_message("user", "third")
    without_pause(patient)
    finished = end(invocation, LONG)
    assert (finished.recorded_in, invocation.is_recorded) == ("store", True)
    assert not is_waiting(patient)
    check_shown(patient, finished)
    _, messages, (stored,) = patient.reader.conversation(session.id)
    assert [one.seq for one in messages] == [0, 2]
    assert stored.summary.seq == 1
    check_all(patient)


def test_an_end_goes_behind_a_start_that_another_delivers(patient: Store, database: str) -> None:
    session = patient.open_session()
    with away(patient, database):
        invocation = session.start(BASH)
    with patient.fallback.outbox.journal.delivering(wait=True):
        without_pause(patient)
        finished = end(invocation, b"out\n")
        assert finished.recorded_in == "outbox"
    assert repair(patient).outbox.delivered_count == 2
    check_shown(patient, finished)
    check_all(patient)


def test_what_is_of_a_session_that_was_closed_meanwhile_is_recorded_in_one_of_its_own(
    patient: Store, database: str, tmp_path: Path
) -> None:
    session = patient.open_session()
    with away(patient, database):
        invocation, other = session.start(BASH), session.start(BASH)
        finished = end(invocation, LONG)
    with open_store(database, spool=tmp_path / "elsewhere") as another:
        another.join_session(session.id).close()
    (note,) = repair(patient).outbox.notes
    assert f"session {session.id} is closed" in note
    without_pause(patient)
    check_shown(patient, finished, end(other, b"late\n"))
    own = {patient.reader.invocation(one.id).summary.session_id for one in (invocation, other)}
    assert len(own) == 1
    assert session.id not in own
    check_all(patient)


def test_an_end_without_its_start_is_a_record_of_its_own(patient: Store, database: str) -> None:
    session = patient.open_session()
    with away(patient, database):
        invocation = session.start(BASH)
    journal = patient.fallback.outbox.journal
    (journal.waiting / "journal").unlink()
    journal.waiting.rmdir()
    without_pause(patient)
    finished = end(invocation, b"out\n")
    assert finished.recorded_in == "outbox"
    repair(patient)
    check_shown(patient, finished)
    check_all(patient)


def test_an_end_that_is_not_the_one_in_the_store_is_put_away(patient: Store, database: str) -> None:
    session = patient.open_session()
    invocation, other = session.start(BASH), session.start(BASH)
    with away(patient, database):
        end(invocation, b"one\n")
        finished = end(other, b"other\n")
    with patient.database.read() as connection:
        known = find_known_invocation(connection, invocation.id)
    assert known is not None
    interrupt(patient, known, invocation.spool)
    (kept,) = repair(patient).outbox.kept
    assert kept.reason == f"invocation {invocation.id} has ended otherwise"
    assert state_of(patient, invocation.id) == "interrupted"
    check_shown(patient, finished)
    check_all(patient)


def rewrite(store: Store, change: Callable[[dict[str, Any]], object]) -> None:
    """Alter the only entry that waits."""
    journal = store.fallback.outbox.journal
    (line,) = iter_lines(journal.waiting / "journal")
    entry: dict[str, Any] = json.loads(line.data or b"")
    change(entry)
    (journal.waiting / "journal").unlink()
    journal.append(encode(entry))


def as_artifact(entry: dict[str, Any]) -> None:
    stream = entry["streams"][0]
    stream["spooled"]["reason"] = None
    stream["path"] = artifact_path(stream["spooled"]["digest"])


@pytest.mark.parametrize("what", ["whole", "cut", "gone"])
def test_output_that_is_to_become_an_artifact_comes_from_the_spool_or_is_told_to_be_lost(
    sqlite_store: Store, what: str
) -> None:
    store, session = sqlite_store, sqlite_store.open_session()
    invocation = session.start(BASH)
    with away(store, str(store.database.target)):
        end(invocation, LONG)
    rewrite(store, as_artifact)
    file = invocation.spool / "stdout.zst"
    if what == "cut":
        file.write_bytes(file.read_bytes()[:-1000])
    if what == "gone":
        file.unlink()
    reasons = [one.reason for one in repair(store).outbox.kept]
    if what == "whole":
        assert reasons == []
        (stored,) = store.reader.conversation(session.id)[2]
        assert stream_of(stored, "stdout").artifact_path == artifact_path(digest_of(LONG))
        assert printed(store, session.id) == [LONG]
    else:
        told = {"cut": "was cut or altered", "gone": "is not in"}[what]
        assert len(reasons) == 1
        assert told in reasons[0]
        assert state_of(store, invocation.id) == "interrupted"
    check_all(store)


def test_an_end_of_another_call_than_was_started_is_put_away(sqlite_store: Store) -> None:
    store = sqlite_store
    invocation = store.open_session().start(BASH)
    with away(store, str(store.database.target)):
        end(invocation, b"out\n")
    rewrite(store, lambda entry: entry.update(family="generic"))
    (kept,) = repair(store).outbox.kept
    assert kept.reason == f"invocation {invocation.id} was started as another call"
    assert state_of(store, invocation.id) == "started"


def test_a_start_that_is_no_call_is_put_away_and_keeps_nobody(sqlite_store: Store) -> None:
    store, session = sqlite_store, sqlite_store.open_session()
    for odd in ({"tool_name": 5}, {"policy": None}, {"family": None}):
        with away(store, str(store.database.target)):
            session.start(BASH)
        rewrite(store, lambda entry, odd=odd: entry.update(odd))  # type: ignore[misc]
        with away(store, str(store.database.target)):
            finished = end(session.start(BASH), b"out\n")
        assert len(repair(store).outbox.kept) == 1
        check_shown(store, finished)
        without_pause(store)
    check_evidence(store)


def test_a_start_is_kept_for_whoever_finds_its_program_killed(
    patient: Store, database: str
) -> None:
    session = patient.open_session()

    def record() -> None:
        with away(patient, database):
            invocation = session.start(ODD)
            with invocation.capture("stdout") as capture:
                capture.write(LONG)
            session.add_message("user", "behind it")
            patient.start_alone(BASH)

    in_a_program_that_ends(record)
    report = repair(patient)
    assert [one.outcome for one in report.folders] == ["interrupted"] * 2
    assert printed(patient, session.id) == [LONG]
    (stored,) = patient.reader.conversation(session.id)[2]
    assert (stored.summary.state, stored.arguments) == ("interrupted", ODD.arguments_bytes)
    assert {one.closed_at is None for one in patient.reader.sessions()} == {True, False}
    check_all(patient)


@pytest.mark.parametrize("seed", range(10))
def test_a_program_that_is_killed_at_any_moment_while_the_store_is_away_leaves_each_call_once(
    patient: Store, database: str, seed: int
) -> None:
    session = patient.open_session()
    read, write = os.pipe()

    def record() -> None:
        for number in range(4):
            invocation = session.start(BASH)
            os.write(write, b"started %s\n" % str(invocation.id).encode())
            finished = end(invocation, LONG if number % 2 else b"short\n")
            told = digest_of(finished.canonical.to_json() + finished.receipt.to_bytes())
            os.write(write, f"ended {invocation.id} {told}\n".encode())

    with away(patient, database):
        count = count_moments(record)
        moments = [random.Random(seed * 100 + n).randrange(1, count) for n in range(2)]
        for moment in moments:
            run_and_kill(record, moment)
    os.close(write)
    with os.fdopen(read, "rb") as answer:
        told = [line.split() for line in answer.read().decode().splitlines()]
    started = {UUID(name) for kind, name, *_ in told if kind == "started"}
    ended = {UUID(line[1]): line[2] for line in told if line[0] == "ended"}
    repair(patient)
    _, _, invocations = patient.reader.conversation(session.id)
    states = {one.summary.id: one.summary.state for one in invocations}
    assert started <= set(states)
    for one in invocations:
        if one.summary.id in ended:
            assert one.summary.state == "success"
            assert one.receipt is not None
            shown = (one.canonical_json or "").encode() + one.receipt.text.encode()
            assert digest_of(shown) == ended[one.summary.id]
    # One at the most was being told of in each program when it was killed, or was not told yet.
    assert list(states.values()).count("interrupted") <= len(moments)
    assert set(states.values()) <= {"success", "interrupted"}
    check_all(patient)


def test_what_is_dropped_is_counted_and_nobody_is_told_otherwise(
    patient: Store, database: str, tmp_path: Path
) -> None:
    with open_store(
        database, spool=tmp_path / "spool", on_unavailable="drop_and_count"
    ) as careless:
        session = careless.open_session()
        kept = session.start(BASH)
        with away(careless, database):
            dropped = session.start(BASH)
            finished = end(dropped, LONG)
            late = careless.open_session()
            lost = late.start(BASH)
            alone = careless.start_alone(BASH)
            dropped_end = end(kept, b"out\n")
        without_pause(careless)
        assert finished.recorded_in == dropped_end.recorded_in == "nowhere"
        # These are back before they end, and their starts are not.
        assert {end(one, b"x").recorded_in for one in (lost, alone)} == {"nowhere"}
        # Its session is opened by the first that finds the store again.
        assert late.record(BASH, made()).recorded_in == "store"
        assert find_backlog(careless).dropped_count == 8
        assert find_backlog(careless).entry_count == 0
        assert careless.reader.counts().invocations == {"started": 1, "success": 1}
        assert {str(kept.id)} >= left_in(careless.spool)
        assert session.record(BASH, made()).recorded_in == "store"


def test_while_the_artifacts_alone_are_away_nothing_waits_in_the_outbox(
    patient: Store, tmp_path: Path
) -> None:
    session = patient.open_session()
    (tmp_path / "artifacts").rename(tmp_path / "hidden")
    finished = end(session.start(BASH), LONG)
    assert not is_waiting(patient)
    assert finished.recorded_in == "store"
    assert [one.role for one in finished.postponed] == ["stdout"]
    (tmp_path / "hidden").rename(tmp_path / "artifacts")
    repair(patient)
    check_shown(patient, finished)
    assert printed(patient, session.id) == [LONG]
    check_all(patient)


def test_an_outbox_that_cannot_be_written_keeps_nobody_from_a_store_that_is_there(
    patient: Store, database: str
) -> None:
    session = patient.open_session()
    invocation = session.start(BASH)
    patient.fallback.outbox.journal.folder.touch()
    finished = [end(invocation, b"out\n"), end(session.start(BASH), b"out\n")]
    assert {one.recorded_in for one in finished} == {"store"}
    other = session.start(BASH)
    with away(patient, database):
        with pytest.raises(UnavailableError, match="nor can it be kept"):
            session.start(BASH)
        output = command_output(other, b"out\n")
        with pytest.raises(UnavailableError, match="nor can it be kept"):
            other.finish(output)
    finished.append(other.finish(output))
    check_shown(patient, *finished)
    assert left_in(patient.spool) == set()
    patient.fallback.outbox.journal.folder.unlink()


@pytest.fixture
def far(lossy: LossyServer, postgres_url: str, tmp_path: Path) -> Iterator[Store]:
    """A store that is reached by way of the lossy server, and has an outbox."""
    spool = tmp_path / "spool"
    make_store(postgres_url, artifacts=str(tmp_path / "artifacts"), spool=spool).close()
    with open_store(lossy.url, spool=spool) as store:
        yield store


@pytest.mark.parametrize("is_committed", [True, False])
@pytest.mark.parametrize("stdout", [b"short\n", LONG])
def test_a_commit_without_an_answer_is_neither_an_error_nor_a_second_call(
    far: Store, lossy: LossyServer, stdout: bytes, is_committed: bool
) -> None:
    session = far.open_session()
    lossy.lose_an_answer(START, is_committed=is_committed)
    first = session.start(BASH)
    without_pause(far)
    finished = [end(first, stdout)]
    assert finished[0].recorded_in == "store"
    second = session.start(BASH)
    lossy.lose_an_answer(END, is_committed=is_committed)
    finished.append(end(second, stdout + b"2\n"))
    assert finished[1].recorded_in == "outbox"
    repair(far)
    lossy.lose_an_answer(START, is_committed=is_committed)
    without_pause(far)
    third = far.start_alone(BASH)
    without_pause(far)
    repair(far)
    lossy.lose_an_answer(END, is_committed=is_committed)
    without_pause(far)
    finished.append(end(third, stdout + b"3\n"))
    repair(far)
    repair(far)
    assert find_backlog(far).kept_count == 0
    check_shown(far, *finished)
    assert printed(far, session.id) == [stdout, stdout + b"2\n"]
    assert far.reader.counts().invocations == {"success": 3}
    check_all(far)


def test_a_start_without_an_answer_that_cannot_be_kept_is_told_as_such(
    far: Store, lossy: LossyServer
) -> None:
    session = far.open_session()
    far.fallback.outbox.journal.folder.touch()
    lossy.lose_an_answer(START)
    with pytest.raises(StartUncertainError, match="nor can it be kept") as caught:
        session.start(BASH)
    assert state_of(far, caught.value.invocation_id) == "started"
    # It is of this process still, so that nobody but a repair after its end touches it.
    assert is_in_use(caught.value.folder)


def test_an_end_without_an_answer_that_cannot_be_kept_is_told_as_such(
    far: Store, lossy: LossyServer
) -> None:
    session = far.open_session()
    invocation = session.start(BASH)
    output = command_output(invocation, b"out\n")
    far.fallback.outbox.journal.folder.touch()
    lossy.lose_an_answer(END)
    with pytest.raises(EndUncertainError, match="nor can it be kept"):
        invocation.finish(output)
    without_pause(far)
    finished = invocation.finish(output)
    assert finished.recorded_in == "store"
    check_shown(far, finished)
