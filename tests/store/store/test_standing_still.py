"""A server that stands still, and keeps no limit of its own, is given up."""

import os
import signal
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy import text
from tests.support.ended import BASH, made
from tests.support.evidence import check_evidence
from tests.support.postgres import MortalServer, fresh_database, mortal_server

from tooltrail.records import RecordUncertainError
from tooltrail.store import Store, create_store
from tooltrail.store._engines import postgres_connections


@pytest.fixture(scope="module")
def mortal() -> Iterator[MortalServer]:
    with mortal_server() as server:
        yield server


@pytest.fixture
def store(mortal: MortalServer, tmp_path: Path) -> Iterator[Store]:
    with (
        fresh_database(mortal.url) as url,
        create_store(
            url,
            artifacts=str(tmp_path / "artifacts"),
            spool=tmp_path / "spool",
            on_unavailable="raise",
        ) as created,
    ):
        yield created


def states_of(store: Store) -> dict[UUID, str]:
    return {one.id: one.state for one in store.reader.invocations().items}


@contextmanager
def standing_still(store: Store) -> Generator[None]:
    """The part of the server that serves the connection which is taken next does nothing."""
    with store.database.read() as connection:
        process = connection.scalar(text("SELECT pg_backend_pid()"))
    assert isinstance(process, int)
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


def test_a_server_that_stands_still_is_given_up_and_the_record_goes_another_way(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = store.open_session()
    session.record(BASH, made(b"before\n"))
    monkeypatch.setattr(postgres_connections, "TRANSACTION_TIMEOUT_S", 1)
    monkeypatch.setattr(postgres_connections, "ANSWER_TIMEOUT_S", 0)
    with standing_still(store):
        finished = session.record(BASH, made(b"meanwhile\n"))
        assert states_of(store)[finished.invocation_id] == "success"
    check_evidence(store)


def test_who_reads_from_a_server_that_stands_still_goes_another_way(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished = store.open_session().record(BASH, made(b"before\n"))
    monkeypatch.setattr(postgres_connections, "CONNECT_TIMEOUT_S", 1)
    with standing_still(store):
        assert states_of(store) == {finished.invocation_id: "success"}


_SLOW_COMMIT = """
CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_sleep(3); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON invocations
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION slow();
"""


def test_a_commit_that_is_not_answered_in_time_is_told_as_one_that_may_be_done(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = store.open_session()
    session.record(BASH, made(b"before\n"))
    with store.database.write() as connection:
        connection.exec_driver_sql(_SLOW_COMMIT)
    monkeypatch.setattr(postgres_connections, "TRANSACTION_TIMEOUT_S", 1)
    monkeypatch.setattr(postgres_connections, "ANSWER_TIMEOUT_S", 0)
    with pytest.raises(RecordUncertainError, match="has not answered in time"):
        session.record(BASH, made(b"slow\n"))
