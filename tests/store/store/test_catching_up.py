"""How soon whoever records is in the store again, once it is back."""

import threading
from functools import partial
from pathlib import Path
from time import monotonic

import pytest
from tests.support.away import away, without_pause
from tests.support.ended import BASH, made
from tests.support.evidence import check_evidence
from tests.support.template_stores import make_store
from tests.support.threads import at_once

from tooltrail.records import UnavailableError
from tooltrail.store import Session, Store, find_backlog
from tooltrail.store._outbox.pauses import FIRST_S, Pause

RECORDERS = 8
MOST = 2_000
"""Records of one recorder; each puts behind what waits as long as anything does."""


def test_attempts_that_fail_together_are_one(
    patient: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = patient.open_session()
    together = threading.Barrier(RECORDERS)

    def fail(*_: object, **__: object) -> None:
        together.wait()
        raise UnavailableError("away")

    with monkeypatch.context() as patched:
        patched.setattr(patient, "confirm", fail)
        at_once(*[lambda: session.record(BASH, made())] * RECORDERS)

    # Eight after each other would be half a minute.
    assert patient.fallback.pause.left_s() <= FIRST_S
    assert find_backlog(patient).entry_count == RECORDERS


def test_attempts_that_fail_after_each_other_wait_longer() -> None:
    pause = Pause()
    for count in range(1, 20):
        pause.lengthen(monotonic())
        assert pause.left_s() <= FIRST_S * 2 ** (count - 1)
    assert pause.left_s() > FIRST_S
    assert not pause.is_over()
    pause.end()
    assert pause.is_over()


def test_many_who_go_on_recording_are_done_with_what_waits(patient: Store, database: str) -> None:
    sessions = [patient.open_session() for _ in range(RECORDERS)]
    with away(patient, database):
        sessions[0].record(BASH, made())
    without_pause(patient)

    def record(session: Session) -> int:
        """How many records it takes until three after each other are in the store."""
        in_store = 0
        for count in range(MOST):
            is_there = session.record(BASH, made(b"%d" % count)).recorded_in == "store"
            in_store = in_store + 1 if is_there else 0
            if in_store == 3:
                return count
        return MOST

    counts = at_once(*(partial(record, session) for session in sessions))

    assert MOST not in counts
    assert find_backlog(patient).entry_count == 0
    check_evidence(patient)


def test_an_end_whose_start_was_dropped_is_no_outage(database: str, tmp_path: Path) -> None:
    with make_store(
        database,
        artifacts=str(tmp_path / "artifacts"),
        spool=tmp_path / "spool",
        on_unavailable="drop_and_count",
    ) as store:
        session = store.open_session()
        with away(store, database):
            dropped = [session.start(BASH) for _ in range(3)]
        without_pause(store)
        for invocation in dropped:
            assert invocation.finish(made()).recorded_in == "nowhere"
            assert session.record(BASH, made()).recorded_in == "store"
        assert find_backlog(store).dropped_count == 6
