"""Records that are made while the store is away wait in a journal and are delivered once."""

import asyncio
import json
import os
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any
from uuid import UUID

import pytest
from tests.support.away import away, gone, remove_store, without_pause
from tests.support.disks import small_disk
from tests.support.ended import BASH, failed, made, numbered_calls
from tests.support.evidence import check_evidence
from tests.support.interleaving import before_write
from tests.support.killing import count_moments, run_and_kill
from tests.support.lossy_server import START, LossyServer
from tests.support.outputs import returned
from tests.support.postgres import closed_database
from tests.support.processes import NOBODY, run_python
from tests.support.recording import content_of, stream_of
from tests.support.threads import at_once

from tooltrail.artifacts import artifact_path
from tooltrail.records import (
    IdempotencyConflictError,
    InvalidRecordError,
    NotFoundError,
    SessionClosedError,
    StoreNotFoundError,
    ToolCall,
    UnavailableError,
    digest_of,
)
from tooltrail.records.canonical_json import encode
from tooltrail.store import (
    CallEnded,
    EndedCall,
    EndedStream,
    Finished,
    MessageAdded,
    Session,
    SessionEnded,
    SessionOpened,
    Store,
    _flocks,
    _pauses,
    acknowledge_losses,
    create_store,
    entries,
    find_backlog,
    is_waiting,
    iter_record_checks,
    new_id,
    open_store,
    relocate,
    repair,
    user_spool,
)
from tooltrail.store import _forks as forks
from tooltrail.store._delivering import deliver
from tooltrail.store._journal_lines import iter_lines
from tooltrail.store.entries import complete_output_json
from tooltrail.store.outbox import Outbox

BIG = b"\n".join(digest_of(b"%d" % n).encode() for n in range(10_000))
ODD = [
    (BASH, made(BIG, b"warning\n", 3)),
    (BASH, made(b"\xff\0\r\n")),
    (BASH, failed("denied")),
    (
        ToolCall(tool_name="a\0b", arguments_raw="\ud800", call_id="\0", title="\udfff"),
        returned("a\0b", "nul \0", b"\x89PNG", structured={"a": [1, None, "\udc80", 2**80]}),
    ),
]


@pytest.fixture
def patient(database: str, tmp_path: Path) -> Iterator[Store]:
    """A store whose recorder has an outbox, on each engine in turn."""
    with create_store(
        database,
        artifacts=str(tmp_path / "artifacts"),
        spool=tmp_path / "spool",
        on_unavailable="outbox",
    ) as created:
        yield created


def check_all(store: Store) -> None:
    check_evidence(store)
    assert {check.problem for check in iter_record_checks(store.reader)} <= {""}


def check_shown(store: Store, *some: Finished) -> None:
    """What was handed back is what the store has, byte for byte."""
    for finished in some:
        stored = store.reader.invocation(finished.invocation_id)
        told = stored.receipt
        assert told is not None
        assert stored.canonical_json is not None
        assert stored.canonical_json.encode() == finished.canonical.to_json()
        assert told.text.encode() == finished.receipt.to_bytes()
        assert told.policy_digest == finished.receipt.policy_digest
        assert stored.summary.state == finished.state


def printed(store: Store, session_id: UUID) -> list[bytes]:
    _, _, invocations = store.reader.conversation(session_id)
    return [content_of(store.reader, stream_of(one, "stdout")) for one in invocations]


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


def test_what_is_dropped_is_counted(patient: Store, database: str, tmp_path: Path) -> None:
    with open_store(
        database, spool=tmp_path / "spool", on_unavailable="drop_and_count"
    ) as careless:
        session = careless.open_session()
        with away(careless, database):
            dropped = session.record(BASH, made(BIG))
            session.add_message("user", "gone")
        assert "stdout" in dropped.receipt.text
        without_pause(careless)
        kept = session.record(BASH, made(b"there"))
        backlog = find_backlog(careless)
        assert (backlog.dropped_count, backlog.entry_count) == (2, 0)
        with pytest.raises(NotFoundError):
            careless.reader.invocation(dropped.invocation_id)
        check_shown(careless, kept)


@pytest.fixture
def careless(patient: Store, database: str) -> Iterator[Store]:
    """The same store, by a recorder that drops what it cannot record, and counts that."""
    with open_store(database, spool=patient.spool, on_unavailable="drop_and_count") as opened:
        yield opened


def test_a_session_that_was_dropped_is_opened_when_the_store_is_back(
    careless: Store, database: str
) -> None:
    with away(careless, database):
        parent = careless.open_session(title="parent")
        child = careless.open_session(title="child", agent="a", parent=parent.id)
        child.record(BASH, made(b"lost"))
    without_pause(careless)
    later = careless.open_session(parent=child.id)
    child.record(BASH, made(b"kept"))
    assert careless.reader.session(later.id).parent_id == child.id
    view = careless.reader.session(child.id)
    assert (view.title, view.agent, view.parent_id) == ("child", "a", parent.id)
    parent.close()
    assert printed(careless, child.id) == [b"kept"]
    assert find_backlog(careless).dropped_count == 3
    check_all(careless)


def test_a_session_that_another_thread_opens_late_meanwhile_takes_the_record(
    careless: Store, database: str
) -> None:
    with away(careless, database):
        session = careless.open_session()
    without_pause(careless)
    with before_write(careless, lambda: session.record(BASH, made(b"first"))):
        session.record(BASH, made(b"second"))
    assert printed(careless, session.id) == [b"first", b"second"]


def test_a_session_that_nobody_can_open_any_more_is_dropped_and_raises_nothing(
    careless: Store, database: str
) -> None:
    kept = careless.open_session()
    careless.open_session(title="other", idempotency_key="k")
    with away(careless, database):
        refused = careless.open_session(title="t", idempotency_key="k")
        gone = careless.open_session().id
        joined = careless.join_session(gone)
    without_pause(careless)
    again = careless.join_session(gone)
    child = careless.open_session(parent=gone)
    for session in (refused, joined, again):
        session.record(BASH, made())
        session.record_many(numbered_calls(2))
        session.add_message("user", "lost")
    kept.record(BASH, made(b"kept"))
    assert printed(careless, kept.id) == [b"kept"]
    assert careless.reader.session(child.id).parent_id is None
    assert find_backlog(careless).dropped_count == 2 + 3 * 4
    with pytest.raises(NotFoundError):
        careless.join_session(new_id())
    with pytest.raises(NotFoundError):
        careless.open_session(parent=new_id())


def test_who_drops_does_not_try_again_at_once_either(
    careless: Store, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_pauses, "FIRST_S", 3600)
    monkeypatch.setattr(_pauses, "LONGEST_S", 3600)
    session = careless.open_session()
    with away(careless, database):
        session.record(BASH, made(b"0"))
    session.record(BASH, made(b"1"))
    session.record_many(numbered_calls(2))
    assert find_backlog(careless).dropped_count == 4
    told = [json.loads(line.data or b"") for line in iter_lines(dropped_in(careless))]
    assert told[1]["reason"] == "the store was away a moment ago"
    without_pause(careless)
    session.record(BASH, made(b"2"))
    assert printed(careless, session.id) == [b"2"]


def test_where_nobody_can_tell_what_was_dropped_nothing_is_raised(careless: Store) -> None:
    dropped_in(careless).mkdir(parents=True)
    session = careless.open_session(parent=new_id())
    session.record(BASH, made(b"kept"))
    assert printed(careless, session.id) == [b"kept"]
    assert careless.reader.session(session.id).parent_id is None


def dropped_in(store: Store) -> Path:
    return store.fallback.outbox.put_away.dropped


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


def test_what_hangs_on_another_session_that_waits_is_delivered_behind_it(
    patient: Store, database: str
) -> None:
    known = patient.open_session(title="known", idempotency_key="known")
    with away(patient, database):
        parent = patient.open_session(title="p", idempotency_key="p")
        child = patient.open_session(title="c", idempotency_key="c", parent=parent.id)
        again = patient.open_session(title="known", idempotency_key="known")
        for number in range(3):
            for session in (child, known, again, parent):
                session.record(BASH, made(b"%d" % number))
    done = repair(patient).outbox
    assert (done.kept, done.notes) == ([], [])
    assert patient.reader.session(child.id).parent_id == parent.id
    numbers = [b"0", b"1", b"2"]
    assert [printed(patient, one.id) for one in (parent, child)] == [numbers] * 2
    assert printed(patient, known.id) == sorted(numbers * 2)
    check_all(patient)


def test_the_same_key_waits_twice_and_is_recorded_once(patient: Store, database: str) -> None:
    with away(patient, database):
        sessions = [patient.open_session(title="t", idempotency_key="s") for _ in range(2)]
        for session in sessions:
            session.record(BASH, made(b"same"), idempotency_key="c")
            session.record(BASH, made(b"own"))
    report = repair(patient)
    assert report.outbox.kept == []
    without_pause(patient)
    sessions[1].record(BASH, made(b"late"))
    assert sessions[1].id == sessions[0].id
    assert printed(patient, sessions[0].id) == [b"same", b"own", b"own", b"late"]
    check_all(patient)


def test_what_has_a_key_in_a_session_by_its_key_is_the_same_before_and_after(
    patient: Store, database: str
) -> None:
    first = patient.open_session(title="t", idempotency_key="s")
    before = first.record(BASH, made(b"before"), idempotency_key="before")
    with away(patient, database):
        waits = patient.open_session(title="t", idempotency_key="s")
        meanwhile = waits.record(BASH, made(b"meanwhile"), idempotency_key="meanwhile")
    patient.fallback.outbox.append(
        CallEnded(
            session=waits.id,
            tool_name=BASH.tool_name,
            arguments_raw=BASH.arguments_raw,
            call_id=BASH.call_id,
            complete_output=made(b"hook").to_json().decode(),
            streams=tuple(EndedStream(role=r, content=c) for r, c in HOOKED.items()),
            idempotency_key="hook",
        )
    )
    done = repair(patient).outbox
    assert (done.delivered_count, done.known_count, done.kept) == (2, 1, [])
    without_pause(patient)
    with away(patient, database):
        waits = patient.open_session(title="t", idempotency_key="s")
        waits.record(BASH, made(b"before"), idempotency_key="before")
    done = repair(patient).outbox
    assert (done.delivered_count, done.known_count, done.kept) == (0, 2, [])
    without_pause(patient)
    again = {key: first.record(BASH, made(key.encode()), idempotency_key=key) for key in KEYS}
    assert again["before"].invocation_id == before.invocation_id
    assert again["meanwhile"].invocation_id == meanwhile.invocation_id
    assert printed(patient, first.id) == [key.encode() for key in KEYS]
    with pytest.raises(IdempotencyConflictError):
        patient.open_session().record(BASH, made(b"hook"), idempotency_key="hook")


KEYS = ("before", "meanwhile", "hook")
HOOKED = {"stdout": b"hook", "stderr": b""}


def test_a_key_with_other_content_is_put_away_and_keeps_nobody(
    patient: Store, database: str
) -> None:
    session = patient.open_session()
    session.record(BASH, made(b"one"), idempotency_key="k")
    with away(patient, database):
        session.record(BASH, made(b"before"))
        session.record(BASH, made(b"two"), idempotency_key="k")
        session.record(BASH, made(b"behind"))
    report = repair(patient)
    (kept,) = report.outbox.kept
    assert kept.line == 2
    assert "'k' names invocation" in kept.reason
    assert Path(kept.kept_in).is_file()
    assert kept.reason in Path(f"{kept.kept_in}.reason").read_text()
    assert printed(patient, session.id) == [b"one", b"before", b"behind"]
    assert find_backlog(patient).kept_count == 1
    assert find_backlog(patient).kept_in == (str(Path(kept.kept_in).parent),)


def test_what_is_of_a_closed_session_or_none_gets_one_of_its_own(
    patient: Store, database: str
) -> None:
    session = patient.open_session()
    with away(patient, database):
        waiting = session.record(BASH, made(b"late"))
        session.add_message("user", "late, too")
        session.close()
    without_pause(patient)
    with open_store(database, spool=patient.spool.parent / "elsewhere") as other:
        other.join_session(session.id).close()
    patient.fallback.outbox.append(MessageAdded(session=new_id(), role="user", text="lost"))
    notes = repair(patient).outbox.notes
    assert len(notes) == 2
    assert "is closed: what is of it is in session" in notes[0]
    assert "is not in the store" in notes[1]
    check_shown(patient, waiting)
    check_all(patient)
    assert patient.reader.invocation(waiting.invocation_id).summary.session_id != session.id


def test_a_session_without_its_parent_is_delivered_without(patient: Store) -> None:
    opened = SessionOpened(title="an orphan", parent=new_id())
    patient.fallback.outbox.append(opened)
    (note,) = repair(patient).outbox.notes
    assert "has no parent" in note
    assert patient.reader.session(opened.id).parent_id is None


@pytest.mark.parametrize("key", [None, "k"])
def test_a_session_is_linked_to_one_that_waits_in_another_spool(
    patient: Store, tmp_path: Path, key: str | None
) -> None:
    other = Outbox.of(tmp_path / "other", patient.info.id)
    known = patient.open_session(title="p", idempotency_key="k")
    oldest = SessionOpened(title="oldest")
    parent = SessionOpened(title="p", idempotency_key=key, parent=None if key else oldest.id)
    said = MessageAdded(session=parent.id, role="user", text="of the parent")
    other.append(MessageAdded(session=known.id, role="user", text=f"names {parent.id}"))
    for entry in (oldest, parent, said):
        other.append(entry)
    child = SessionOpened(title="child", parent=parent.id)
    for entry in (child, SessionOpened(title="sibling", parent=parent.id)):
        patient.fallback.outbox.append(entry)
    # As a delivery of the other one would be that goes on at the same time.
    with other.journal.delivering(wait=True):
        done = deliver(patient, patient.fallback.outbox, others=[other])
    assert (done.kept, done.notes, done.failure) == ([], [], "")
    found = known.id if key else parent.id
    assert patient.reader.session(child.id).parent_id == found
    done = repair(patient, also=[tmp_path / "other"]).outbox
    assert (done.kept, done.notes, done.known_count) == ([], [], 1 if key else 2)
    if not key:
        assert patient.reader.session(found).parent_id == oldest.id
    _, messages, _ = patient.reader.conversation(found)
    assert messages[-1].text == "of the parent"
    check_all(patient)


def test_a_recorder_looks_for_a_parent_in_the_spool_of_the_user(
    patient: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    parent = SessionOpened(title="parent")
    Outbox.of(user_spool(), patient.info.id).append(parent)
    child = SessionOpened(title="child", parent=parent.id)
    patient.fallback.outbox.append(child)
    patient.open_session()
    assert patient.reader.session(child.id).parent_id == parent.id


def test_a_parent_that_is_in_the_store_is_not_looked_for_elsewhere(
    patient: Store, tmp_path: Path
) -> None:
    parent = patient.open_session()
    other = Outbox.of(tmp_path / "other", patient.info.id)
    other.append(MessageAdded(session=parent.id, role="user", text="waits"))
    child = SessionOpened(parent=parent.id)
    lone = SessionOpened(parent=new_id())
    for entry in (child, lone):
        patient.fallback.outbox.append(entry)
    done = deliver(patient, patient.fallback.outbox, others=[other])
    assert patient.reader.session(child.id).parent_id == parent.id
    assert [note.startswith(f"session {lone.id} has no parent") for note in done.notes] == [True]


def test_a_session_with_a_key_that_is_none_is_put_away_and_keeps_nobody(patient: Store) -> None:
    entries = [SessionOpened(idempotency_key=""), SessionOpened(title="next")]
    for entry in entries:
        patient.fallback.outbox.append(entry)
    done = repair(patient).outbox
    assert (done.delivered_count, [one.line for one in done.kept]) == (1, [1])
    assert "an idempotency key has 1 to" in done.kept[0].reason


def test_a_parent_that_is_refused_leaves_its_child_without_one(
    patient: Store, tmp_path: Path
) -> None:
    patient.open_session(title="another", idempotency_key="k")
    other = Outbox.of(tmp_path / "other", patient.info.id)
    parent = SessionOpened(title="p", idempotency_key="k")
    other.append(parent)
    child = SessionOpened(parent=parent.id)
    patient.fallback.outbox.append(child)
    done = repair(patient, also=[tmp_path / "other"]).outbox
    (note,) = done.notes
    assert note.endswith(
        f"no session has the id {parent.id}, and none waits in "
        f"{patient.fallback.outbox.journal.folder}, {other.journal.folder}"
    )
    assert (len(done.kept), done.delivered_count) == (1, 1)


def test_a_repair_does_not_wait_for_ever_for_who_is_stopped_while_it_delivers(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox = sqlite_store.fallback.outbox
    outbox.append(SessionOpened())
    holds_read, holds_write = os.pipe()
    holder = os.fork()
    if not holder:
        with outbox.journal.delivering(wait=False):
            os.write(holds_write, b".")
            os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(0)
    assert os.read(holds_read, 1)
    os.waitpid(holder, os.WUNTRACED)
    with monkeypatch.context() as patch:
        patch.setattr(_flocks, "MOST_WAIT_S", 0.02)
        done = repair(sqlite_store).outbox
    told = (
        f"process {holder}, which is stopped (`kill -CONT {holder}` lets it go on), is delivering"
    )
    assert done.failure.startswith(told)
    assert (done.waiting_count, done.delivered_count) == (1, 0)
    os.kill(holder, signal.SIGCONT)
    os.waitpid(holder, 0)
    assert repair(sqlite_store).outbox.delivered_count == 1
    for descriptor in (holds_read, holds_write):
        os.close(descriptor)


def test_who_delivers_is_named_as_far_as_that_is_known(tmp_path: Path) -> None:
    journal = Outbox(tmp_path / "outbox").journal
    assert journal.deliverer() == "another process"
    with journal.delivering(wait=True):
        assert journal.deliverer() == f"process {os.getpid()}"
    for signed, told in (("7 elsewhere", "process 7 on elsewhere"), ("x", "another process")):
        (journal.folder / "delivering").write_text(signed)
        assert journal.deliverer() == told


def test_a_damaged_line_is_named_and_put_away_and_keeps_nobody(
    patient: Store, database: str
) -> None:
    session = patient.open_session()
    with away(patient, database):
        for number in range(3):
            session.record(BASH, made(b"%d" % number))
    journal = patient.fallback.outbox.journal.waiting / "journal"
    lines = journal.read_bytes().splitlines(keepends=True)
    damaged = lines[1][:-10] + b"#" + lines[1][-9:]
    journal.write_bytes(lines[0] + damaged + lines[2])
    assert find_backlog(patient).unreadable_count == 1
    (kept,) = repair(patient).outbox.kept
    assert (Path(kept.file).name, kept.line) == ("sealed-000000000001", 2)
    assert Path(kept.kept_in).read_bytes() == damaged
    assert printed(patient, session.id) == [b"0", b"2"]


def test_an_entry_of_a_newer_program_waits_for_one_with_all_that_is_behind_it(
    patient: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, mine = patient.open_session(), patient.fallback.outbox
    messages = [
        MessageAdded(session=session.id, role="user", text=text) for text in ("1", "2", "3")
    ]
    mine.append(messages[0])

    def third(_: object) -> int:
        return 3

    with monkeypatch.context() as newer:
        newer.setattr(entries, "_version_of", third)
        mine.append(messages[1])
    mine.append(messages[2])
    for delivered_count in (1, 0):
        done = repair(patient).outbox
        assert (done.delivered_count, done.waiting_count, done.kept) == (delivered_count, 3, [])
        told = "is of version 3, this program reads up to 2: it waits for a newer program"
        assert done.failure.endswith(told)
        assert done.failure.startswith("line 2 of ")
    without_pause(patient)
    session.add_message("user", "4")
    (sealed, journal) = mine.journal.files()
    assert [line.number for line in iter_lines(journal)] == [1]
    text = sealed.read_bytes().splitlines()[1].partition(b" ")[2].replace(b'"v":3', b'"v":1')
    lines = sealed.read_bytes().splitlines(keepends=True)
    lines[1] = digest_of(text).encode() + b" " + text + b"\n"
    sealed.write_bytes(b"".join(lines))
    assert repair(patient).outbox.failure == ""
    _, found, _ = patient.reader.conversation(session.id)
    assert [one.text for one in found] == ["1", "2", "3", "4"]


def test_what_was_put_away_is_tried_again_and_delivered_once_whoever_is_killed(
    sqlite_store: Store,
) -> None:
    session, mine = sqlite_store.open_session(), sqlite_store.fallback.outbox
    texts = [f"{number}" for number in range(5)]
    for text in texts:
        mine.append(MessageAdded(session=session.id, role="user", text=text))
    (path,) = mine.journal.files()
    for number, line in enumerate(path.read_bytes().splitlines()):
        os.utime(mine.put_away.keep(line, "a reason"), ns=(number, number))
    mine.put_away.keep(b"damaged", "another reason")
    path.unlink()

    def retry() -> None:
        mine.retry_kept()

    count = count_moments(retry)
    for moment in range(1, count, count // 12):
        run_and_kill(retry, moment)
    retry()
    assert repair(sqlite_store).outbox.failure == ""
    _, found, _ = sqlite_store.reader.conversation(session.id)
    assert [one.text for one in found] == texts
    (path,) = mine.put_away.kept.glob("*[!n]")
    assert path.read_bytes() == b"damaged\n"


def test_what_is_tried_again_is_looked_at_anew_by_the_process_that_refused_it(
    sqlite_store: Store,
) -> None:
    session, mine = sqlite_store.open_session(), sqlite_store.fallback.outbox
    mine.append(CallEnded(session=session.id, tool_name="t", complete_output='{"nonsense":1}'))
    assert len(deliver(sqlite_store, mine).kept) == 1
    assert mine.retry_kept() == 1
    # The file that it waits in now may have the name and the inode of the one before.
    assert len(deliver(sqlite_store, mine).kept) == 1


def test_what_is_tried_again_while_another_delivers_is_never_lost(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, mine = sqlite_store.open_session(), sqlite_store.fallback.outbox
    refused = CallEnded(session=session.id, tool_name="t", complete_output='{"nonsense":1}')
    mine.append(refused)
    assert len(deliver(sqlite_store, mine).kept) == 1
    append = mine.journal.append

    def append_and_deliver(data: bytes) -> None:
        append(data)
        # As another process does that records just now.
        deliver(sqlite_store, Outbox(mine.journal.folder), wait=False)

    monkeypatch.setattr(mine.journal, "append", append_and_deliver)
    assert mine.retry_kept() == 1
    deliver(sqlite_store, mine)
    (path,) = mine.put_away.kept.glob("*[!n]")
    assert str(refused.id) in path.read_text()


def test_who_delivers_and_keeps_something_from_being_tried_again_is_named(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_flocks, "MOST_WAIT_S", 0.05)
    mine = sqlite_store.fallback.outbox
    mine.put_away.keep(b"sha256:0 {}", "a reason")
    with mine.journal.delivering(wait=True):
        report = repair(sqlite_store, retry_kept=True)
    told = f"{mine.put_away.kept} cannot be retried: process {os.getpid()} is delivering what waits"
    assert report.outbox.failure.startswith(told)
    assert mine.put_away.kept_count() == 1


def test_what_was_put_away_and_cannot_be_read_is_told(sqlite_store: Store) -> None:
    kept = sqlite_store.fallback.outbox.put_away.kept
    kept.parent.mkdir(parents=True)
    kept.touch()
    with pytest.raises(UnavailableError, match=f"{kept} cannot be retried"):
        repair(sqlite_store, retry_kept=True)
    with pytest.raises(UnavailableError, match="cannot be changed"):
        acknowledge_losses(sqlite_store)
    kept.unlink()
    assert acknowledge_losses(sqlite_store) == ()


def test_a_session_that_was_dropped_is_known_when_that_was_acknowledged(
    careless: Store, database: str
) -> None:
    with away(careless, database):
        gone = careless.open_session().id
    without_pause(careless)
    assert len(acknowledge_losses(careless)) == 1
    careless.join_session(gone).record(BASH, made())
    assert find_backlog(careless).dropped_count == 1


def test_what_is_no_entry_for_any_reason_is_put_away_and_keeps_nobody(
    patient: Store, database: str
) -> None:
    session, journal = patient.open_session(), patient.fallback.outbox.journal
    with away(patient, database):
        session.record(BASH, made(b"shown"))
    (line,) = iter_lines(journal.waiting / "journal")
    call: dict[str, Any] = json.loads(line.data or b"")
    message: dict[str, Any] = {
        "v": 1,
        "kind": "message",
        "session": str(session.id),
        "role": "user",
    }
    many: list[dict[str, Any]] = [
        {**message, "text": 5},
        {**message, "text": "naive", "at": "2026-01-01T00:00:00"},
        {**call, "shown": {**call["shown"], "facts": {"colour": "red"}}},
        {**call, "shown": {**call["shown"], "canonical": "{ }"}},
        {**call, "shown": {**call["shown"], "canonical": '{"a":1}'}},
        {**call, "shown": {**call["shown"], "receipt": 7}},
        {**call, "complete_output": "{"},
        {**call, "tool_name": None},
        {**call, "shown": None, "streams": []},
        {**call, "shown": None, "policy": "[]"},
    ]
    for odd in many:
        journal.append(encode({**odd, "id": str(new_id())}))
    done = repair(patient).outbox
    assert (done.delivered_count, len(done.kept), done.failure) == (1, 10, "")
    assert printed(patient, session.id) == [b"shown"]
    check_all(patient)


def test_what_is_an_artifact_for_its_caller_waits_for_the_artifacts(
    patient: Store, database: str, tmp_path: Path
) -> None:
    session = patient.open_session()
    with away(patient, database):
        session.record(BASH, made(BIG))
    journal = patient.fallback.outbox.journal
    (line,) = iter_lines(journal.waiting / "journal")
    call: dict[str, Any] = json.loads(line.data or b"")
    call["streams"][0]["path"] = artifact_path(digest_of(BIG))
    (journal.waiting / "journal").unlink()
    journal.append(encode(call))
    (tmp_path / "artifacts").rename(tmp_path / "hidden")
    assert "artifact" in repair(patient).outbox.failure
    assert find_backlog(patient).entry_count == 1
    (tmp_path / "hidden").rename(tmp_path / "artifacts")
    assert repair(patient).outbox.delivered_count == 1
    assert printed(patient, session.id) == [BIG]
    call["streams"][0]["path"] = "sha256/00/other.zst"
    journal.append(encode({**call, "id": str(new_id())}))
    (kept,) = repair(patient).outbox.kept
    assert kept.reason.startswith("artifact sha256/00/other.zst would be ")


def test_a_damaged_session_keeps_nobody_else_from_the_store(sqlite_store: Store) -> None:
    sessions = [sqlite_store.open_session() for _ in range(2)]
    with sqlite_store.database.write() as connection:
        connection.exec_driver_sql("DROP TRIGGER ledger_heads_no_update")
        connection.exec_driver_sql(
            f"UPDATE ledger_heads SET digest = 'gone' WHERE session_key = {sessions[0].key}"
        )
    for session in sessions:
        sqlite_store.fallback.outbox.append(
            MessageAdded(session=session.id, role="user", text="hello")
        )
    done = repair(sqlite_store).outbox
    assert (done.delivered_count, len(done.kept)) == (1, 1)
    assert "the ledger head of session" in done.kept[0].reason


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


def test_a_delivery_that_is_killed_at_any_moment_records_each_once(tmp_path: Path) -> None:
    database = str(tmp_path / "trail.db")
    with create_store(database, on_unavailable="outbox") as store:
        session = store.open_session()
        with away(store, database):
            waiting = [session.record(BASH, made(b"%d" % n)) for n in range(6)]
            other = store.open_session(idempotency_key="o")
            waiting.append(other.record(BASH, made(b"x"), idempotency_key="k"))
            session.add_message("user", "hello")
        folder = store.fallback.outbox.journal.folder
    saved = (folder / "waiting" / "journal").read_bytes()

    def deliver_all() -> None:
        with open_store(database) as mine:
            repair(mine)

    count = count_moments(deliver_all)
    with open_store(database) as store:
        check_shown(store, *waiting)
    for moment in range(1, count, count // 25):
        (folder / "waiting").mkdir(exist_ok=True)
        (folder / "waiting" / "journal").write_bytes(saved)
        run_and_kill(deliver_all, moment)
    with open_store(database) as store:
        repair(store)
        assert not is_waiting(store)
        assert printed(store, session.id) == [b"%d" % n for n in range(6)]
        assert sum(store.reader.counts().invocations.values()) == len(waiting)
        check_shown(store, *waiting)
        check_all(store)


def test_a_first_delivery_that_is_killed_is_gone_on_from(tmp_path: Path) -> None:
    for n in range(12):
        database = str(tmp_path / f"{n}.db")
        with create_store(
            database,
            artifacts=str(tmp_path / f"a{n}"),
            spool=tmp_path / f"s{n}",
            on_unavailable="outbox",
        ) as store:
            sessions = [store.open_session() for _ in range(3)]
            with away(store, database):
                waiting = [s.record(BASH, made(b"%d" % k)) for k in range(4) for s in sessions]
                later = store.open_session()
                waiting.append(later.record(BASH, made(b"x")))

        def deliver_all(database: str = database, spool: Path = tmp_path / f"s{n}") -> None:
            with open_store(database, spool=spool) as mine:
                repair(mine)

        # Dense where the transactions are, so that some are killed between two of them.
        run_and_kill(deliver_all, 3_000 + 900 * n)
        deliver_all()
        with open_store(database, spool=tmp_path / f"s{n}") as store:
            assert not is_waiting(store)
            for session in sessions:
                assert printed(store, session.id) == [b"0", b"1", b"2", b"3"]
            check_shown(store, *waiting)
            check_all(store)


@pytest.mark.parametrize("is_committed", [True, False])
@pytest.mark.parametrize("output", [b"short", BIG])
def test_a_commit_without_an_answer_is_recorded_once_as_it_was_shown(
    lossy: LossyServer, postgres_url: str, tmp_path: Path, output: bytes, is_committed: bool
) -> None:
    places = {"artifacts": str(tmp_path / "artifacts"), "spool": tmp_path / "spool"}
    create_store(postgres_url, **places).close()  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with open_store(lossy.url, spool=tmp_path / "spool", on_unavailable="outbox") as store:
        session = store.open_session()
        lossy.lose_an_answer(START, is_committed=is_committed)
        finished = session.record(BASH, made(output))
        lossy.lose_an_answer(b"INSERT INTO messages", is_committed=is_committed)
        without_pause(store)
        repair(store)
        session.add_message("user", "once")
        told: list[Finished] = []
        without_pause(store)
        repair(store)
        lossy.lose_an_answer(START, is_committed=is_committed)
        lossy.lose_an_answer(b"COPY", is_committed=is_committed)
        session.record_many([EndedCall(BASH, made(output + b"!"))] * 2, on_durable=told.append)
        repair(store)
        check_shown(store, finished, *told)
        _, messages, invocations = store.reader.conversation(session.id)
        assert len(messages) == 1
        assert len(invocations) == 3
        check_all(store)


def test_a_server_that_comes_and_goes_under_load_costs_no_record_and_no_error(
    postgres_url: str, tmp_path: Path
) -> None:
    places = {"artifacts": str(tmp_path / "artifacts"), "spool": tmp_path / "spool"}
    told: dict[UUID, list[Finished]] = {}
    with create_store(postgres_url, **places, on_unavailable="outbox") as store:  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        is_over = threading.Event()

        def load() -> None:
            session = store.open_session()
            mine = told[session.id] = []
            while not is_over.is_set():
                mine.append(session.record(BASH, made(b"%d" % len(mine))))

        def outages() -> None:
            try:
                for _ in range(3):
                    seen = sum(map(len, told.values()))
                    with closed_database(postgres_url):
                        while not is_waiting(store):
                            is_over.wait(0.01)
                    while sum(map(len, told.values())) < seen + 30:
                        without_pause(store)
                        is_over.wait(0.01)
            finally:
                is_over.set()

        at_once(load, load, load, outages)
        repair(store)
        assert not is_waiting(store)
        for session_id, some in told.items():
            assert printed(store, session_id) == [b"%d" % n for n in range(len(some))]
            check_shown(store, *some)
        check_all(store)


@pytest.fixture
def known(database: str, tmp_path: Path) -> Path:
    """The spool of a store that was open with an outbox once, on each engine in turn."""
    spool = tmp_path / "spool"
    artifacts = str(tmp_path / "artifacts")
    create_store(database, artifacts=artifacts, spool=spool, on_unavailable="outbox").close()
    return spool


def test_a_process_that_starts_while_the_store_is_away_records_all_the_same(
    database: str, known: Path
) -> None:
    with gone(database):
        store = open_store(database, spool=known, on_unavailable="outbox")
        session = store.open_session(title="away from the beginning")
        waiting = [session.record(*one) for one in ODD]
        session.add_message("user", "hello")
        with pytest.raises(UnavailableError):
            store.reader.sessions()
        waiting.append(store.start_alone(BASH).finish(made(b"alone")))
        with pytest.raises(UnavailableError):
            repair(store)
        with store.open_session() as other:
            # As a process that was killed would leave it.
            waiting.append(other.record(BASH, made(b"other")))
    with store:
        without_pause(store)
        waiting.append(session.record(BASH, made(BIG)))
        assert not is_waiting(store)
        check_shown(store, *waiting)
        assert store.reader.session(session.id).title == "away from the beginning"
        check_all(store)


def test_what_a_process_recorded_that_never_met_the_store_is_delivered_by_the_next(
    database: str, known: Path
) -> None:
    with (
        gone(database),
        open_store(database, spool=known, on_unavailable="outbox") as away_store,
        away_store.open_session() as session,
    ):
        waiting = session.record(BASH, made(b"alone"))
    with open_store(database, spool=known) as store:
        assert repair(store).outbox.delivered_count == 3
        check_shown(store, waiting)


def test_a_store_that_was_moved_to_other_artifacts_is_found_when_it_is_back(
    database: str, known: Path, tmp_path: Path
) -> None:
    with gone(database):
        store = open_store(database, spool=known, on_unavailable="outbox")
    with open_store(database, spool=known) as other:
        relocate(other, str(tmp_path / "elsewhere"))
    with store:
        finished = store.open_session().record(BASH, made(BIG))
        stored = store.reader.invocation(finished.invocation_id)
        assert stream_of(stored, "stdout").artifact_path is not None
        assert content_of(store.reader, stream_of(stored, "stdout")) == BIG
        assert store.archive.sink.url == f"file://{tmp_path / 'elsewhere'}"


def test_while_the_store_is_away_who_knows_nothing_of_the_store_is_turned_away(
    database: str, known: Path, tmp_path: Path
) -> None:
    (memory,) = (known / "known-stores").iterdir()
    assert memory.stat().st_mode & 0o777 == 0o600
    saved = memory.read_bytes()
    is_unknown = UnavailableError if "://" in database else StoreNotFoundError
    with gone(database):
        with pytest.raises(UnavailableError):
            open_store(database, spool=known, on_unavailable="raise")
        with pytest.raises(is_unknown):
            open_store(database, spool=tmp_path / "other", on_unavailable="outbox")
        memory.write_bytes(saved.replace(b"format", b"farmot"))
        with pytest.raises(is_unknown):
            open_store(database, spool=known, on_unavailable="outbox")
    with open_store(database, spool=known) as store:
        # Who only reads leaves the spool as it is.
        assert store.reader.sessions() == []
        assert memory.read_bytes() != saved
        store.open_session()
    assert memory.read_bytes() == saved
    assert list((known / "known-stores").iterdir()) == [memory]


def test_what_waits_is_not_delivered_to_another_store_at_the_same_place(
    database: str, known: Path, tmp_path: Path
) -> None:
    with gone(database):
        store = open_store(database, spool=known, on_unavailable="outbox")
        session = store.open_session()
        session.record(BASH, made(b"of the first"))
    remove_store(database)
    with create_store(database, artifacts=str(tmp_path / "a2"), spool=known) as second, store:
        without_pause(store)
        for _ in range(2):
            with pytest.raises(StoreNotFoundError, match=f"where store {second.info.id} is now"):
                session.record(BASH, made(b"late"))
        assert repair(second).outbox.delivered_count == 0
        assert store.fallback.outbox.is_waiting()


def test_who_was_open_meanwhile_delivers_nothing_to_another_store_at_the_same_place(
    database: str, known: Path, tmp_path: Path
) -> None:
    store = open_store(database, spool=known, on_unavailable="outbox")
    session = store.open_session()
    with away(store, database):
        session.record(BASH, made(b"of the first"))
    remove_store(database)
    with create_store(database, artifacts=str(tmp_path / "a2"), spool=known) as second, store:
        without_pause(store)
        with pytest.raises(StoreNotFoundError, match=f"where store {second.info.id} is now"):
            session.record(BASH, made(b"late"))
        assert store.fallback.outbox.is_waiting()
        assert second.reader.sessions() == []


def test_a_file_that_went_with_its_disk_is_waited_for(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 64 << 20) as disk:
        database, spool = disk.folder / "trail.db", tmp_path / "spool"
        artifacts = str(tmp_path / "artifacts")
        create_store(database, artifacts=artifacts, spool=spool, on_unavailable="outbox").close()
        with disk.unmounted():
            with open_store(database, spool=spool, on_unavailable="outbox") as store:
                waiting = store.open_session(title="waits").record(BASH, made(b"waits"))
            told = f"{database} is not there, which has store {store.info.id} "
            with pytest.raises(UnavailableError, match=told):
                open_store(database, spool=spool, on_unavailable="raise")
            assert list(disk.folder.iterdir()) == []
        with open_store(database, spool=spool) as store:
            assert repair(store).outbox.delivered_count == 2
            check_shown(store, waiting)
            check_all(store)


def test_children_that_are_forked_while_threads_use_the_outbox_use_it_too(
    patient: Store, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A child may not use an SQLite file that its parent was using just then.
    monkeypatch.setattr(forks, "WAIT_S", 60)
    session, told = patient.open_session(), list[Finished]()
    is_over, children, each = threading.Event(), 3, 5

    def load() -> None:
        while not is_over.is_set():
            without_pause(patient)
            told.append(session.record(BASH, made(b"parent")))

    def fork_some() -> None:
        try:
            for _ in range(children):
                seen = len(told)
                child = os.fork()
                if not child:
                    _record_and_end(session, each)
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
                while len(told) == seen:
                    is_over.wait(0.01)
        finally:
            is_over.set()

    with away(patient, database):
        at_once(load, load, fork_some)
    repair(patient)
    seen = printed(patient, session.id)
    assert seen.count(b"child") == children * each
    assert seen.count(b"parent") == len(told)
    check_shown(patient, *told)
    check_all(patient)


def _record_and_end(session: Session, count: int) -> None:
    status = 1
    try:
        for _ in range(count):
            session.record(BASH, made(b"child"))
        status = 0
    except BaseException:  # noqa: BLE001  the parent reads the exit status
        traceback.print_exc(file=sys.__stderr__)
    finally:
        os._exit(status)


def test_a_full_disk_of_the_database_counts_as_away(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 8 << 20) as disk:
        spool = tmp_path / "spool"
        with create_store(disk.folder / "t.db", spool=spool, on_unavailable="outbox") as store:
            session = store.open_session()
            disk.fill()
            waiting = [session.record(BASH, made(BIG[: 60_000 + n])) for n in range(3)]
            assert find_backlog(store).entry_count == 3
            disk.free()
            assert repair(store).outbox.delivered_count == 3
            check_shown(store, *waiting)
            check_all(store)


def test_when_the_journal_cannot_be_written_either_the_error_names_both(tmp_path: Path) -> None:
    with (
        small_disk(tmp_path / "disk", 8 << 20) as disk,
        create_store(disk.folder / "t.db", on_unavailable="outbox") as store,
    ):
        session = store.open_session()
        disk.fill()
        with pytest.raises(UnavailableError) as caught:
            session.record(BASH, made(BIG))
        assert "the disk is nearly full" in str(caught.value) or "is full" in str(caught.value)
        assert f"nor can it be kept in {store.fallback.outbox.journal.folder}" in str(caught.value)


def test_where_nothing_can_be_put_behind_what_waits_records_go_on(
    database: str, tmp_path: Path
) -> None:
    with (
        small_disk(tmp_path / "disk", 8 << 20) as disk,
        create_store(
            database,
            artifacts=str(tmp_path / "a"),
            spool=disk.folder / "spool",
            on_unavailable="outbox",
        ) as store,
    ):
        session = store.open_session()
        with away(store, database):
            session.record(BASH, made(b"waits"))
        with disk.read_only():
            told: list[Finished] = []
            without_pause(store)
            told.append(session.record(BASH, made(b"1")))
            told.append(session.record(BASH, made(b"2")))
            done = session.record_many(
                [EndedCall(BASH, made(b"3")), EndedCall(BASH, made(b"4"))], on_durable=told.append
            )
            assert (done.recorded_count, done.waiting_count) == (2, 0)
            assert find_backlog(store).entry_count == 1
            check_shown(store, *told)
            with away(store, database):
                with pytest.raises(UnavailableError, match="nor can it be kept in"):
                    session.record(BASH, made(b"nowhere"))
                with pytest.raises(UnavailableError):
                    session.record_many(numbered_calls(2))
        repair(store)
        assert printed(store, session.id) == [b"1", b"2", b"3", b"4", b"waits"]
        check_all(store)


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


def test_a_drop_that_cannot_be_counted_is_told_in_the_log(
    sqlite_store: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    database = str(tmp_path / "trail.db")
    with open_store(database, on_unavailable="drop_and_count") as careless:
        session = careless.open_session()
        careless.fallback.outbox.put_away.dropped.mkdir(parents=True)
        with away(careless, database):
            session.record(BASH, made())
        assert careless.fallback.uncounted == 1
    assert "1 records dropped that could not be counted" in caplog.text


def test_a_database_that_may_only_be_read_counts_as_away() -> None:
    code = """
from pathlib import Path
from typing import Any
from uuid import UUID
from tooltrail.store import open_store
with open_store(sys.argv[1], spool=Path(sys.argv[2]), on_unavailable="outbox") as store:
    print(store.join_session(UUID(sys.argv[3])).record(BASH, made(b"read")).invocation_id)
"""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with create_store(folder / "trail.db") as store:
            session = store.open_session()
        (folder / "spool").mkdir(exist_ok=True)
        (folder / "spool").chmod(0o777)
        folder.chmod(0o755)
        (folder / "trail.db").chmod(0o444)
        places = (str(folder / "trail.db"), str(folder / "spool"), str(session.id))
        out, _ = run_python(
            "from tests.support.ended import BASH, made\n" + code, *places, user=NOBODY
        )
        (folder / "trail.db").chmod(0o600)
        with open_store(folder / "trail.db") as store:
            assert find_backlog(store).entry_count == 1
            assert repair(store).outbox.delivered_count == 1
            assert printed(store, session.id) == [b"read"]
            _, _, invocations = store.reader.conversation(session.id)
            assert str(invocations[0].summary.id) == out.strip()


def test_an_entry_of_tens_of_megabytes_is_delivered(tmp_path: Path) -> None:
    database = str(tmp_path / "trail.db")
    with create_store(database, on_unavailable="outbox") as store:
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
