"""What waits for something far away is done at once, and comes in order all the same."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Barrier, Event, get_ident

import pytest
from tests.support.away import without_pause
from tests.support.cli import HANG_S
from tests.support.ended import BASH, made, numbered_calls
from tests.support.evidence import check_evidence
from tests.support.recording import content_of, stream_of

from tooltrail.artifacts import FsspecSink, artifact_path
from tooltrail.records import UnavailableError, digest_of
from tooltrail.store import (
    EndedCall,
    Finished,
    RecordedCalls,
    Session,
    Store,
    create_store,
    repair,
)
from tooltrail.store._recording.side_by_side import Task, in_order
from tooltrail.store.entries import CallEnded, EndedStream, complete_output_json

LONG = [b"%d is a number in a long output\n" % n * 2_000 for n in range(4)]


def waiting(run: Callable[[], object]) -> Task[object]:
    return Task(run, is_waiting=True)


def test_what_waits_is_done_at_once_and_comes_in_order() -> None:
    together = Barrier(3)

    def meet(number: int) -> object:
        together.wait(HANG_S)
        return number

    tasks: list[Task[object]] = [
        waiting(lambda: meet(0)),
        Task(get_ident, is_waiting=False),
        waiting(lambda: meet(2)),
        waiting(lambda: meet(3)),
    ]
    assert list(in_order(tasks, 3)) == [0, get_ident(), 2, 3]


@pytest.mark.parametrize(("count", "at_once"), [(3, 1), (1, 8)])
def test_who_gains_nothing_by_threads_starts_none(count: int, at_once: int) -> None:
    assert list(in_order([waiting(get_ident)] * count, at_once)) == [get_ident()] * count


def test_an_error_comes_in_its_turn_and_what_has_not_begun_is_left_undone() -> None:
    begun, let_go, done = Event(), Event(), list[str]()

    def fail() -> object:
        assert begun.wait(HANG_S)
        raise ValueError("no")

    def last() -> object:
        begun.set()
        assert let_go.wait(HANG_S)
        done.append("begun before the error")
        return None

    def never() -> object:
        done.append("not begun")
        return None

    first: Task[object] = Task(lambda: "first", is_waiting=False)
    tasks = [first, waiting(fail), waiting(last), *[waiting(never)] * 3]
    with closing(in_order(tasks, 2)) as results:
        assert next(results) == "first"
        let_go.set()
        with pytest.raises(ValueError, match="no"):
            next(results)
    assert "begun before the error" in done


@pytest.fixture
def far_store(database: str, s3_bucket: str, tmp_path: Path) -> Iterator[Store]:
    """A store, on each engine in turn, with its artifacts behind a network."""
    with create_store(database, artifacts=f"s3://{s3_bucket}/a", spool=tmp_path / "s") as created:
        yield without_pause(created)


def meet_at_puts(monkeypatch: pytest.MonkeyPatch, refused: str = "") -> None:
    """Have each put of an artifact wait for as many as there are long outputs.

    Args:
        monkeypatch: of the test.
        refused: the path of one that then fails.
    """
    together, put = Barrier(len(LONG)), FsspecSink.put

    def meet(sink: FsspecSink, path: str, source: Path) -> bool:
        together.wait(HANG_S)
        if path == refused:
            raise UnavailableError("it broke")
        return put(sink, path, source)

    monkeypatch.setattr(FsspecSink, "put", meet)


def mixed_calls() -> list[EndedCall]:
    """Calls with long and short outputs in turn."""
    short = numbered_calls(len(LONG))
    pairs = zip(short, (EndedCall(BASH, made(one)) for one in LONG), strict=True)
    return [one for pair in pairs for one in pair]


def check_mixed(store: Store, session: Session) -> None:
    """They are there with all their bytes, in their order."""
    _, _, invocations = store.reader.conversation(session.id)
    printed = [content_of(store.reader, stream_of(one, "stdout")) for one in invocations]
    assert printed[::2] == [b"%d\n" % n for n in range(len(LONG))]
    assert printed[1::2] == LONG
    check_evidence(store)


@pytest.mark.parametrize("refused", ["", artifact_path(digest_of(LONG[1]))])
def test_artifacts_of_an_import_go_far_away_at_once(
    far_store: Store, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    session, told = far_store.open_session(), list[Finished]()
    with monkeypatch.context() as patch:
        meet_at_puts(patch, refused)
        done = session.record_many(mixed_calls(), on_durable=told.append)
    assert done == RecordedCalls(2 * len(LONG), 0)
    _, _, invocations = far_store.reader.conversation(session.id)
    assert [one.invocation_id for one in told] == [one.summary.id for one in invocations]
    assert len(far_store.reader.artifacts()) == len(LONG) - bool(refused)
    check_mixed(far_store, session)


def test_artifacts_of_what_waited_in_the_outbox_go_far_away_at_once(
    far_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = far_store.open_session()
    for one in mixed_calls():
        far_store.fallback.outbox.append(as_told_by_a_producer(session, one))
    with monkeypatch.context() as patch:
        meet_at_puts(patch)
        assert repair(far_store).outbox.delivered_count == 2 * len(LONG)
    assert len(far_store.reader.artifacts()) == len(LONG)
    check_mixed(far_store, session)


def as_told_by_a_producer(session: Session, ended: EndedCall) -> CallEnded:
    """A call of which the store has yet to make the result and the receipt."""
    kept = (EndedStream(role=one.role, content=one.content or b"") for one in ended.output.streams)
    streams = tuple(kept)
    result = {"command": "make", "exit_status": 0} | {one.role: one.facts() for one in streams}
    document = complete_output_json("Bash", "done", result=result)
    return CallEnded(
        session=session.id, tool_name="Bash", complete_output=document, streams=streams
    )
