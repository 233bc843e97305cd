"""Copilot CLI: where each surface of a call comes from, and what a failed call lacks."""

from pathlib import Path
from typing import Any

import pytest
from tests.importers.sources import (
    assert_odd_values_are_imported,
    import_one,
    messages_in,
    only_call,
    opened,
    said_in,
    stream_of,
    tools_of_child_and_parent,
    write_lines,
)

from tooltrail.importers import copilot_cli
from tooltrail.importers.events import Line, Message

NUMBERS = iter(range(1_000_000))


def event(kind: str, data: Any, **more: Any) -> dict[str, Any]:
    n = next(NUMBERS)
    at = f"2026-06-23T04:39:{n % 60:02}.000Z"
    return {"type": kind, "data": data, "id": f"e{n}", "timestamp": at, "parentId": None, **more}


CONTEXT = {"cwd": "/work", "branch": "main", "headCommit": "abc", "repository": "a/b"}
START = event(
    "session.start", {"sessionId": "5e55", "copilotVersion": "1.0.64", "context": CONTEXT}
)
REQUEST = {"toolCallId": "c1", "name": "edit", "arguments": {"path": "a"}, "type": "function"}
ASKED: dict[str, Any] = {
    "messageId": "m1",
    "model": "gpt-9",
    "content": "I edit.",
    "reasoningText": "look first",
    "reasoningOpaque": "sig",
    "outputTokens": 401,
    "toolRequests": [REQUEST],
}
BEGUN = {"toolCallId": "c1", "toolName": "edit", "arguments": {"path": "a"}}
TELEMETRY = {"metrics": {"exit_code": 1}}
DONE: dict[str, Any] = {
    "toolCallId": "c1",
    "success": True,
    "result": {"content": "File a updated", "detailedContent": "\n-a\n+b\n"},
    "toolTelemetry": TELEMETRY,
}
FAILED: dict[str, Any] = {
    "toolCallId": "c1",
    "success": False,
    "error": {"message": "Path does not exist", "code": "failure"},
}


def imported_call(folder: Path, *ends: dict[str, Any]) -> Any:
    lines = [START, event("assistant.message", ASKED), event("tool.execution_start", BEGUN), *ends]
    import_one(folder, write_lines(folder / "events.jsonl", lines))
    return only_call(folder)


def test_a_call_has_all_three_surfaces(tmp_path: Path) -> None:
    call = imported_call(tmp_path, event("tool.execution_complete", DONE))
    with opened(tmp_path) as reader:
        assert stream_of(reader, call, "content") == b"\n-a\n+b\n"
        (message,) = messages_in(reader)
        (session,) = reader.sessions()
    assert call.arguments == b'{"path":"a"}'
    assert call.receipt.text == "File a updated"
    assert (call.summary.state, call.not_recorded) == ("success", ())
    assert call.message_id == message.id
    for part in (b'"model":"gpt-9"', b'"outputTokens":401', b'"look first"', b'"sig"'):
        assert part in (message.document or b"")
    assert session.agent == "copilot-cli"
    assert '"git_branch":"main"' in (session.environment or "")


def test_what_the_model_saw_of_a_failure_is_not_recorded(tmp_path: Path) -> None:
    call = imported_call(tmp_path, event("tool.execution_complete", FAILED))
    assert (call.summary.state, call.not_recorded) == ("error", ("receipt",))
    assert '"message":"Path does not exist"' in call.canonical_json
    with opened(tmp_path) as reader:
        assert b'"code":"failure"' in stream_of(reader, call, "structured")


@pytest.mark.parametrize("says", ["permission", "error"])
def test_a_call_that_was_refused_is_denied(tmp_path: Path, says: str) -> None:
    refused = {"toolCallId": "c1", "result": {"kind": "denied-interactively-by-user"}}
    error = {"message": "no", "code": "denied" if says == "error" else "failure"}
    asked = [event("permission.completed", refused)] if says == "permission" else []
    ended = event("tool.execution_complete", {**FAILED, "error": error})
    call = imported_call(tmp_path, *asked, ended)
    assert (call.summary.state, call.summary.error_kind) == ("denied", "permission_denied")


def test_an_output_that_only_the_model_saw_is_not_a_complete_output(tmp_path: Path) -> None:
    done = {**DONE, "result": {"content": "seen"}}
    call = imported_call(tmp_path, event("tool.execution_complete", done))
    assert call.not_recorded == ("output", "canonical")
    assert call.receipt.text == "seen"


def test_a_sub_agent_is_a_session_of_its_own(tmp_path: Path) -> None:
    inner = {**BEGUN, "toolCallId": "c2", "toolName": "view"}
    lines = [
        START,
        event("assistant.message", ASKED),
        event("tool.execution_start", BEGUN),
        event("tool.execution_start", {"toolCallId": "c3"}),  # without a name
        event("tool.execution_start", inner, agentId="c1"),
        event("tool.execution_complete", {**DONE, "toolCallId": "c2"}, agentId="c1"),
        event("tool.execution_complete", DONE),
    ]
    counts = import_one(tmp_path, write_lines(tmp_path / "events.jsonl", lines)).counts
    assert (counts["calls"], counts["results"]) == (2, 2)
    assert not [name for name in counts if name.startswith("unknown")]
    assert tools_of_child_and_parent(tmp_path) == ("view", "edit")


def test_a_message_is_what_the_model_was_sent(tmp_path: Path) -> None:
    sent = event("user.message", {"content": "go", "transformedContent": "<now/>go"})
    (message,) = copilot_cli.Reader(tmp_path / "events.jsonl").read(Line(0, b"", sent))
    assert isinstance(message, Message)
    assert (message.extras, "go" in message.content) == ({"content": "go"}, False)
    import_one(tmp_path, write_lines(tmp_path / "events.jsonl", [START, sent]))
    assert said_in(tmp_path) == [("user", "<now/>go")]


@pytest.mark.parametrize(
    ("kind", "sent"),
    [("user.message", ""), ("user.message", [{"text": "x"}]), ("assistant.message", "other")],
)
def test_any_other_text_that_was_sent_is_kept_beside_the_message(
    tmp_path: Path, kind: str, sent: Any
) -> None:
    line = event(kind, {"content": "go", "transformedContent": sent})
    (message,) = copilot_cli.Reader(tmp_path / "events.jsonl").read(Line(0, b"", line))
    assert isinstance(message, Message)
    assert message.extras == {"transformedContent": sent}
    import_one(tmp_path, write_lines(tmp_path / "events.jsonl", [START, line]))
    assert said_in(tmp_path) == [(kind.removesuffix(".message"), "go")]


def test_odd_values_are_imported(tmp_path: Path) -> None:
    lines = [
        START,
        event("assistant.message", ASKED),
        event("user.message", {"content": "go", "transformedContent": "<now/>go"}),
        event("tool.execution_start", BEGUN),
        event("tool.execution_complete", DONE, agentId="c1"),
        event("tool.execution_complete", FAILED),
        event("permission.completed", {"toolCallId": "c1", "result": {"kind": "approved"}}),
        event("telepathy.begin", {}),
    ]
    assert_odd_values_are_imported(tmp_path, lines)
