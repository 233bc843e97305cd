"""A record that a server did not take, and would take another time, is made again; no other is."""

import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Connection, text
from tests.support.asides import CALL
from tests.support.cli import HANG_S
from tests.support.ended import numbered_calls
from tests.support.evidence import check_evidence
from tests.support.lossy_server import LossyServer
from tests.support.postgres import closed_database
from tests.support.processes import start_worker
from tests.support.recording import run_command
from tests.support.template_stores import make_store

from tooltrail.records import InvalidRecordError, StartUncertainError, UnavailableError
from tooltrail.store import (
    EndedCall,
    Finished,
    OnUnavailable,
    Session,
    Store,
    open_store,
)
from tooltrail.store._engines import persistence
from tooltrail.store._engines import sqlite_connections as waits
from tooltrail.store._engines.copying_in import MANY
from tooltrail.store._engines.persistence import ATTEMPTS
from tooltrail.store._engines.postgres_connections import POOL_SIZE
from tooltrail.store._recording import batches
from tooltrail.store._recording.group_commit import Write
from tooltrail.store._recording.whole import Whole, write_whole
from tooltrail.store._recording.writes import Body, Chain, lock_chain, put_bodies

RAISE = "DO $$ BEGIN RAISE EXCEPTION 'injected' USING ERRCODE = '{}'; END $$"


@pytest.fixture
def on_unavailable() -> OnUnavailable:
    """Errors are what is tried."""
    return "raise"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses that only a server in trouble needs are left out."""
    monkeypatch.setattr(persistence, "_FIRST_PAUSE_S", 0.0001)


def with_query(url: str, query: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}{query}"


def end_connection(store: Store, connection: Connection) -> None:
    """As when the server, or somebody on the way to it, cuts a connection off."""
    backend = connection.scalar(text("SELECT pg_backend_pid()"))
    with store.database.autocommit() as other:
        other.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": backend})


def counted(job: Callable[[Connection, int], object]) -> tuple[Write[object], list[None]]:
    """A write that is told which attempt it is, and how many there were."""
    attempts: list[None] = []

    def counting(connection: Connection) -> object:
        attempts.append(None)
        return job(connection, len(attempts))

    return Write(counting), attempts


@pytest.mark.parametrize("code", ["40001", "40P01", "55P03", "57P01", "57P03", "08006", "25P03"])
def test_what_a_server_did_not_do_and_may_do_is_done_again(
    postgres_store: Store, code: str
) -> None:
    def fail_twice(connection: Connection, attempt: int) -> object:
        if attempt < 3:
            connection.exec_driver_sql(RAISE.format(code))
        return attempt

    write, attempts = counted(fail_twice)
    assert postgres_store.writes.run(write) == 3
    assert len(attempts) == 3


@pytest.mark.parametrize("code", ["22003", "42501", "25006", "53100", "57014", "XX001"])
def test_what_fails_each_time_is_not_done_again(postgres_store: Store, code: str) -> None:
    write, attempts = counted(lambda c, _: c.exec_driver_sql(RAISE.format(code)))
    with pytest.raises(Exception, match="database"):
        postgres_store.writes.run(write)
    assert len(attempts) == 1


def test_errors_of_the_job_itself_are_not_taken_for_the_servers(postgres_store: Store) -> None:
    def refuse(_: Connection, __: int) -> object:
        raise UnavailableError("the artifacts are away")

    write, attempts = counted(refuse)
    with pytest.raises(UnavailableError, match="the artifacts are away"):
        postgres_store.writes.run(write)
    assert len(attempts) == 1


@pytest.mark.usefixtures("quick")
def test_after_some_attempts_the_caller_is_told(postgres_store: Store) -> None:
    write, attempts = counted(lambda c, _: c.exec_driver_sql(RAISE.format("40001")))
    with pytest.raises(UnavailableError, match="injected"):
        postgres_store.writes.run(write)
    assert not write.is_uncertain
    assert len(attempts) == ATTEMPTS


def test_there_is_no_other_attempt_when_the_caller_has_waited_long_enough(
    postgres_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waits, "BUSY_TIMEOUT_S", 0.0)
    write, attempts = counted(lambda c, _: c.exec_driver_sql(RAISE.format("40001")))
    with pytest.raises(UnavailableError):
        postgres_store.writes.run(write)
    assert len(attempts) == 1


def test_a_record_whose_connection_is_cut_before_its_commit_is_made_once(
    postgres_store: Store,
) -> None:
    session = postgres_store.open_session()

    def be_cut(connection: Connection, attempt: int) -> object:
        lock_chain(connection, session.key, session.id)
        if attempt == 1:
            end_connection(postgres_store, connection)
        return lock_chain(connection, session.key, session.id).next_seq

    write, attempts = counted(be_cut)
    assert postgres_store.writes.run(write) == 0
    assert len(attempts) == 2
    run_command(session, b"goes on\n")
    check_evidence(postgres_store)


def test_connections_that_were_cut_while_nobody_used_them_are_noticed_by_nobody(
    postgres_store: Store, postgres_url: str
) -> None:
    session, database = postgres_store.open_session(), postgres_store.database

    def write() -> None:
        with database.write() as connection:
            lock_chain(connection, session.key, session.id)

    def maintain() -> None:
        with database.autocommit() as connection:
            lock_chain(connection, session.key, session.id)

    record = partial(run_command, session, b"recorded\n")
    for action in (record, postgres_store.reader.counts, write, maintain):
        with ExitStack() as stack:
            connections = [stack.enter_context(database.read()) for _ in range(5)]
            backends = [c.scalar(text("SELECT pg_backend_pid()")) for c in connections]
        with open_store(postgres_url) as other, other.database.autocommit() as connection:
            connection.execute(
                text("SELECT pg_terminate_backend(pid, 10000) FROM unnest(:pids) AS pid"),
                {"pids": backends},
            )
        action()
    check_evidence(postgres_store)


def test_two_that_wait_for_each_other_are_both_recorded(postgres_store: Store) -> None:
    sessions = [postgres_store.open_session() for _ in range(2)]
    both = threading.Barrier(2, timeout=60)

    def task(first: Session, second: Session) -> int:
        def lock_both(connection: Connection, attempt: int) -> object:
            lock_chain(connection, first.key, first.id)
            if attempt == 1:
                both.wait()
            lock_chain(connection, second.key, second.id)
            return None

        write, attempts = counted(lock_both)
        postgres_store.writes.run(write)
        return len(attempts)

    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(task, *order) for order in (sessions, sessions[::-1])]
        assert sum(future.result(60) for future in futures) > 2


def test_a_lock_that_is_not_to_be_had_is_asked_for_again(postgres_url: str, tmp_path: Path) -> None:
    url = with_query(postgres_url, "options=-c%20lock_timeout%3D50ms")
    with make_store(url, artifacts=str(tmp_path / "a"), spool=tmp_path / "s") as store:
        session = store.open_session()
        with ExitStack() as held:
            connection = held.enter_context(store.database.write())
            lock_chain(connection, session.key, session.id)

            def wait(connection: Connection, attempt: int) -> object:
                if attempt == 3:
                    held.close()
                assert connection.scalar(text("SHOW lock_timeout")) == "50ms"
                return lock_chain(connection, session.key, session.id).next_seq

            write, attempts = counted(wait)
            assert store.writes.run(write) == 0
            assert len(attempts) == 3


def test_who_has_waited_already_waits_for_a_lock_only_as_long_as_is_left(
    postgres_store: Store,
) -> None:
    said: list[str] = []

    def fail_once(connection: Connection, attempt: int) -> object:
        said.append(str(connection.scalar(text("SHOW lock_timeout"))))
        if attempt == 1:
            connection.exec_driver_sql(RAISE.format("40001"))
        return None

    postgres_store.writes.run(counted(fail_once)[0])
    first, second = said
    assert first == "30s"
    assert second.endswith("ms")
    assert int(second.removesuffix("ms")) < 30_000


def test_what_a_server_undid_at_its_commit_is_not_uncertain(postgres_store: Store) -> None:
    with postgres_store.database.write() as connection:
        connection.exec_driver_sql(
            "CREATE FUNCTION undo() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE EXCEPTION 'undone' USING ERRCODE = '40001'; END $$"
        )
        connection.exec_driver_sql(
            "CREATE CONSTRAINT TRIGGER undo AFTER INSERT ON invocations"
            " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION undo()"
        )
    with pytest.raises(UnavailableError, match="undone") as caught:
        postgres_store.start_alone(CALL)
    assert type(caught.value) is UnavailableError
    assert [path for path in postgres_store.spool.iterdir() if path.suffix == ".owner"] == []
    assert postgres_store.reader.counts().invocations == {}


def test_a_commit_that_nobody_answered_is_not_repeated(
    lossy: LossyServer, postgres_url: str, tmp_path: Path
) -> None:
    spool = tmp_path / "spool"
    make_store(postgres_url, artifacts=str(tmp_path / "artifacts"), spool=spool).close()
    with open_store(lossy.url, spool=spool, on_unavailable="raise") as store:
        lossy.lose_an_answer()
        with pytest.raises(StartUncertainError):
            store.start_alone(CALL)
        assert store.reader.counts().invocations == {"started": 1}


@pytest.mark.usefixtures("quick")
def test_a_server_that_is_gone_is_asked_some_times_and_one_that_is_back_takes_it(
    postgres_store: Store, postgres_url: str
) -> None:
    session = postgres_store.open_session()
    with closed_database(postgres_url), pytest.raises(UnavailableError):
        session.add_message("user", "lost")
    session.add_message("user", "kept")
    assert [m.text for m in postgres_store.reader.conversation(session.id)[1]] == ["kept"]


def test_a_server_that_is_away_when_a_store_is_opened_is_asked_once(
    postgres_store: Store, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object) -> bool:
        raise AssertionError

    monkeypatch.setattr(persistence.Patience, "pause", refuse)
    postgres_store.close()
    with closed_database(postgres_url), pytest.raises(UnavailableError):
        open_store(postgres_url)


def test_who_gets_no_connection_is_told(postgres_store: Store) -> None:
    pool = postgres_store.database.engine.pool
    pool._timeout = 0.01  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]  no public way to wait less than the default
    session = postgres_store.open_session()
    with ExitStack() as stack:
        for _ in range(POOL_SIZE):
            stack.enter_context(postgres_store.database.read())
        with pytest.raises(UnavailableError, match="all connections are in use"):
            session.add_message("user", "too many")
    session.add_message("user", "kept")


def back_after_a_pause(monkeypatch: pytest.MonkeyPatch, away: ExitStack) -> list[None]:
    """Has what is away be back when somebody has waited; the pauses until then."""
    pauses: list[None] = []

    def pause(_: object) -> bool:
        pauses.append(None)
        away.close()
        return True

    monkeypatch.setattr(persistence.Patience, "pause", pause)
    return pauses


def one_by_one(session: Session, calls: Iterable[EndedCall]) -> None:
    for one in calls:
        session.record(one.call, one.output, idempotency_key=one.idempotency_key)


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("record", [one_by_one, Session.record_many])
def test_what_has_ended_is_taken_by_a_server_that_is_back(
    postgres_store: Store,
    postgres_url: str,
    monkeypatch: pytest.MonkeyPatch,
    record: Callable[[Session, Iterable[EndedCall]], object],
    keyed: bool,
) -> None:
    session, calls = postgres_store.open_session(), numbered_calls(3, keyed=keyed)
    with ExitStack() as away:
        away.enter_context(closed_database(postgres_url))
        pauses = back_after_a_pause(monkeypatch, away)
        record(session, calls)
    assert len(pauses) == 1
    assert postgres_store.reader.session(session.id).invocation_count == 3
    check_evidence(postgres_store)


def test_a_batch_whose_connection_is_cut_before_its_commit_is_recorded_once(
    postgres_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, whole = postgres_store.open_session(), write_whole
    written: list[int] = []

    def be_cut(connection: Connection, chain: Chain, records: Sequence[Whole]) -> None:
        written.append(len(records))
        if len(written) == 1:
            end_connection(postgres_store, connection)
        whole(connection, chain, records)

    monkeypatch.setattr(batches, "write_whole", be_cut)
    # More than are inserted one by one, so that they are copied.
    told: list[Finished] = []
    counts = session.record_many(numbered_calls(2 * MANY), on_durable=told.append)
    assert (counts.recorded_count, written) == (2 * MANY, [2 * MANY] * 2)
    assert len({one.invocation_id for one in told}) == 2 * MANY
    check_evidence(postgres_store)


def limits_of(connection: Connection) -> list[object]:
    names = ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout")
    return [connection.scalar(text(f"SHOW {name}")) for name in names]


def test_a_record_has_limits_and_what_may_take_long_has_none(postgres_store: Store) -> None:
    database, limits = postgres_store.database, ["30s", "1min", "15s"]
    assert postgres_store.writes.run(Write(limits_of)) == limits
    for opened in (database.read, database.write):
        with opened() as connection:
            assert limits_of(connection) == ["30s", "0", "0"]
    # For that one transaction.
    assert postgres_store.writes.run(Write(limits_of)) == limits


def test_limits_and_patience_with_the_network_that_the_url_names_stand(
    postgres_url: str, tmp_path: Path
) -> None:
    named = "options=-c%20idle_in_transaction_session_timeout%3D7s&keepalives_idle=77"
    url = with_query(postgres_url, f"{named}&connect_timeout=5&prepare_threshold=3")
    with make_store(url, artifacts=str(tmp_path / "a"), spool=tmp_path / "s") as store:
        assert store.writes.run(Write(limits_of)) == ["30s", "1min", "7s"]
        with store.database.read() as connection:
            assert limits_of(connection) == ["30s", "0", "7s"]
            driver = connection.connection.driver_connection
            assert driver is not None
            parameters = driver.info.get_parameters()
            assert parameters["keepalives_idle"] == "77"
            assert parameters["keepalives_count"] == "3"
            assert parameters["tcp_user_timeout"] == "20000"
            assert parameters["connect_timeout"] == "5"
            assert driver.prepare_threshold == 3


def test_statements_are_not_prepared_where_the_url_says_so(
    postgres_url: str, tmp_path: Path
) -> None:
    url = with_query(postgres_url, "prepare_threshold=none")
    with make_store(url, artifacts=str(tmp_path / "a"), spool=tmp_path / "s") as store:
        session = store.open_session()
        for _ in range(8):
            session.add_message("user", "hello")
        with store.database.read() as connection:
            assert connection.scalar(text("SELECT count(*) FROM pg_prepared_statements")) == 0


@pytest.mark.parametrize("value", ["soon", "-1", "٣"])
def test_a_threshold_that_is_none_is_refused(postgres_url: str, value: str) -> None:
    with pytest.raises(InvalidRecordError, match="prepare_threshold is a number or none"):
        open_store(with_query(postgres_url, f"prepare_threshold={value}"))


@pytest.fixture
def stopped(postgres_url: str, tmp_path: Path) -> Iterator[tuple[Store, Session]]:
    """A session whose lock is held by a program that stands still, and may do so for a second."""
    url = with_query(postgres_url, "options=-c%20idle_in_transaction_session_timeout%3D1s")
    spool = tmp_path / "s"
    with make_store(url, artifacts=str(tmp_path / "a"), spool=spool) as store:
        session = store.open_session()
        worker = start_worker("keep", url, str(spool), str(session.id), takes_input=True)
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"holding\n"
        worker.send_signal(signal.SIGSTOP)
        try:
            yield store, session
        finally:
            worker.kill()
            worker.communicate()


def test_who_stands_still_with_the_lock_of_a_session_is_put_out(
    stopped: tuple[Store, Session],
) -> None:
    store, session = stopped
    run_command(session, b"goes on\n")
    assert store.reader.session(session.id).invocation_count == 1
    check_evidence(store)


def test_who_was_put_out_for_standing_still_makes_its_record_again(postgres_store: Store) -> None:
    session = postgres_store.open_session()

    def stand_still(connection: Connection, attempt: int) -> object:
        if attempt == 1:
            pid = connection.scalar(text("SELECT pg_backend_pid()"))
            # Of this attempt alone, since on a busy machine others may stand still for as long.
            connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = '50ms'"))
            wait_until_gone(postgres_store, pid)
        return lock_chain(connection, session.key, session.id).next_seq

    write, attempts = counted(stand_still)
    assert postgres_store.writes.run(write) == 0
    assert len(attempts) == 2


def test_who_stands_still_with_statements_under_way_is_put_out_and_makes_its_record_again(
    postgres_store: Store,
) -> None:
    session = postgres_store.open_session()

    def stand_still(connection: Connection, attempt: int) -> object:
        if attempt == 1:
            pid = connection.scalar(text("SELECT pg_backend_pid()"))
            # The clock of a transaction begins when it gets a limit, and not when it gets another.
            connection.execute(text("SET LOCAL transaction_timeout = 0"))
            connection.execute(text("SET LOCAL transaction_timeout = '200ms'"))
            lock_chain(connection, session.key, session.id)
            # Nobody waits for its answer, so that the server does not know that nothing follows.
            put_bodies(connection, [Body.of(b"x")])
            wait_until_gone(postgres_store, pid)
        return lock_chain(connection, session.key, session.id).next_seq

    write, attempts = counted(stand_still)
    assert postgres_store.writes.run(write) == 0
    assert len(attempts) == 2


def test_who_is_put_out_since_it_waits_for_long_asks_for_its_lock_again(
    postgres_store: Store, postgres_url: str
) -> None:
    session = postgres_store.open_session()
    url = with_query(postgres_url, "options=-c%20transaction_timeout%3D2s")
    write, attempts = counted(lambda c, _: lock_chain(c, session.key, session.id).next_seq)
    with (
        open_store(url, spool=postgres_store.spool, on_unavailable="raise") as waiting,
        ThreadPoolExecutor(1) as pool,
    ):
        with postgres_store.database.write() as connection:
            lock_chain(connection, session.key, session.id)
            waiter = pool.submit(waiting.writes.run, write)
            while len(attempts) < 2 and not waiter.done():
                time.sleep(0.01)
        assert waiter.result(HANG_S) == 0


def wait_until_gone(store: Store, backend: object) -> None:
    gone = text("SELECT count(*) FROM pg_stat_activity WHERE pid = :pid")
    deadline = time.monotonic() + HANG_S
    with store.database.autocommit() as connection:
        while connection.scalar(gone, {"pid": backend}):
            assert time.monotonic() < deadline
            time.sleep(0.01)
