"""What waits for something far away is done at once, and comes in order all the same."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Barrier, Event, Thread, get_ident
from threading import enumerate as enumerate_threads
from typing import cast

import pytest
from tests.support.away import without_pause
from tests.support.cli import HANG_S
from tests.support.ended import BASH, made, numbered_calls
from tests.support.evidence import check_evidence
from tests.support.recording import content_of, stream_of
from tests.support.template_stores import make_store

from tooltrail.artifacts import FsspecSink, artifact_path
from tooltrail.records import UnavailableError, digest_of
from tooltrail.store import (
    EndedCall,
    Finished,
    RecordedCalls,
    Session,
    Store,
    repair,
)
from tooltrail.store._recording import side_by_side
from tooltrail.store._recording.side_by_side import Task, in_order
from tooltrail.store.entries import CallEnded, EndedStream, complete_output_json

LONG = [b"%d is a number in a long output\n" % n * 2_000 for n in range(4)]


def waiting(run: Callable[[], object]) -> Task[object]:
    return Task(run, is_waiting=True)


def test_what_waits_is_done_at_once_behind_the_first_and_comes_in_order() -> None:
    together = Barrier(2)

    def meet(number: int) -> object:
        together.wait(HANG_S)
        return number, get_ident()

    tasks: list[Task[object]] = [
        waiting(get_ident),
        Task(get_ident, is_waiting=False),
        waiting(lambda: meet(2)),
        waiting(lambda: meet(3)),
    ]
    first, second, *others = in_order(tasks, 2)
    assert first == second == get_ident()
    assert [number for number, _ in cast("list[tuple[int, int]]", others)] == [2, 3]
    assert len({thread for _, thread in cast("list[tuple[int, int]]", others)}) == 2


@pytest.mark.parametrize(("count", "at_once"), [(3, 1), (2, 8), (1, 8)])
def test_who_gains_nothing_by_threads_starts_none(count: int, at_once: int) -> None:
    assert list(in_order([waiting(get_ident)] * count, at_once)) == [get_ident()] * count


def test_where_no_thread_can_be_started_everything_is_done_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_: Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Thread, "start", refuse)
    assert list(in_order([waiting(get_ident)] * 5, 4)) == [get_ident()] * 5


class Held:
    """Three tasks that wait, of which two threads do the second and the third; then others."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.failing, self.to_fail = Event(), Event()
        self.holding, self.let_go = Event(), Event()
        self.done: list[str] = []
        first: Task[object] = waiting(lambda: "first")
        self.tasks = [first, waiting(lambda: self._fail(error)), waiting(self._hold)]
        self.tasks += [waiting(lambda: self.done.append("not begun"))] * 3

    def _fail(self, error: BaseException | None) -> object:
        self.failing.set()
        assert self.to_fail.wait(HANG_S)
        if error is not None:
            raise error
        return None

    def _hold(self) -> object:
        self.holding.set()
        assert self.let_go.wait(HANG_S)
        self.done.append("held")
        return None

    def fail_now(self) -> None:
        """Have the second fail, once the third has begun."""
        assert self.failing.wait(HANG_S)
        assert self.holding.wait(HANG_S)
        self.to_fail.set()


def test_an_error_comes_in_its_turn_when_what_has_begun_is_done_and_nothing_else_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = Held(ValueError("no"))
    ahead = vars(side_by_side)["_Ahead"]
    leave = ahead.leave

    def left(self: object) -> None:
        leave(self)
        held.let_go.set()

    monkeypatch.setattr(ahead, "leave", left)
    results = in_order(held.tasks, 2)
    assert next(results) == "first"
    held.fail_now()
    with pytest.raises(ValueError, match="no"):
        next(results)
    assert held.done == ["held"]


def test_an_interrupt_waits_for_nothing_that_has_begun() -> None:
    held = Held(KeyboardInterrupt())
    results = in_order(held.tasks, 2)
    assert next(results) == "first"
    held.fail_now()
    with pytest.raises(KeyboardInterrupt):
        next(results)
    assert held.done == []
    held.let_go.set()
    for thread in enumerate_threads():
        if thread.name == "tooltrail-publisher":
            thread.join(HANG_S)
    assert held.done == ["held"]


def test_who_stops_early_waits_for_nothing() -> None:
    let_go, done = Event(), list[str]()

    def hold() -> object:
        assert let_go.wait(HANG_S)
        done.append("held")
        return None

    with closing(in_order([waiting(lambda: "first"), *[waiting(hold)] * 3], 2)) as results:
        assert next(results) == "first"
    assert done == []
    let_go.set()


@pytest.fixture
def far_store(database: str, s3_bucket: str, tmp_path: Path) -> Iterator[Store]:
    """A store, on each engine in turn, with its artifacts behind a network."""
    with make_store(database, artifacts=f"s3://{s3_bucket}/a", spool=tmp_path / "s") as created:
        yield without_pause(created)


def meet_at_puts(monkeypatch: pytest.MonkeyPatch, refused: str = "") -> None:
    """Have each put of an artifact but the first wait for all others.

    Args:
        monkeypatch: of the test.
        refused: the path of one that then fails.
    """
    together, put = Barrier(len(LONG) - 1), FsspecSink.put
    first = artifact_path(digest_of(LONG[0]))

    def meet(sink: FsspecSink, path: str, source: Path) -> bool:
        if path != first:
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
