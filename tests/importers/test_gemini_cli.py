"""Gemini CLI: where each surface of a call comes from, as one document and as many lines."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.importers.sources import (
    assert_intact,
    assert_odd_values_are_imported,
    calls_in,
    import_one,
    messages_in,
    only_call,
    opened,
    receipt_of,
    stream_of,
    write_lines,
)

HEAD = {
    "sessionId": "5e55",
    "projectHash": "7e89",
    "startTime": "2026-04-14T09:55:12.541Z",
    "kind": "main",
}
CALL: dict[str, Any] = {
    "id": "replace_1",
    "name": "replace",
    "args": {"file_path": "a"},
    "result": [{"functionResponse": {"id": "replace_1", "response": {"output": "Modified a"}}}],
    "status": "success",
    "timestamp": "2026-04-14T09:55:14Z",
    "resultDisplay": {"fileDiff": "-a\n+b"},
    "description": "Edits a",
}
SAID: dict[str, Any] = {
    "id": "m1",
    "timestamp": "2026-04-14T09:55:13Z",
    "type": "gemini",
    "content": "I edit.",
    "thoughts": [{"subject": "Editing", "description": "look first"}],
    "tokens": {"input": 9, "output": 5},
    "model": "gemini-9",
}
ASKED = {**SAID, "toolCalls": [CALL]}
SHELL = {**CALL, "id": "shell_1", "name": "run_shell_command", "resultDisplay": "built\n"}


def write_document(path: Path, *messages: Any) -> Path:
    path.write_text(json.dumps({**HEAD, "messages": messages}, indent=2))
    return path


def imported_call(folder: Path, call: dict[str, Any]) -> Any:
    import_one(folder, write_document(folder / "a.json", {**SAID, "toolCalls": [call]}))
    return only_call(folder)


def test_an_edit_has_all_three_surfaces(tmp_path: Path) -> None:
    user = {"id": "m0", "type": "user", "content": [{"text": "go"}]}
    counts = import_one(tmp_path, write_document(tmp_path / "a.json", user, ASKED)).counts
    assert (counts["messages"], counts["calls"], counts["results"]) == (2, 1, 1)
    with opened(tmp_path) as reader:
        (call,) = calls_in(reader)
        assert stream_of(reader, call, "structured") == rb'{"fileDiff":"-a\n+b"}'
        question, answer = messages_in(reader)
        (session,) = reader.sessions()
    assert call.arguments == b'{"file_path":"a"}'
    assert receipt_of(call) == "Modified a"
    assert (call.summary.state, call.not_recorded) == ("success", ())
    assert call.message_id == answer.id
    for part in (b'"model":"gemini-9"', b'"input":9', b'"look first"', b'"Editing"'):
        assert part in (answer.document or b"")
    assert (question.text, session.agent) == ("go", "gemini-cli")


def test_the_text_of_a_command_is_its_output(tmp_path: Path) -> None:
    call = imported_call(tmp_path, SHELL)
    with opened(tmp_path) as reader:
        assert stream_of(reader, call, "content") == b"built\n"


def test_a_remark_for_people_is_not_a_complete_output(tmp_path: Path) -> None:
    remark = {**CALL, "name": "read_file", "resultDisplay": "Read lines 1-25 of 212"}
    call = imported_call(tmp_path, remark)
    assert call.not_recorded == ("output", "canonical")


@pytest.mark.parametrize(
    ("status", "text", "state"),
    [
        ("error", "File not found", "error"),
        ("cancelled", "[Operation Cancelled] Reason: Operation cancelled", "cancelled"),
        ("cancelled", "[Operation Cancelled] Reason: User denied execution.", "denied"),
    ],
)
def test_a_failure_has_its_state(tmp_path: Path, status: str, text: str, state: str) -> None:
    result = [{"functionResponse": {"response": {"error": text}}}]
    call = imported_call(
        tmp_path, {**CALL, "status": status, "result": result, "resultDisplay": None}
    )
    assert (call.summary.state, call.receipt.text) == (state, text)


def test_a_message_that_is_written_again_adds_only_its_calls(tmp_path: Path) -> None:
    waiting = {**SHELL, "status": "executing", "result": None}
    lines = [
        HEAD,
        SAID,
        {"$set": {"lastUpdated": "2026-04-14T09:55:14Z"}},
        {**SAID, "toolCalls": [CALL, waiting]},
        *[{**SAID, "toolCalls": [CALL, SHELL]}] * 2,
        {"$set": {"messages": [ASKED]}},
        {"$set": {"messages": [ASKED, {"type": "user", "content": "more"}]}},
        {"$rewindTo": "m1"},
    ]
    counts = import_one(tmp_path, write_lines(tmp_path / "a.jsonl", lines)).counts
    assert (counts["messages"], counts["calls"], counts["results"]) == (3, 2, 2)
    assert (counts["other_lines"], counts["unpaired_calls"]) == (2, 0)
    assert not [name for name in counts if name.startswith("unknown")]
    with opened(tmp_path) as reader:
        calls, (said, asked, more) = calls_in(reader), messages_in(reader)
    assert (said.text, asked.text, more.text) == ("I edit.", "", "more")
    assert {call.message_id for call in calls} == {asked.id}
    assert_intact(tmp_path)


def test_a_document_that_has_grown_adds_what_is_new(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    import_one(tmp_path, write_document(path, {**SAID, "toolCalls": []}))
    import_one(tmp_path, write_document(path, ASKED, {"id": "m2", "type": "user", "content": "ok"}))
    assert import_one(tmp_path, path).counts["new"] == 0
    with opened(tmp_path) as reader:
        assert len(messages_in(reader)) == 2
        assert len(calls_in(reader)) == 1
    assert_intact(tmp_path)


@pytest.mark.parametrize("is_document", [True, False])
def test_an_answer_that_was_imported_while_it_was_written_is_recorded_whole(
    tmp_path: Path, is_document: bool
) -> None:
    begun, whole = {**SAID, "content": "I ed"}, ASKED
    if is_document:
        import_one(tmp_path, write_document(tmp_path / "a.json", begun))
        import_one(tmp_path, write_document(tmp_path / "a.json", whole))
    else:
        import_one(tmp_path, write_lines(tmp_path / "a.jsonl", [HEAD, begun]))
        import_one(tmp_path, write_lines(tmp_path / "a.jsonl", [HEAD, begun, whole]))
    with opened(tmp_path) as reader:
        assert [one.text for one in messages_in(reader)] == ["I ed", "I edit."]
        assert len(calls_in(reader)) == 1
    assert_intact(tmp_path)


def test_a_sub_agent_is_a_session_with_a_parent(tmp_path: Path) -> None:
    (tmp_path / "5e55").mkdir()
    child = {**HEAD, "sessionId": "c0", "kind": "subagent"}
    import_one(tmp_path, write_document(tmp_path / "session-1.json", ASKED))
    import_one(tmp_path, write_lines(tmp_path / "5e55" / "c0.jsonl", [child, ASKED]))
    with opened(tmp_path) as reader:
        found, parent = sorted(reader.sessions(), key=lambda one: one.parent_id is None)
    assert found.parent_id == parent.id


def test_odd_values_are_imported(tmp_path: Path) -> None:
    picture = {**SHELL, "id": "p", "result": [{"inlineData": {"data": "AA"}}, {"text": "seen"}]}
    asked = {**SAID, "toolCalls": [CALL, picture]}
    assert_odd_values_are_imported(tmp_path, [HEAD, asked, {"$set": {"messages": [asked]}}])
