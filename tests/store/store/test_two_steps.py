"""Calls that are started and ended in two steps, with the store away for either or for both."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.away import away
from tests.support.evidence import check_evidence
from tests.support.recording import command_output, content_of, stream_of

from tooltrail.records import ToolCall
from tooltrail.store import (
    Finished,
    Invocation,
    Session,
    Store,
    create_store,
    find_repairable,
    is_waiting,
    iter_record_checks,
    repair,
)

LONG = b"".join(b"%d\n" % number for number in range(30_000))
ODD = ToolCall(tool_name="Bash", arguments_raw='{"a": \ud800', call_id="\0", title="t")


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
    assert not find_repairable(store)


def check_shown(store: Store, finished: Finished) -> None:
    """What was handed back is what the store has, byte for byte."""
    stored = store.reader.invocation(finished.invocation_id)
    assert stored.receipt is not None
    assert (stored.canonical_json or "").encode() == finished.canonical.to_json()
    assert stored.receipt.text.encode() == finished.receipt.to_bytes()
    assert stored.summary.state == finished.state


def end(invocation: Invocation, stdout: bytes) -> Finished:
    return invocation.finish(command_output(invocation, stdout, b"warning\n"))


def printed(store: Store, session: Session) -> list[bytes]:
    _, _, invocations = store.reader.conversation(session.id)
    return [content_of(store.reader, stream_of(one, "stdout")) for one in invocations]


@pytest.mark.parametrize("stdout", [b"short\n", LONG])
def test_a_call_that_is_started_and_ended_while_the_store_is_away_is_delivered_as_it_was_shown(
    patient: Store, database: str, stdout: bytes
) -> None:
    session = patient.open_session()
    with away(patient, database):
        invocation = session.start(ODD)
        finished = end(invocation, stdout)
        session.add_message("user", "behind it")
        assert not find_spooled(patient) or stdout == LONG
    assert finished.recorded_in == "outbox"
    assert finished.invocation_id == invocation.id
    repair(patient)
    assert not is_waiting(patient)
    check_shown(patient, finished)
    stored = patient.reader.invocation(invocation.id)
    assert stored.arguments == ODD.arguments_bytes
    assert (stored.summary.started_at, stored.summary.seq) == (invocation.started_at, 0)
    assert stored.summary.duration_ms is not None
    assert printed(patient, session) == [stdout]
    check_all(patient)


def find_spooled(store: Store) -> list[str]:
    return [path.name for path in store.spool.iterdir() if not path.name.startswith(("o", "k"))]
