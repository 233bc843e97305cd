"""Transcripts that must fit into a number of tokens: what goes first, and what never goes."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue
from tests.support.effort import times
from tests.support.outputs import returned
from tests.support.recording import fail_tool, run_command, run_tool, say

from tooltrail.records import (
    CanonicalResult,
    CompactedResult,
    ToolCall,
    compact,
    estimate_tokens,
    render_compacted,
)
from tooltrail.records.budgets import COMPACTION_CHARS
from tooltrail.store import Store, create_store
from tooltrail.store.views import InvocationDetail
from tooltrail.transcripts import FORMATS, Fitted, Transcript, fit, load_transcript

STYLES = ("text", "markdown", "json")
LOG = b"".join(b"line %04d of a long log\n" % n for n in range(400))


@pytest.fixture
def transcript(sqlite_store: Store) -> Transcript:
    """Three long results between short ones, and a call that has not ended."""
    session = sqlite_store.open_session(title="talk")
    say(session, "user", "build it")
    run_command(session, LOG)
    run_tool(session, "tiny")
    run_command(session, LOG, LOG, exit_status=1)
    fail_tool(session)
    run_command(session, LOG)
    session.start(ToolCall(tool_name="Bash"))
    say(session, "assistant", "it was built")
    return load_transcript(sqlite_store.reader, "@last")


def document(transcript: Transcript, style: str) -> str:
    return "".join(FORMATS[style](transcript))


def compacted_places(fitted: Fitted) -> list[int]:
    """Where the calls are that are compacted, by `seq`."""
    return [
        entry.summary.seq
        for entry in fitted.transcript.entries
        if isinstance(entry, InvocationDetail) and entry.summary.id in fitted.transcript.compacted
    ]


def compactions(fitted: Fitted) -> list[str]:
    return list(fitted.transcript.compacted.values())


def compaction_of(entry: object, chars: int = COMPACTION_CHARS) -> str:
    """The receipt of what a budget leaves of a call."""
    assert isinstance(entry, InvocationDetail)
    assert entry.canonical_json is not None
    compacted = compact(CanonicalResult.from_json(entry.canonical_json), chars)
    assert isinstance(compacted, CompactedResult)
    return render_compacted(compacted)


@pytest.mark.parametrize("style", STYLES)
def test_what_fits_is_left_as_it_is(transcript: Transcript, style: str) -> None:
    tokens = estimate_tokens(document(transcript, style))
    fitted = fit(transcript, tokens, FORMATS[style])
    assert fitted == Fitted(transcript, tokens)


@pytest.mark.parametrize("style", STYLES)
def test_the_oldest_results_go_first_and_only_as_many_as_must(
    transcript: Transcript, style: str
) -> None:
    writer = FORMATS[style]
    tokens = estimate_tokens(document(transcript, style))
    first = fit(transcript, tokens - 1, writer)
    assert compacted_places(first) == [2]
    assert compactions(first) == [compaction_of(transcript.entries[1])]
    assert first.token_count == estimate_tokens(document(first.transcript, style))
    assert first.token_count < tokens - 1_000
    second = fit(transcript, first.token_count - 1, writer)
    assert compacted_places(second) == [2, 4]
    third = fit(transcript, second.token_count - 1, writer)
    assert compacted_places(third) == [2, 4, 6]


@pytest.mark.parametrize("style", STYLES)
def test_when_that_is_not_enough_the_essentials_alone_stay(
    transcript: Transcript, style: str
) -> None:
    writer = FORMATS[style]
    least = fit(transcript, 1, writer)
    assert compacted_places(least) == [2, 4, 6]
    assert compactions(least) == [
        compaction_of(transcript.entries[place], 0) for place in (1, 3, 5)
    ]
    assert least.token_count == estimate_tokens(document(least.transcript, style)) > 1
    nearly = fit(transcript, least.token_count + 400, writer)
    assert compactions(nearly)[2] != compactions(least)[2]
    assert compactions(nearly)[0] == compactions(least)[0]


def test_a_policy_says_how_much_of_a_result_its_first_compaction_keeps(
    transcript: Transcript,
) -> None:
    writer, chars = FORMATS["text"], 3_000
    tokens = estimate_tokens(document(transcript, "text"))
    fitted = fit(transcript, tokens - 1, writer, chars)
    assert compactions(fitted) == [compaction_of(transcript.entries[1], chars)]
    assert fitted.token_count > fit(transcript, tokens - 1, writer).token_count + 100
    assert fit(transcript, 1, writer, chars) == fit(transcript, 1, writer)


def test_a_result_that_would_grow_stays_as_the_model_saw_it(transcript: Transcript) -> None:
    least = fit(transcript, 1, FORMATS["text"])
    text = document(least.transcript, "text")
    assert "  tiny\n" in text
    assert "  Error (tool_execution_failed): it did not work\n" in text
    assert "  [no result: the invocation has not ended]\n" in text


def test_messages_and_arguments_stay(sqlite_store: Store) -> None:
    session = sqlite_store.open_session()
    say(session, "user", "m" * 4_000)
    run_command(session, LOG, call=ToolCall(tool_name="Bash", arguments_raw="a" * 4_000))
    fitted = fit(load_transcript(sqlite_store.reader, "@last"), 10, FORMATS["text"])
    text = document(fitted.transcript, "text")
    assert "m" * 4_000 in text
    assert "a" * 4_000 in text
    assert fitted.token_count > 2_000


def test_fitting_changes_neither_the_conversation_nor_the_store(
    sqlite_store: Store, transcript: Transcript
) -> None:
    before = document(transcript, "text")
    fit(transcript, 1, FORMATS["text"])
    assert transcript.compacted == {}
    assert document(transcript, "text") == before
    assert document(load_transcript(sqlite_store.reader, "@last"), "text") == before


def test_fitting_again_goes_on_from_where_it_was(transcript: Transcript) -> None:
    writer = FORMATS["text"]
    once = fit(transcript, 4_000, writer)
    assert fit(once.transcript, 4_000, writer) == once
    assert fit(once.transcript, 100_000, writer) == once
    assert fit(once.transcript, 1, writer) == fit(transcript, 1, writer)


def test_each_format_says_which_calls_are_compacted(transcript: Transcript) -> None:
    least = fit(transcript, 1, FORMATS["text"]).transcript
    text = document(least, "text")
    assert text.count("--- compacted ---\n  command exited with status ") == 3
    assert text.count("--- shown to the model ---\n") == 3
    assert "line 0200" not in text
    markdown = document(least, "markdown")
    assert markdown.count("\nCompacted:\n\n```text\ncommand exited with status ") == 3
    assert markdown.count("\nShown to the model:\n\n```text\n") == 3
    found = json.loads(document(least, "json"))["entries"]
    calls = [entry for entry in found if entry["type"] == "tool_call"]
    assert [call["compacted"] is None for call in calls] == [
        *(False, True, False, True, False, True)
    ]
    for call in calls[:5]:
        assert (call["receipt"] is None) == (call["compacted"] is not None)
        assert call["receipt_digest"].startswith("sha256:")
    assert calls[2]["compacted"] == (
        "command exited with status 1\n"
        "[compacted: only a part of this result is left]\n"
        "disposition: completed\n"
        "exit_status: 1\n"
        "stderr_truncated: true\n"
        "stdout_truncated: true\n"
        "truncated: true\n"
    )


@settings(max_examples=times(10))
@given(tokens=st.integers(1, 12_000), style=st.sampled_from(STYLES))
def test_the_count_is_that_of_the_document_and_fits_whenever_it_can(
    shared: Transcript, tokens: int, style: str
) -> None:
    fitted = fit(shared, tokens, FORMATS[style])
    assert fitted.token_count == estimate_tokens(document(fitted.transcript, style))
    least = fit(shared, 1, FORMATS[style]).token_count
    assert fitted.token_count <= max(tokens, least)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Transcript:
    with create_store(tmp_path_factory.mktemp("store") / "trail.db") as store:
        with store.open_session() as session:
            say(session, "user", "go")
            for n in range(8):
                run_command(session, LOG * (n % 3))
                call = ToolCall(tool_name="mcp__list")
                rows: list[JsonValue] = [{"row_id": i, "name": "é" * n} for i in range(n * 9)]
                session.start(call).finish(returned("mcp__list", structured={"rows": rows}))
        return load_transcript(store.reader, "@last")
