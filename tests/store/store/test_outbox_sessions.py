"""What waits gets the session, the parent and the key that it was recorded with."""

from pathlib import Path

import pytest
from tests.support.away import away, without_pause
from tests.support.ended import BASH, made
from tests.support.outboxes import check_all, check_shown, printed

from tooltrail.records import IdempotencyConflictError
from tooltrail.store import (
    CallEnded,
    EndedStream,
    MessageAdded,
    SessionOpened,
    Store,
    find_backlog,
    new_id,
    open_store,
    repair,
    user_spool,
)
from tooltrail.store._outbox.delivering import deliver
from tooltrail.store.outbox import Outbox


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
