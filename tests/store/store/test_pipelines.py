"""What is sent to a server without waiting is done, or told, as if each had been waited for."""

import logging
import secrets
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Connection, select, text
from tests.support.asides import CALL
from tests.support.evidence import check_evidence
from tests.support.lossy_server import LossyServer
from tests.support.recording import command_output, run_command

from tooltrail.journal.clock import now
from tooltrail.records import InvalidRecordError, UnavailableError
from tooltrail.store import Store, create_store
from tooltrail.store._engines import pipelines
from tooltrail.store._engines.copying_in import MANY
from tooltrail.store._engines.impatient_psycopg import ImpatientConnection
from tooltrail.store._engines.pipelines import TRANSACTION_TIMEOUT_S, is_pipelined
from tooltrail.store._engines.prepared import Row
from tooltrail.store._recording.group_commit import Write
from tooltrail.store._recording.writes import insert_rows
from tooltrail.store.tables import PolicyRow


def policies(*names: str) -> list[Row]:
    return [{"digest": name, "document": "{}", "created_at": now()} for name in names]


def kept(store: Store) -> list[str]:
    with store.database.read() as connection:
        return sorted(connection.scalars(select(PolicyRow.digest)))


def test_a_start_takes_three_ways_to_the_server_and_an_end_four(
    lossy: LossyServer, tmp_path: Path
) -> None:
    artifacts = str(tmp_path / "artifacts")
    with create_store(lossy.url, artifacts=artifacts, spool=tmp_path / "spool") as store:
        session = store.open_session()
        for number in range(3):  # until all is prepared
            run_command(session, b"%d\n" % number)
        before = lossy.turns
        invocation = session.start(CALL)
        begun = lossy.turns
        invocation.finish(command_output(invocation, b"counted\n", b""))
        assert (begun - before, lossy.turns - begun) == (3, 4)


def test_what_is_refused_later_is_no_uncertain_write_and_leaves_nothing(
    postgres_store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    def add_twice(connection: Connection) -> None:
        for _ in range(3):
            insert_rows(connection, PolicyRow, policies("a"))

    write = Write(add_twice)
    with (
        caplog.at_level(logging.DEBUG, "psycopg"),
        pytest.raises(InvalidRecordError, match="duplicate key"),
    ):
        postgres_store.writes.run(write)
    assert not write.is_uncertain
    assert caplog.messages == []
    assert kept(postgres_store) == []
    run_command(postgres_store.open_session(), b"goes on\n")
    check_evidence(postgres_store)


def end_backend(connection: Connection) -> None:
    """As an administrator does, or a server that is being stopped."""
    url = connection.engine.url.set(drivername="postgresql")
    pid = driver_connection(connection).info.backend_pid
    with psycopg.connect(url.render_as_string(hide_password=False), autocommit=True) as admin:
        admin.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])


def leave_an_answer(connection: Connection) -> None:
    """What psycopg does not know of, so that it cannot leave the pipeline."""
    driver_connection(connection).pgconn.send_query_params(b"SELECT 1", None)


def driver_connection(connection: Connection) -> ImpatientConnection:
    driver = connection.connection.driver_connection
    assert isinstance(driver, ImpatientConnection)
    return driver


@pytest.mark.parametrize("broken", [end_backend, leave_an_answer])
def test_a_connection_whose_pipeline_broke_is_thrown_away_and_nothing_is_printed(
    postgres_store: Store, caplog: pytest.LogCaptureFixture, broken: Callable[[Connection], None]
) -> None:
    def write(connection: Connection) -> None:
        insert_rows(connection, PolicyRow, policies("a"))
        used.append(driver_connection(connection))
        broken(connection)
        raise LookupError("what the writer meets meanwhile")

    used: list[ImpatientConnection] = []
    with pytest.raises(LookupError):
        postgres_store.writes.run(Write(write))
    # An answer may have come early enough to be taken for one more of what was asked.
    assert [driver for driver in used if not driver.closed and not driver.is_at_rest] == []
    assert used[0].closed or broken is leave_an_answer
    assert caplog.messages == []
    assert kept(postgres_store) == []
    run_command(postgres_store.open_session(), b"goes on\n")
    check_evidence(postgres_store)


@pytest.mark.parametrize("count", [1, MANY])
def test_of_rows_that_meet_a_lost_connection_in_a_longer_transaction_nothing_is_printed(
    postgres_store: Store, caplog: pytest.LogCaptureFixture, count: int
) -> None:
    def write() -> None:
        with postgres_store.database.write() as connection:
            end_backend(connection)
            insert_rows(connection, PolicyRow, policies(*map(str, range(count))))

    with pytest.raises(UnavailableError):
        write()
    assert caplog.messages == []
    assert kept(postgres_store) == []


def test_many_rows_go_the_same_way(postgres_store: Store) -> None:
    names = [f"{number:04}" for number in range(2 * MANY)]
    postgres_store.writes.run(Write(lambda c: insert_rows(c, PolicyRow, policies(*names))))
    assert kept(postgres_store) == names


def test_a_server_that_would_wait_for_one_that_stands_still_is_asked_one_by_one(
    postgres_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert postgres_store.writes.run(Write(is_pipelined))
    monkeypatch.setattr(pipelines, "_LIMITED_SINCE", (999,))
    assert not postgres_store.writes.run(Write(is_pipelined))
    run_command(postgres_store.open_session(), b"one by one\n")
    check_evidence(postgres_store)


@pytest.mark.parametrize(
    ("named", "expected"),
    [("", f"{TRANSACTION_TIMEOUT_S}s"), ("options=-c%20transaction_timeout%3D7s", "7s")],
)
def test_a_record_has_a_limit_unless_the_url_names_another(
    postgres_url: str, tmp_path: Path, named: str, expected: str
) -> None:
    url = f"{postgres_url}{'&' if '?' in postgres_url else '?'}{named}"
    with create_store(url, artifacts=str(tmp_path / "a"), spool=tmp_path / "s") as store:
        asked = text("SHOW transaction_timeout")
        assert store.writes.run(Write(lambda c: c.scalar(asked))) == expected


def test_what_is_more_than_a_network_takes_at_once_gets_there(postgres_store: Store) -> None:
    session = postgres_store.open_session()
    # Of what cannot be compressed, so that as much is sent.
    text = secrets.token_urlsafe(24 << 20)
    session.add_message("user", text)
    (message,) = postgres_store.reader.conversation(session.id)[1]
    assert message.text == text
