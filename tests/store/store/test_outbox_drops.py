"""Records that are made while the store is away may be dropped instead, and counted."""

import json
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest
from tests.support.away import away, without_pause
from tests.support.ended import BASH, made, numbered_calls
from tests.support.interleaving import before_write
from tests.support.outboxes import BIG, check_all, check_shown, printed

from tooltrail.records import NotFoundError
from tooltrail.store import Store, acknowledge_losses, find_backlog, new_id, open_store
from tooltrail.store._outbox import pauses
from tooltrail.store._outbox.journal_lines import iter_lines


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
    monkeypatch.setattr(pauses, "FIRST_S", 3600)
    monkeypatch.setattr(pauses, "LONGEST_S", 3600)
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


def test_a_session_that_was_dropped_is_known_when_that_was_acknowledged(
    careless: Store, database: str
) -> None:
    with away(careless, database):
        gone = careless.open_session().id
    without_pause(careless)
    assert len(acknowledge_losses(careless)) == 1
    careless.join_session(gone).record(BASH, made())
    assert find_backlog(careless).dropped_count == 1


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


def test_a_session_that_nobody_knows_is_not_joined_although_something_waits(
    patient: Store, careless: Store, database: str
) -> None:
    with away(patient, database):
        waiting = patient.open_session()
    for _ in range(8):
        careless.fallback.pause.lengthen(monotonic())
    nobody = new_id()
    with pytest.raises(NotFoundError, match=str(nobody)):
        careless.join_session(nobody)
    assert careless.join_session(waiting.id).id == waiting.id
