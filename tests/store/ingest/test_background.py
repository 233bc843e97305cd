"""The ingester in a thread, and acknowledgement by the database."""

import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.support.call_facts import moment
from tests.support.ended import made, shell_call
from tests.support.keeping import rows
from tests.support.killing import end_of, fork
from tests.support.processes import run_python
from tests.support.recording import ingested_rows
from tests.support.waiting import until

from tooltrail.journal import Cursor
from tooltrail.journal.ended_calls import EndedCall
from tooltrail.journal.invocation import Finished
from tooltrail.journal.session import Session
from tooltrail.records import InvalidRecordError, UnavailableError, default_policy
from tooltrail.store import Store, create_store, open_store
from tooltrail.store.ingest.background import BackgroundIngester
from tooltrail.store.ingest.ingester import Ingester

DAY = datetime(2026, 3, 4, tzinfo=UTC)
COUNT = "SELECT count(*) FROM invocations WHERE state = 'success'"


def committed(store: Store) -> int:
    """Calls in the database, without ingesting any."""
    return int(rows(store, COUNT)[0][0])


def test_a_record_acknowledged_by_the_store_is_in_the_database(tmp_path: Path) -> None:
    with create_store(tmp_path / "a.db", acknowledge="store") as store:
        session = Session.open(store.recorder)
        for n in range(1, 4):
            finished = session.start(shell_call()).finish(made())
            assert finished.acknowledged == "store"
            assert committed(store) == n


def test_the_thread_does_not_report_its_runs(tmp_path: Path) -> None:
    runs: list[str] = []

    def ingesting() -> AbstractContextManager[Callable[[int], object]]:
        runs.append("run")
        return nullcontext(bool)

    with create_store(tmp_path / "a.db", acknowledge="store") as store:
        store.ingesting = ingesting
        Session.open(store.recorder).start(shell_call()).finish(made())
        assert (committed(store), runs) == (1, [])
        store.ingest()
        assert runs == ["run"]


def test_a_conflict_is_raised_where_the_store_acknowledges(tmp_path: Path) -> None:
    with create_store(tmp_path / "a.db", acknowledge="store") as store:
        session = Session.open(store.recorder)
        session.record(EndedCall(shell_call(), made(b"one"), idempotency_key="k"))
        with pytest.raises(InvalidRecordError, match="with other content"):
            session.record(EndedCall(shell_call(), made(b"two"), idempotency_key="k"))


def test_a_receipt_is_a_conflict_only_if_the_model_saw_two_texts(tmp_path: Path) -> None:
    with create_store(tmp_path / "a.db", acknowledge="store") as store:
        session = store.open_session(idempotency_key="s", title="first")
        first = EndedCall(shell_call(), made(), idempotency_key="k", seen="A", finished_at=DAY)
        finished = session.record(first)
        with pytest.raises(InvalidRecordError, match=r"with other content: seen$"):
            session.record(first.replaced(seen="B"))
        # Renderers, budgets and clocks of two programs may differ.
        budgets = default_policy().for_tool("Bash", receipt_chars=9_000, preview_chars=2_000)
        session.record(first.replaced(seen=None, policy=budgets))
        session.record(first.replaced(finished_at=DAY + timedelta(hours=1)))
        store.open_session(idempotency_key="s", title="second")
        detail = store.reader.invocation(finished.invocation_id)
        assert detail.receipt is not None
        assert (detail.receipt.text, detail.summary.finished_at) == ("A", DAY)
        assert store.reader.session(session.id).title == "first"


@pytest.mark.parametrize("strict", [False, True])
def test_a_database_that_is_away_is_said_and_loses_nothing(tmp_path: Path, strict: bool) -> None:
    path = tmp_path / "a.db"
    with create_store(path, acknowledge="store", strict=strict) as store:
        session = Session.open(store.recorder)
        invocation = session.start(shell_call())
        store.database.close()
        path.rename(tmp_path / "away.db")
        try:
            if strict:
                with pytest.raises(UnavailableError, match="in the journal"):
                    invocation.finish(made())
            else:
                assert invocation.finish(made()).acknowledged == "journal"
        finally:
            store.database.close()
            (tmp_path / "away.db").rename(path)
        assert ingested_rows(store, COUNT) == [(1,)]


@pytest.mark.both_engines
@pytest.mark.parametrize("strict", [False, True])
def test_output_that_waits_for_the_sink_is_not_acknowledged_by_the_store_when_recorded_again(
    database: str, tmp_path: Path, strict: bool
) -> None:
    root, away = tmp_path / "artifacts", tmp_path / "away"
    output = made(b"a line of a long output\n" * 20_000)
    ended_call = EndedCall(shell_call(), output, finished_at=moment(60), idempotency_key="k")
    with create_store(
        database,
        artifacts=str(root),
        spool=tmp_path / "s",
        acknowledge="store",
        strict=strict,
    ) as store:
        session = Session.open(store.recorder)
        started = session.start(shell_call())
        root.rename(away)
        attempts: list[Callable[[], Finished]] = [
            lambda: session.record(ended_call),
            lambda: session.record(ended_call),
            lambda: next(iter(session.record_many([ended_call]))),
            lambda: started.finish(output),
        ]
        for record in attempts:
            if strict:
                with pytest.raises(UnavailableError, match="output waits for the artifact root"):
                    record()
            else:
                assert record().acknowledged == "journal"
        away.rename(root)
        store.ingest()
        assert session.record(ended_call).acknowledged == "store"


def test_the_thread_ingests_what_a_recorder_appends(tmp_path: Path) -> None:
    with create_store(tmp_path / "a.db") as store:
        session = Session.open(store.recorder)
        for _ in range(20):
            session.start(shell_call()).finish(made())
        until(lambda: committed(store) == 20)


def test_closing_ingests_what_was_appended(tmp_path: Path) -> None:
    with create_store(tmp_path / "a.db") as store:
        session = Session.open(store.recorder)
        session.start(shell_call()).finish(made())
    assert committed(store) == 1


def test_a_forked_child_records_without_an_ingester(tmp_path: Path) -> None:
    with create_store(tmp_path / "a.db", acknowledge="store") as store:
        session = Session.open(store.recorder)
        session.start(shell_call()).finish(made())

        def record() -> None:
            signal.alarm(10)  # long before the 30 seconds of `wait` are over
            joined = Session.join(store.recorder, session.id)
            finished = joined.record(EndedCall(shell_call(), made()))
            store.close()
            assert finished.acknowledged == "journal"

        assert end_of(fork(record)) == 0
        assert ingested_rows(store, COUNT) == [(2,)]


def assert_that_a_fork_waits_for(may_leave: threading.Event) -> None:
    """Fork in another thread, and set the event, without which the fork must not come back."""
    forking = threading.Thread(target=lambda: end_of(fork(bool)))
    forking.start()
    try:
        forking.join(0.2)
        assert forking.is_alive()
    finally:
        may_leave.set()
    forking.join()


def test_a_store_that_waits_for_its_database_delays_only_forks(tmp_path: Path) -> None:
    is_inside, may_leave = threading.Event(), threading.Event()

    def connect() -> Ingester:
        is_inside.set()
        may_leave.wait()
        raise UnavailableError("away")

    def record() -> str:
        return store.open_session().record(EndedCall(shell_call(), made())).acknowledged

    waiting = BackgroundIngester(connect)
    waiting.notice()
    is_inside.wait()
    with create_store(tmp_path / "a.db", acknowledge="store") as store:
        assert record() == "store"
        assert_that_a_fork_waits_for(may_leave)
        assert record() == "store"
    waiting.close()


def test_a_fork_waits_until_no_recorder_looks_at_the_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_inside, may_leave = threading.Event(), threading.Event()
    check_kept = Ingester.check_kept

    def check_slowly(ingester: Ingester, cursors: Sequence[Cursor]) -> None:
        is_inside.set()
        may_leave.wait()
        check_kept(ingester, cursors)

    monkeypatch.setattr(Ingester, "check_kept", check_slowly)
    with create_store(tmp_path / "a.db", acknowledge="store") as store:
        recording = threading.Thread(target=store.open_session, daemon=True)
        recording.start()
        is_inside.wait()
        assert_that_a_fork_waits_for(may_leave)
        recording.join()


AT_EXIT = """
import sys
from tooltrail.records import Message, ToolCall
from tooltrail.store import open_store

class Late:
    message = Message.of("user", "bye")

    def __del__(self):
        session.message(self.message)
        with capture:
            capture.write(b"late")

store = open_store(sys.argv[1], acknowledge="store")
session = store.open_session()
capture = session.start(ToolCall.of("Bash", {})).capture("stdout")
late = Late()
"""


def test_a_program_that_records_while_its_interpreter_exits_ends(tmp_path: Path) -> None:
    assert run_python(AT_EXIT, str(tmp_path / "a.db")) == ("", "")
    with open_store(tmp_path / "a.db") as store:
        assert ingested_rows(store, "SELECT count(*) FROM messages") == [(1,)]
        (stream,) = store.reader.invocation("@last").streams
        assert (stream.role, stream.size) == ("stdout", 4)
