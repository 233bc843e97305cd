"""Kills, forks, servers and disks: what waits is delivered once, whatever happens meanwhile."""

import os
import signal
import sys
import tempfile
import threading
import traceback
from pathlib import Path
from uuid import UUID

import pytest
from tests.support.away import away, without_pause
from tests.support.disks import small_disk
from tests.support.ended import BASH, made, numbered_calls
from tests.support.killing import count_moments, run_and_kill
from tests.support.lossy_server import START, LossyServer
from tests.support.outboxes import BIG, check_all, check_shown, printed
from tests.support.postgres import closed_database
from tests.support.processes import NOBODY, run_python
from tests.support.template_stores import make_store
from tests.support.threads import at_once

from tooltrail.records import UnavailableError
from tooltrail.store import (
    EndedCall,
    Finished,
    Session,
    SessionOpened,
    Store,
    find_backlog,
    is_waiting,
    open_store,
    repair,
)
from tooltrail.store._engines import forks
from tooltrail.store._outbox import flocks
from tooltrail.store.outbox import Outbox


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
        patch.setattr(flocks, "MOST_WAIT_S", 0.02)
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


def test_a_delivery_that_is_killed_at_any_moment_records_each_once(tmp_path: Path) -> None:
    database = str(tmp_path / "trail.db")
    with make_store(database, on_unavailable="outbox") as store:
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
        with make_store(
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
    make_store(postgres_url, **places).close()  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
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
    with make_store(postgres_url, **places, on_unavailable="outbox") as store:  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
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
        with make_store(disk.folder / "t.db", spool=spool, on_unavailable="outbox") as store:
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
        make_store(disk.folder / "t.db", on_unavailable="outbox") as store,
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
        make_store(
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
        with make_store(folder / "trail.db") as store:
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
