"""A session as an ordered transcript, on each engine."""

import copy
import pickle

from tests.support.recording import run_command, run_tool, say

from tooltrail.journal.ended_calls import EndedCall
from tooltrail.records import CompleteOutput, GenericOutput, ToolCall
from tooltrail.store import Store
from tooltrail.store.views import InvocationDetail, MessageView
from tooltrail.transcripts import Transcript, load_transcript, until


def test_messages_and_calls_come_in_the_order_in_which_they_were_recorded(store: Store) -> None:
    session = store.open_session(title="talk")
    say(session, "system", "be brief")
    say(session, "user", "build it")
    first = session.start(ToolCall(tool_name="Bash", title="make"))
    second = run_tool(session, "read").invocation_id
    say(session, "assistant", "it was built")
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
    ] == [1, 2, 3, 4, 5, 6]


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


def shown(transcript: Transcript) -> list[str | None]:
    """What the model was shown of each call, in the order in which they began."""
    calls = [entry for entry in transcript.entries if isinstance(entry, InvocationDetail)]
    return [None if call.receipt is None else call.receipt.text for call in calls]


def output(text: str) -> CompleteOutput:
    return CompleteOutput.success("f", GenericOutput.of(text))


def test_up_to_an_entry_no_result_is_told_that_came_later(store: Store) -> None:
    with store.open_session() as session:
        first = session.start(ToolCall.of("f", {}, call_id="c1"))
        second = session.start(ToolCall.of("f", {}, call_id="c2"))
        said = say(session, "user", "and?")
        second.finish(output("two"))
        later = say(session, "user", "well?")
        first.finish(output("one"))
        whole = session.record(EndedCall(ToolCall.of("f", {}), output("three"))).invocation_id
        last = say(session, "user", "thanks")
    transcript = load_transcript(store.reader, str(session.id))
    wanted = {
        "#1": [None],
        str(first.id): [None],
        str(second.id): [None, None],
        str(said): [None, None],
        str(later): [None, "two\n"],
        # Its own result came after it began, and its beginning after the end of all others.
        str(whole): ["one\n", "two\n", None],
        str(last): ["one\n", "two\n", "three\n"],
    }
    assert {name: shown(until(transcript, name)) for name in wanted} == wanted


def test_up_to_an_entry_nothing_is_known_of_how_an_open_call_will_end(store: Store) -> None:
    with store.open_session() as session:
        run = session.start(ToolCall(tool_name="Bash", arguments_raw='{"command":"ls"}'))
        before = store.reader.invocation(run.id)
        run.finish(CompleteOutput.success("Bash", GenericOutput.of("a")))
    transcript = until(load_transcript(store.reader, "@last"), "#1")
    assert transcript.entries == (before.replaced(environment=None),)
    view = transcript.session
    assert (view.closed_at, view.invocation_count, view.open_count) == (None, 1, 1)


def test_a_changed_transcript_can_be_copied_and_pickled(store: Store) -> None:
    with store.open_session():
        pass
    changed = load_transcript(store.reader, "@last").replaced(until=None)
    assert copy.deepcopy(changed) == changed
    assert pickle.loads(pickle.dumps(changed)) == changed
