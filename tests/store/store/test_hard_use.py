"""What a runtime does that no quiet test would: threads, forks, erased bodies, long ids."""

import os
import secrets
import stat
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import insert, text, update
from tests.support.outputs import returned
from tests.support.recording import content_of, run_tool
from tests.support.template_stores import make_store

from tooltrail.records import (
    CompleteOutput,
    InvalidRecordError,
    NotFoundError,
    ToolCall,
    ToolError,
    digest_of,
)
from tooltrail.store import Store, create_store, open_store
from tooltrail.store.tables import BodyRow, TombstoneRow


def test_many_threads_create_many_stores_at_once(tmp_path: Path) -> None:
    def create(number: int) -> None:
        create_store(tmp_path / str(number) / "trail.db").close()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(create, range(16)))
    for number in range(16):
        with open_store(tmp_path / str(number) / "trail.db") as store:
            assert store.reader.counts().sessions == 0


def test_bytes_that_were_erased_and_are_recorded_anew_are_there_again(store: Store) -> None:
    said = b"a secret that came twice"
    first = store.open_session().start(ToolCall(tool_name="t"))
    first.finish(returned("t", said))
    digest = digest_of(said)
    with store.database.write() as connection:
        connection.execute(
            insert(TombstoneRow).values(
                kind="body",
                subject=digest,
                size=len(said),
                reason="asked for",
                rule="test",
                actor="test",
                removed_at=datetime.now(UTC),
            )
        )
        connection.execute(update(BodyRow).where(BodyRow.digest == digest).values(data=None))
    second = store.open_session().start(ToolCall(tool_name="t"))
    second.finish(returned("t", said))
    stream = store.reader.invocation(second.id).stream("content.0")
    assert stream is not None
    assert content_of(store.reader, stream) == said


def test_a_call_id_of_any_length_is_recorded_and_found(store: Store) -> None:
    call_id = secrets.token_urlsafe(6_000)
    invocation = store.open_session().start(ToolCall(tool_name="t", call_id=call_id))
    assert store.reader.invocation(invocation.id).summary.call_id == call_id


def test_a_forked_child_leaves_its_parents_connections_alone(store: Store) -> None:
    session = store.open_session()
    run_tool(session, "before")
    pid = os.fork()
    if pid == 0:
        try:
            run_tool(session, "in the child")
            os._exit(0)
        except BaseException:  # noqa: BLE001  the parent reads the exit code
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    run_tool(session, "after")
    assert store.reader.counts().invocations == {"success": 3}


def test_a_tool_that_is_called_like_a_builtin_can_be_generic(store: Store) -> None:
    session = store.open_session()
    invocation = session.start(ToolCall(tool_name="shell"), family="generic")
    invocation.finish(returned("shell", "hi"))
    assert store.reader.invocation(invocation.id).summary.family == "generic"
    with pytest.raises(NotFoundError, match="no family is named 'none'"):
        session.start(ToolCall(tool_name="shell"), family="none")


def test_the_output_of_another_tool_is_refused(store: Store) -> None:
    invocation = store.open_session().start(ToolCall(tool_name="one"))
    error = ToolError(kind="cancelled", message="no")
    with pytest.raises(InvalidRecordError, match="is of 'one', not of 'other'"):
        invocation.finish(CompleteOutput.failure("other", error))
    invocation.finish(CompleteOutput.failure("one", error))


def test_a_role_is_captured_once(sqlite_store: Store) -> None:
    invocation = sqlite_store.open_session().start(ToolCall(tool_name="t"))
    invocation.capture("stdout")
    with pytest.raises(InvalidRecordError, match="has a capture already"):
        invocation.capture("stdout")


def test_a_joined_session_stays_open_and_an_own_one_is_closed_once(store: Store) -> None:
    with store.open_session() as own:
        with store.join_session(own.id) as joined:
            run_tool(joined, "first")
        run_tool(own, "second")
        own.close()
    assert store.reader.session(own.id).closed_at is not None


def test_a_database_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    with create_store(tmp_path / "trail.db") as store:
        run_tool(store.open_session(), "said")
        for name in ("trail.db", "trail.db-wal"):
            assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


def test_what_the_url_says_for_itself_stands(postgres_url: str, tmp_path: Path) -> None:
    named = f"{postgres_url}{'&' if '?' in postgres_url else '?'}"
    named += "application_name=audit&options=-c%20statement_timeout%3D7s"
    root = str(tmp_path / "artifacts")
    with make_store(named, artifacts=root) as store, store.database.read() as connection:
        assert connection.scalar(text("SHOW application_name")) == "audit"
        assert connection.scalar(text("SHOW statement_timeout")) == "7s"
        assert connection.scalar(text("SHOW timezone")) == "UTC"


def test_a_database_that_another_alembic_uses_can_hold_a_store(
    database: str, tmp_path: Path
) -> None:
    from tooltrail.store._engines.database import open_database
    from tooltrail.store._engines.targets import parse_target

    other = open_database(parse_target(database), create=True)
    with other.write() as connection:
        connection.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32))"))
        connection.execute(text("INSERT INTO alembic_version VALUES ('abc123')"))
    other.close()
    create_store(database, artifacts=str(tmp_path / "artifacts")).close()
    with open_store(database) as store, store.database.read() as connection:
        assert connection.scalar(text("SELECT version_num FROM alembic_version")) == "abc123"
