"""An end that may be in the store although nobody said so: `finish` once more finds out."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import event, text
from tests.support.asides import CALL
from tests.support.evidence import check_evidence
from tests.support.lossy_server import END, LossyServer
from tests.support.recording import content_of, stream_of
from tests.support.template_stores import make_store

from tooltrail.artifacts import is_spooled
from tooltrail.records import (
    CommandOutput,
    CompleteOutput,
    EndUncertainError,
    InvocationFinishedError,
    StreamRecord,
    UnavailableError,
)
from tooltrail.store import (
    Invocation,
    RepairedFolder,
    Store,
    find_repairable,
    open_store,
    repair,
)

OUT = b"".join(b"line %d\n" % n for n in range(40_000))


@pytest.fixture
def far(lossy: LossyServer, postgres_url: str, tmp_path: Path) -> Iterator[Store]:
    """A store that is reached by way of the lossy server."""
    spool = tmp_path / "spool"
    make_store(postgres_url, artifacts=str(tmp_path / "artifacts"), spool=spool).close()
    with open_store(lossy.url, spool=spool, on_unavailable="raise") as store:
        yield store


def output_of(invocation: Invocation, exit_status: int = 0) -> CompleteOutput:
    capture = invocation.capture("stdout")
    capture.write(OUT)
    stdout = invocation.captured(capture.close())
    return with_stdout(stdout, exit_status)


def with_stdout(stdout: StreamRecord, exit_status: int) -> CompleteOutput:
    result = CommandOutput(
        command="make all",
        exit_status=exit_status,
        stdout=stdout,
        stderr=StreamRecord.from_bytes("stderr", b""),
    )
    return CompleteOutput.success("exec", result)


def finish_in_vain(invocation: Invocation, output: CompleteOutput) -> None:
    with pytest.raises(EndUncertainError) as caught:
        invocation.finish(output)
    assert caught.value.invocation_id == invocation.id
    assert str(caught.value).endswith(
        f"; whether the end of invocation {invocation.id} is recorded is not known"
    )
    assert is_spooled(invocation.spool)


def assert_recorded(store: Store, invocation: Invocation) -> None:
    detail = store.reader.invocation(invocation.id)
    assert detail.summary.state == "success"
    assert content_of(store.reader, stream_of(detail, "stdout")) == OUT
    assert not is_spooled(invocation.spool)
    assert not find_repairable(store)
    check_evidence(store)


@pytest.mark.parametrize("is_committed", [True, False])
def test_to_finish_once_more_tells_what_is_recorded_or_records_it(
    far: Store, lossy: LossyServer, is_committed: bool
) -> None:
    invocation = far.start_alone(CALL, family="command")
    output = output_of(invocation)
    lossy.lose_an_answer(END, is_committed=is_committed)
    finish_in_vain(invocation, output)
    state = far.reader.invocation(invocation.id).summary.state
    assert state == ("success" if is_committed else "started")

    finished = invocation.finish(output)

    detail = far.reader.invocation(invocation.id)
    assert detail.receipt is not None
    assert (finished.invocation_id, finished.state) == (invocation.id, "success")
    assert finished.receipt.text == detail.receipt.text
    assert finished.canonical.to_json().decode() == detail.canonical_json
    assert finished.postponed == ()
    assert_recorded(far, invocation)
    with pytest.raises(InvocationFinishedError):
        invocation.finish(output)


def test_an_end_that_comes_through_late_is_waited_for(
    far: Store, lossy: LossyServer, postgres_url: str
) -> None:
    invocation = far.start_alone(CALL, family="command")
    output = output_of(invocation)
    waiting = text(
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )

    def until_somebody_waits() -> None:
        with open_store(postgres_url, spool=far.spool) as near:
            for _ in range(3_000):
                with near.database.read() as connection:
                    if connection.scalar(waiting):
                        return
                time.sleep(0.01)

    lossy.lose_an_answer(END, delay=until_somebody_waits)
    finish_in_vain(invocation, output)
    assert far.reader.invocation(invocation.id).summary.state == "started"
    assert invocation.finish(output).state == "success"
    assert_recorded(far, invocation)


def test_another_output_than_the_recorded_one_is_refused_each_time(
    far: Store, lossy: LossyServer
) -> None:
    invocation = far.start_alone(CALL, family="command")
    output = output_of(invocation)
    lossy.lose_an_answer(END)
    finish_in_vain(invocation, output)
    stdout = next(stream for stream in output.streams if stream.role == "stdout")
    other = with_stdout(stdout, 1)
    for _ in range(2):
        with pytest.raises(InvocationFinishedError, match="has ended otherwise"):
            invocation.finish(other)
    with pytest.raises(InvocationFinishedError):
        invocation.interrupt("by hand")
    assert invocation.finish(output).state == "success"
    assert_recorded(far, invocation)


def test_an_end_that_never_came_through_may_be_another_one(far: Store, lossy: LossyServer) -> None:
    invocation = far.start_alone(CALL, family="command")
    output = output_of(invocation)
    lossy.lose_an_answer(END, is_committed=False)
    finish_in_vain(invocation, output)
    assert invocation.interrupt("by hand").state == "interrupted"
    assert far.reader.counts().invocations == {"interrupted": 1}
    check_evidence(far)


def test_an_end_that_somebody_else_recorded_meanwhile_is_not_taken_for_ones_own(
    far: Store, lossy: LossyServer
) -> None:
    invocation = far.start_alone(CALL, family="command")
    output = output_of(invocation)
    lossy.lose_an_answer(END, is_committed=False)
    finish_in_vain(invocation, output)
    # As if this program had been taken for dead.
    (far.spool / f"{invocation.id}.owner").unlink()
    assert [one.outcome for one in repair(far).folders] == ["interrupted"]
    with pytest.raises(InvocationFinishedError, match="has ended otherwise"):
        invocation.finish(output)


def test_what_waits_of_the_end_that_came_through_is_named_and_stays_in_the_spool(
    far: Store, lossy: LossyServer, tmp_path: Path
) -> None:
    invocation = far.start_alone(CALL, family="command")
    output = output_of(invocation)
    (tmp_path / "artifacts").rename(tmp_path / "unmounted")
    lossy.lose_an_answer(END)
    finish_in_vain(invocation, output)
    (tmp_path / "unmounted").rename(tmp_path / "artifacts")

    finished = invocation.finish(output)

    assert [stream.role for stream in finished.postponed] == ["stdout"]
    assert "not stored yet" in finished.receipt.text
    assert repair(far).folders == (
        RepairedFolder(invocation.id, "stored", len(OUT), reason="the artifacts had been away"),
    )
    assert_recorded(far, invocation)


def test_what_waited_at_an_end_that_never_came_through_is_stored_with_the_next(
    far: Store, lossy: LossyServer, tmp_path: Path
) -> None:
    invocation = far.start_alone(CALL, family="command")
    output = output_of(invocation)
    (tmp_path / "artifacts").rename(tmp_path / "unmounted")
    lossy.lose_an_answer(END, is_committed=False)
    finish_in_vain(invocation, output)
    (tmp_path / "unmounted").rename(tmp_path / "artifacts")
    lossy.lose_an_answer(END)
    finish_in_vain(invocation, output)
    finished = invocation.finish(output)
    assert finished.postponed == ()
    assert "not stored yet" not in finished.receipt.text
    assert_recorded(far, invocation)


def test_while_the_store_is_away_nothing_is_found_out_and_nothing_is_lost(
    far: Store, lossy: LossyServer
) -> None:
    invocation = far.start_alone(CALL, family="command")
    output = output_of(invocation)
    lossy.lose_an_answer(END)
    finish_in_vain(invocation, output)

    def refuse(*_: object) -> None:
        raise UnavailableError("away")

    event.listen(far.database.engine, "begin", refuse)
    try:
        with pytest.raises(UnavailableError, match="away"):
            invocation.finish(output)
    finally:
        event.remove(far.database.engine, "begin", refuse)
    assert is_spooled(invocation.spool)
    assert invocation.finish(output).state == "success"
    assert_recorded(far, invocation)


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_repair_settles_it_when_the_program_is_gone(
    far: Store, lossy: LossyServer, is_committed: bool
) -> None:
    invocation = far.start_alone(CALL, family="command")
    output = output_of(invocation)
    lossy.lose_an_answer(END, is_committed=is_committed)
    finish_in_vain(invocation, output)
    (far.spool / f"{invocation.id}.owner").unlink()
    (one,) = repair(far).folders
    assert one.outcome == ("cleared" if is_committed else "interrupted")
    detail = far.reader.invocation(invocation.id)
    assert content_of(far.reader, stream_of(detail, "stdout")) == OUT
    assert not is_spooled(invocation.spool)
    shutil.rmtree(far.spool)
    check_evidence(far)
