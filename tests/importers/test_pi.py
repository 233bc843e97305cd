"""pi: where each surface of a call comes from, in both versions of its lines."""

from pathlib import Path
from typing import Any

import pytest
from tests.importers.sources import (
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
    "type": "session",
    "version": 3,
    "id": "5e55",
    "timestamp": "2026-05-20T10:00:00Z",
    "cwd": "/work",
}
ANSWER = {
    "role": "assistant",
    "content": [
        {"type": "thinking", "thinking": "look first", "thinkingSignature": "sig"},
        {"type": "text", "text": "I edit."},
        {"type": "toolCall", "id": "c1", "name": "edit", "arguments": {"path": "a", "n": 1.5}},
    ],
    "api": "anthropic-messages",
    "provider": "anthropic",
    "model": "claude-9",
    "usage": {"input": 3, "output": 191},
    "stopReason": "toolUse",
    "responseId": "r1",
}
RESULT: dict[str, Any] = {
    "role": "toolResult",
    "toolCallId": "c1",
    "toolName": "edit",
    "content": [{"type": "text", "text": "Successfully replaced"}],
    "details": {"diff": "-a\n+b"},
    "isError": False,
}


def entry(n: int, message: Any, **more: Any) -> dict[str, Any]:
    at = f"2026-05-20T10:00:{n:02}Z"
    return {"type": "message", "id": f"{n:08}", "timestamp": at, "message": message, **more}


def imported_call(folder: Path, result: dict[str, Any]) -> Any:
    lines = [HEAD, entry(1, ANSWER), entry(2, {**RESULT, **result})]
    import_one(folder, write_lines(folder / "a.jsonl", lines))
    return only_call(folder)


def test_an_edit_has_all_three_surfaces(tmp_path: Path) -> None:
    lines = [HEAD, entry(1, {"role": "user", "content": "go"}), entry(2, ANSWER), entry(3, RESULT)]
    counts = import_one(tmp_path, write_lines(tmp_path / "a.jsonl", lines)).counts
    assert (counts["messages"], counts["calls"], counts["results"]) == (2, 1, 1)
    with opened(tmp_path) as reader:
        (call,) = calls_in(reader)
        assert stream_of(reader, call, "structured") == rb'{"diff":"-a\n+b"}'
        _, answer = messages_in(reader)
        (session,) = reader.sessions()
    assert call.arguments == b'{"path":"a","n":1.5}'
    assert receipt_of(call) == "Successfully replaced"
    assert (call.summary.state, call.not_recorded) == ("success", ())
    assert call.message_id == answer.id
    for part in (b'"model":"claude-9"', b'"usage":{"input":3,', b'"thinkingSignature":"sig"'):
        assert part in (answer.document or b"")
    assert (session.agent, session.environment) == ("pi", '{"cwd":"/work"}')


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("no such file\n\n\nCommand exited with code 2", "success"),
        ("Command aborted", "interrupted"),
        ("Could not find the exact text", "error"),
    ],
)
def test_a_command_that_exits_with_a_status_did_not_fail(
    tmp_path: Path, text: str, state: str
) -> None:
    content = [{"type": "text", "text": text}]
    call = imported_call(tmp_path, {"content": content, "details": {}, "isError": True})
    assert call.summary.state == state
    assert call.receipt.text == text


def test_an_output_that_was_cut_is_not_a_complete_output(tmp_path: Path) -> None:
    details = {"truncation": {"truncated": True}, "fullOutputPath": "/etc/passwd"}
    call = imported_call(tmp_path, {"details": details})
    assert call.not_recorded == ("output", "canonical")


def test_lines_of_version_1_have_no_ids(tmp_path: Path) -> None:
    lines = [{**HEAD, "version": None}, entry(1, ANSWER, id=None), entry(2, RESULT, id=None)]
    path = write_lines(tmp_path / "a.jsonl", lines)
    assert import_one(tmp_path, path).counts["results"] == 1
    with opened(tmp_path) as reader:
        assert len(messages_in(reader)) == 1


def test_a_session_names_the_session_that_it_was_forked_from(tmp_path: Path) -> None:
    parent = "/home/x/2026-05-20T10-00-00-000Z_5e55.jsonl"
    forked = {**HEAD, "id": "f0", "parentSession": parent}
    import_one(tmp_path, write_lines(tmp_path / "a.jsonl", [HEAD, entry(1, ANSWER)]))
    import_one(tmp_path, write_lines(tmp_path / "b.jsonl", [forked, entry(1, ANSWER)]))
    with opened(tmp_path) as reader:
        child, parent_found = sorted(reader.sessions(), key=lambda one: one.parent_id is None)
    assert child.parent_id == parent_found.id


def test_odd_values_are_imported(tmp_path: Path) -> None:
    shell = {"role": "bashExecution", "command": "ls", "output": "a", "exitCode": 0}
    custom = {"type": "custom_message", "id": "9", "customType": "x", "content": "seen"}
    picture = {**RESULT, "content": [{"type": "image", "data": "AA", "mimeType": "image/png"}]}
    entries = [ANSWER, RESULT, shell, picture, {"role": "hologram"}]
    lines = [HEAD, *(entry(n, one) for n, one in enumerate(entries)), custom]
    assert_odd_values_are_imported(tmp_path, lines)
