"""Sessions are opened, joined and closed, and have one order of their own."""

import json
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
from tests.support.away import remove_store
from tests.support.ended import made
from tests.support.evidence import check_evidence, ledger_of
from tests.support.recording import command_output, run_command, run_tool
from tests.support.rows import row_counts

from tooltrail.records import DamageError, NotFoundError, SessionClosedError, ToolCall
from tooltrail.store import EndedCall, Store, create_store

BASH = ToolCall(tool_name="Bash")


def test_a_closed_session_takes_no_new_records_and_lets_running_ones_finish(store: Store) -> None:
    session = store.open_session()
    running = session.start(BASH)
    session.close()
    counts = row_counts(store)

    refused: list[Callable[[], object]] = [
        session.close,
        lambda: session.start(BASH),
        lambda: session.add_message("user", "too late"),
        lambda: store.join_session(session.id).start(BASH),
    ]
    for attempt in refused:
        with pytest.raises(SessionClosedError, match=str(session.id)):
            attempt()
    assert row_counts(store) == counts

    running.finish(command_output(running, b"done\n"))
    assert store.reader.invocation(running.id).summary.state == "success"
    assert [e.kind for e in ledger_of(store, session.id)] == [
        "session.opened",
        "invocation.started",
        "session.closed",
        "invocation.finished",
    ]


def test_a_session_used_as_a_context_is_closed_at_its_end(store: Store) -> None:
    with store.open_session() as session:
        assert store.reader.session(session.id).closed_at is None
    view = store.reader.session(session.id)
    assert view.closed_at is not None
    assert view.closed_at >= view.opened_at


def test_a_session_knows_its_parent_title_agent_and_environment(store: Store) -> None:
    parent = store.open_session(title="the parent", agent="planner")
    child = store.open_session(parent=parent.id)
    grandchild = store.open_session(parent=child.id)

    views = {view.id: view for view in store.reader.sessions()}

    assert [views[s.id].parent_id for s in (parent, child, grandchild)] == [
        None,
        parent.id,
        child.id,
    ]
    assert (views[parent.id].title, views[parent.id].agent) == ("the parent", "planner")
    assert (views[child.id].title, views[child.id].agent) == (None, None)
    assert json.loads(views[parent.id].environment)["pid"] > 0
    assert ledger_of(store, child.id)[0].payload["parent"] == str(parent.id)


def test_an_unknown_session_cannot_be_joined_nor_be_a_parent(store: Store) -> None:
    nobody = uuid4()
    counts = row_counts(store)
    with pytest.raises(NotFoundError, match=str(nobody)):
        store.join_session(nobody)
    with pytest.raises(NotFoundError, match=str(nobody)):
        store.open_session(parent=nobody)
    assert row_counts(store) == counts


def test_messages_and_invocations_share_one_order(store: Store) -> None:
    session = store.open_session()
    session.add_message("user", "list the files")
    run_command(session, b"a\n")
    session.add_message("assistant", "there is one")
    run_tool(session, "content")

    _, messages, invocations = store.reader.conversation(session.id)

    assert [(m.seq, m.role, m.text) for m in messages] == [
        (0, "user", "list the files"),
        (2, "assistant", "there is one"),
    ]
    assert [i.summary.seq for i in invocations] == [1, 3]
    check_evidence(store)


def test_a_session_without_its_ledger_head_is_damage(sqlite_store: Store) -> None:
    session = sqlite_store.open_session()
    with sqlite_store.database.write() as connection:
        connection.exec_driver_sql("DROP TRIGGER ledger_heads_no_delete")
        connection.exec_driver_sql(f"DELETE FROM ledger_heads WHERE session_key = {session.key}")
    with pytest.raises(DamageError, match="no ledger head"):
        session.start(BASH)


def test_a_session_of_a_store_that_was_made_anew_at_its_place_is_not_taken_for_another(
    store: Store, database: str, tmp_path: Path
) -> None:
    old = store.open_session()
    ended = old.start(BASH)
    store.database.close()
    remove_store(database)
    with create_store(database, artifacts=str(tmp_path / "a2"), spool=tmp_path / "s2") as anew:
        told = f"session {old.id} is not in the store any more, where no session is in its place"
        with pytest.raises(NotFoundError, match=told):
            old.record(BASH, made())
        other = anew.open_session()
        assert other.key == old.key
        started = other.start(BASH)
        told = f"where session {other.id} is now in its place: the store was made anew"
        attempts: list[Callable[[], object]] = [
            lambda: old.start(BASH),
            lambda: old.record(BASH, made()),
            lambda: old.record_many([EndedCall(BASH, made())] * 2),
            lambda: old.add_message("user", "hello"),
            lambda: ended.finish(made()),
            old.close,
        ]
        for attempt in attempts:
            with pytest.raises(NotFoundError, match=told):
                attempt()
        _, messages, invocations = anew.reader.conversation(other.id)
        assert (messages, [one.summary.id for one in invocations]) == ([], [started.id])
        assert anew.reader.session(other.id).closed_at is None
        check_evidence(anew)


def test_a_session_for_one_call_begins_and_ends_with_it(store: Store) -> None:
    invocation = store.start_alone(BASH)
    (session,) = store.reader.sessions()
    assert (session.opened_at, session.closed_at) == (invocation.started_at, None)
    invocation.finish(command_output(invocation, b"out"))
    (session,) = store.reader.sessions()
    assert session.closed_at is not None
    opened, *_, closed = ledger_of(store, session.id)
    assert opened.payload["only_call"] == str(invocation.id)
    assert (closed.kind, closed.payload) == ("session.closed", {})
    check_evidence(store)


def test_a_session_for_one_call_outlives_others_that_joined_it(store: Store) -> None:
    own = store.start_alone(BASH)
    (session,) = store.reader.sessions()
    joined = store.join_session(session.id).start(BASH)
    joined.interrupt("it was asked to stop")
    assert store.reader.sessions()[0].closed_at is None
    own.interrupt("and so was this")
    assert store.reader.sessions()[0].closed_at is not None


def test_a_session_for_one_call_that_others_have_closed_stays_as_it_is(store: Store) -> None:
    own = store.start_alone(BASH)
    (session,) = store.reader.sessions()
    store.join_session(session.id).close()
    own.interrupt("it was asked to stop")
    kinds = [entry.kind for entry in ledger_of(store, session.id)]
    assert kinds.count("session.closed") == 1
    check_evidence(store)


def test_a_call_alone_that_cannot_be_started_leaves_nothing(store: Store) -> None:
    with pytest.raises(NotFoundError):
        store.start_alone(BASH, family="nobody")
    assert store.reader.sessions() == []
