"""Records that are made while the store is away wait in a journal and are delivered once."""

import asyncio
import json
import os
from pathlib import Path
from time import monotonic
from uuid import UUID

import pytest
from tests.support.away import away, without_pause
from tests.support.ended import BASH, made, numbered_calls
from tests.support.evidence import check_evidence
from tests.support.outboxes import BIG, ODD, check_all, check_shown, printed
from tests.support.outputs import returned
from tests.support.recording import content_of, stream_of
from tests.support.template_stores import make_store

from tooltrail.records import (
    InvalidRecordError,
    NotFoundError,
    SessionClosedError,
    UnavailableError,
)
from tooltrail.store import (
    CallEnded,
    EndedStream,
    Finished,
    MessageAdded,
    SessionEnded,
    SessionOpened,
    Store,
    create_store,
    find_backlog,
    is_waiting,
    new_id,
    open_store,
    repair,
)
from tooltrail.store._outbox.delivering import deliver
from tooltrail.store._outbox.journal_lines import iter_lines
from tooltrail.store.entries import complete_output_json
from tooltrail.store.outbox import Outbox


def test_everything_waits_and_is_delivered_as_it_was_shown(patient: Store, database: str) -> None:
    before = patient.open_session(title="before")
    with away(patient, database):
        waiting = [before.record(*one) for one in ODD]
        before.add_message("user", "\ud800 hello")
        later = patient.open_session(title="later", agent="a", parent=before.id)
        waiting.append(later.record(*ODD[0]))
        later.add_message("user", "bye")
        later.close()
        backlog = find_backlog(patient)
    assert backlog.entry_count == len(ODD) + 5
    assert backlog.oldest_at is not None
    assert is_waiting(patient)

    report = repair(patient)

    assert report.outbox.delivered_count == backlog.entry_count
    assert (report.outbox.kept, report.outbox.failure) == ([], "")
    assert not is_waiting(patient)
    check_shown(patient, *waiting)
    check_all(patient)
    view = patient.reader.session(later.id)
    assert (view.title, view.agent, view.parent_id) == ("later", "a", before.id)
    assert view.closed_at is not None
    _, messages, _ = patient.reader.conversation(before.id)
    assert len(messages) == 1
    assert repair(patient).outbox.delivered_count == 0


def test_a_recorder_delivers_what_waits_before_what_it_records(
    patient: Store, database: str
) -> None:
    session = patient.open_session()
    session.record(BASH, made(b"0"))
    with away(patient, database):
        session.record(BASH, made(b"1"))
        session.record(BASH, made(b"2"))
    without_pause(patient)
    session.record(BASH, made(b"3"))
    assert not is_waiting(patient)
    assert printed(patient, session.id) == [b"0", b"1", b"2", b"3"]


def test_a_recorder_puts_a_record_behind_what_it_cannot_deliver_yet(
    patient: Store, database: str
) -> None:
    session = patient.open_session()
    with away(patient, database):
        session.record(BASH, made(b"1"))
    with patient.fallback.outbox.journal.delivering(wait=True):
        without_pause(patient)
        session.record(BASH, made(b"2"))
        assert find_backlog(patient).entry_count == 2
    repair(patient)
    assert printed(patient, session.id) == [b"1", b"2"]


def test_an_attempt_that_does_not_reach_the_store_leaves_the_journal_as_it_is(
    patient: Store, database: str
) -> None:
    session = patient.open_session()
    with away(patient, database):
        for number in range(3):
            session.record(BASH, made(b"%d" % number))
            assert deliver(patient, patient.fallback.outbox).failure
    journal = patient.fallback.outbox.journal
    assert journal.files() == [journal.waiting / "journal"]
    assert find_backlog(patient).entry_count == 3
    repair(patient)
    assert printed(patient, session.id) == [b"0", b"1", b"2"]


def test_a_record_pays_for_a_part_of_the_backlog_and_the_next_one_goes_on_there(
    patient: Store, database: str
) -> None:
    sessions = [patient.open_session() for _ in range(2)]
    with away(patient, database):
        waiting = [one.record(BASH, made(b"%d" % n)) for n in range(3) for one in sessions]
    mine = patient.fallback.outbox
    done = deliver(patient, mine, seconds=0)
    assert (done.delivered_count, done.known_count, done.is_under_way) == (3, 0, True)
    assert [printed(patient, one.id) for one in sessions] == [[b"0", b"1", b"2"], []]
    # As another process, which knows nothing of that.
    done = deliver(patient, Outbox(mine.journal.folder), seconds=0)
    assert (done.delivered_count, done.known_count, done.is_under_way) == (0, 3, True)
    done = deliver(patient, mine)
    assert (done.delivered_count, done.known_count, done.failure) == (3, 0, "")
    assert [printed(patient, one.id) for one in sessions] == [[b"0", b"1", b"2"]] * 2
    with away(patient, database):
        without_pause(patient)
        waiting.append(sessions[0].record(BASH, made(b"3")))
    assert deliver(patient, mine, seconds=0).delivered_count == 1
    check_shown(patient, *waiting)


def test_a_session_whose_end_could_not_be_kept_is_open_still(patient: Store, database: str) -> None:
    session, folder = patient.open_session(), patient.fallback.outbox.journal.folder
    with away(patient, database):
        folder.touch()
        with pytest.raises(UnavailableError, match="nor can it be kept"):
            session.close()
        folder.unlink()
        session.record(BASH, made(b"one more"))
        session.close()
    repair(patient)
    assert printed(patient, session.id) == [b"one more"]
    assert patient.reader.session(session.id).closed_at is not None


@pytest.mark.parametrize("on_unavailable", ["raise"])
def test_without_an_outbox_an_error_is_raised(store: Store, database: str) -> None:
    session = store.open_session()
    with away(store, database):
        with pytest.raises(UnavailableError):
            session.record(BASH, made())
        with pytest.raises(UnavailableError):
            store.open_session()
        with pytest.raises(UnavailableError):
            store.join_session(session.id)
        with pytest.raises(UnavailableError):
            session.record_many(numbered_calls(2))
    assert not is_waiting(store)


def test_an_unknown_choice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRecordError, match="there are outbox, raise, drop_and_count"):
        create_store(tmp_path / "t.db", on_unavailable="hope")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert not (tmp_path / "t.db").exists()


def test_refusals_are_raised_and_do_not_wait(patient: Store, database: str) -> None:
    session = patient.open_session()
    foreign = returned("Other", "text")
    with away(patient, database):
        with pytest.raises(InvalidRecordError):
            session.record(BASH, foreign)
        with pytest.raises(InvalidRecordError):
            session.record(BASH, made(), idempotency_key="")
        with pytest.raises(InvalidRecordError):
            patient.open_session(idempotency_key="")
        with pytest.raises(NotFoundError):
            session.start(BASH, family="none")
        session.close()
        with pytest.raises(SessionClosedError):
            session.start(BASH)
        with pytest.raises(SessionClosedError):
            session.record(BASH, made())
        with pytest.raises(SessionClosedError):
            session.record_many([])
        with pytest.raises(SessionClosedError):
            session.add_message("user", "too late")
        with pytest.raises(SessionClosedError):
            session.close()
    assert repair(patient).outbox.delivered_count == 1


def test_many_calls_wait_one_by_one_and_each_is_told_of(patient: Store, database: str) -> None:
    session = patient.open_session()
    told: list[Finished] = []
    with away(patient, database):
        done = session.record_many(numbered_calls(300, keyed=True), on_durable=told.append)
    assert (done.recorded_count, done.known_count, done.waiting_count) == (0, 0, 300)
    assert repair(patient).outbox.delivered_count == 300
    check_shown(patient, *told)
    assert printed(patient, session.id) == [b"%d\n" % n for n in range(300)]
    again = session.record_many(numbered_calls(300, keyed=True))
    assert (again.recorded_count, again.known_count) == (0, 300)


def test_an_error_of_who_is_told_ends_many_calls(patient: Store, database: str) -> None:
    session = patient.open_session()

    def refuse(_: Finished) -> None:
        raise UnavailableError("nobody listens")

    with pytest.raises(UnavailableError, match="nobody listens"):
        session.record_many(numbered_calls(2), on_durable=refuse)
    assert not is_waiting(patient)


def test_tasks_use_the_outbox_too(patient: Store, database: str) -> None:
    session = patient.open_session()

    async def record() -> list[Finished]:
        return list(await asyncio.gather(*(session.arecord(BASH, made()) for _ in range(5))))

    with away(patient, database):
        waiting = asyncio.run(record())
    repair(patient)
    check_shown(patient, *waiting)


def test_a_producer_leaves_the_receipt_to_the_store(patient: Store) -> None:
    outbox = patient.fallback.outbox
    session = SessionOpened(title="a hook", environment={"host": "here"})
    streams = tuple(EndedStream(role=r, content=c) for r, c in (("stdout", BIG), ("stderr", b"")))
    result = {"command": "make", "exit_status": 2} | {one.role: one.facts() for one in streams}
    call = CallEnded(
        session=session.id,
        tool_name="Bash",
        complete_output=complete_output_json("Bash", "done", result=result),
        streams=streams,
        idempotency_key="hook 1",
    )
    again = CallEnded(
        session=session.id,
        tool_name="Bash",
        complete_output=call.complete_output,
        streams=streams,
        idempotency_key="hook 1",
    )
    odd = CallEnded(session=session.id, tool_name="Bash", complete_output="[]")
    bare = CallEnded(
        session=session.id, tool_name="Bash", complete_output=call.complete_output, family="command"
    )
    unknown = CallEnded(
        session=session.id, tool_name="x", complete_output=call.complete_output, family="none"
    )
    for entry in (session, call, again, odd, bare, unknown, SessionEnded(session=session.id)):
        outbox.append(entry)
    done = repair(patient).outbox
    assert (done.delivered_count, done.known_count) == (3, 1)
    assert len(done.kept) == 3
    stored = patient.reader.invocation(call.id)
    assert stored.summary.exit_status == 2
    assert stored.summary.finished_at == call.at
    assert stream_of(stored, "stdout").artifact_path is not None
    assert content_of(patient.reader, stream_of(stored, "stdout")) == BIG
    check_all(patient)


def test_what_a_recorder_finds_when_it_delivers_is_told_in_the_log(
    patient: Store, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "tooltrail")
    session = patient.open_session()
    patient.fallback.outbox.append(MessageAdded(session=new_id(), role="user", text="lost"))
    session.record(BASH, made())
    assert "is not in the store: what is of it is in session" in caplog.text
    patient.fallback.outbox.append(MessageAdded(session=session.id, role="user", text="waits"))
    with patient.fallback.outbox.journal.delivering(wait=True):
        session.record(BASH, made())
    told = f"records wait in the outbox: process {os.getpid()} is delivering it"
    assert told in caplog.text


def test_an_entry_of_tens_of_megabytes_is_delivered(tmp_path: Path) -> None:
    database = str(tmp_path / "trail.db")
    with make_store(database, on_unavailable="outbox") as store:
        session = store.open_session()
        content = b"\xff" + BIG * 40
        with away(store, database):
            waiting = [session.record(BASH, made(content)), session.record(BASH, made(b"next"))]
        assert repair(store).outbox.delivered_count == 2
        check_shown(store, *waiting)
        assert printed(store, session.id) == [content, b"next"]


def test_a_session_of_the_outbox_is_joined_by_another_process(
    patient: Store, database: str
) -> None:
    with away(patient, database):
        session = patient.open_session(title="waits")
        joined = patient.join_session(session.id)
        joined.record(BASH, made(b"joined"))
    without_pause(patient)
    with open_store(database, spool=patient.spool) as other:
        assert other.join_session(session.id).id == session.id
    session.start(BASH)
    assert len(patient.reader.conversation(session.id)[2]) == 2


def test_who_joins_a_session_that_nobody_knows_is_told_although_something_waits(
    patient: Store, database: str
) -> None:
    nobody = new_id()
    with away(patient, database):
        session = patient.open_session()
        patient.start_alone(BASH)
        patient.join_session(session.id).add_message("user", str(nobody))
    (journal,) = patient.fallback.outbox.journal.files()
    named = [json.loads(line.data or b"")["session"] for line in list(iter_lines(journal))[1:]]
    # The store is there, and nothing is delivered yet.
    for _ in range(8):
        patient.fallback.pause.lengthen(monotonic())
    with pytest.raises(NotFoundError, match=str(nobody)):
        patient.join_session(nobody)
    for waiting in {session.id, *map(UUID, named)}:
        assert patient.join_session(waiting).id == waiting
    assert is_waiting(patient)


def test_what_is_of_a_session_that_turns_out_to_be_none_is_delivered_into_one_of_its_own(
    patient: Store, database: str
) -> None:
    nobody = new_id()
    with away(patient, database):
        joined = patient.join_session(nobody)
        joined.record(BASH, made(b"first"))
        started = joined.start(BASH)
        joined.add_message("user", "last")
    without_pause(patient)
    report = repair(patient).outbox
    assert any(str(nobody) in note for note in report.notes)
    started.finish(made(b"second"))
    (own,) = patient.reader.sessions()
    assert own.title == f"delivered late for session {nobody}"
    assert printed(patient, own.id) == [b"first", b"second"]
    assert [one.text for one in patient.reader.conversation(own.id)[1]] == ["last"]
    for attempt in (lambda: joined.record(BASH, made()), lambda: patient.join_session(nobody)):
        with pytest.raises(NotFoundError, match=str(nobody)):
            attempt()
    check_evidence(patient)


def test_a_dry_run_says_what_waits(patient: Store, database: str) -> None:
    with away(patient, database):
        patient.open_session()
    assert repair(patient, dry_run=True).outbox.waiting_count == 1
    assert is_waiting(patient)


def test_while_the_store_is_away_a_repair_leaves_what_waits(patient: Store, database: str) -> None:
    with away(patient, database):
        patient.open_session()
        assert deliver(patient, patient.fallback.outbox).failure
    assert find_backlog(patient).entry_count == 1
