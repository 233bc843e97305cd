"""A session as an ordered transcript, on each engine."""

import pytest
from tests.support.recording import run_command, run_tool

from tooltrail.records import AmbiguousNameError, NotFoundError, ToolCall
from tooltrail.store import InvocationDetail, MessageView, Store
from tooltrail.transcripts import load_transcript


def test_messages_and_calls_come_in_the_order_in_which_they_were_recorded(store: Store) -> None:
    session = store.open_session(title="talk")
    session.add_message("system", "be brief")
    session.add_message("user", "build it")
    first = session.start(ToolCall(tool_name="Bash", title="make"))
    second = run_tool(session, "read").invocation_id
    session.add_message("assistant", "it was built")
    third = run_command(session, b"late\n").invocation_id
    transcript = load_transcript(store.reader, str(session.id))
    assert transcript.session.title == "talk"
    assert [
        entry.text if isinstance(entry, MessageView) else entry.summary.id
        for entry in transcript.entries
    ] == ["be brief", "build it", first.id, second, "it was built", third]
    assert [
        entry.seq if isinstance(entry, MessageView) else entry.summary.seq
        for entry in transcript.entries
    ] == list(range(6))


def test_a_conversation_holds_its_own_session_alone(store: Store) -> None:
    mine, other = store.open_session(), store.open_session()
    mine.add_message("user", "mine")
    other.add_message("user", "other")
    run_command(other)
    (entry,) = load_transcript(store.reader, str(mine.id)).entries
    assert isinstance(entry, MessageView)
    assert entry.text == "mine"


def test_a_call_has_what_the_model_was_shown_and_an_open_one_has_nothing(store: Store) -> None:
    with store.open_session() as session:
        run_command(session, b"done\n")
        session.start(ToolCall(tool_name="Bash"))
    done, running = load_transcript(store.reader, "@last").entries
    assert isinstance(done, InvocationDetail)
    assert isinstance(running, InvocationDetail)
    assert done.receipt
    assert "done" in done.receipt.text
    assert running.receipt is None


def test_an_empty_session_is_an_empty_conversation(store: Store) -> None:
    session = store.open_session()
    transcript = load_transcript(store.reader, "@last")
    assert (transcript.session.id, transcript.entries) == (session.id, ())


def test_a_session_is_named_as_everywhere(store: Store) -> None:
    with pytest.raises(NotFoundError, match="the store has no session yet"):
        load_transcript(store.reader, "@last")
    session = store.open_session()
    assert load_transcript(store.reader, session.id.hex[-8:]).session.id == session.id
    assert load_transcript(store.reader, session.id.hex[:20]).session.id == session.id
    with pytest.raises(NotFoundError, match="no session is named 'feedbeef'"):
        load_transcript(store.reader, "feedbeef")
    store.open_session()
    with pytest.raises(AmbiguousNameError):
        load_transcript(store.reader, session.id.hex[:6])
