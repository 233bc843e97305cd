"""Logs of Chat Completions: what the model saw, from files that repeat each other."""

from pathlib import Path
from typing import Any

from tests.importers.sources import (
    assert_intact,
    assert_odd_values_are_imported,
    calls_in,
    import_one,
    messages_in,
    opened,
    write_lines,
)

ASK: list[dict[str, Any]] = [
    {"role": "system", "content": "be brief"},
    {"role": "user", "content": [{"type": "text", "text": "build"}]},
]
CALL: dict[str, Any] = {
    "role": "assistant",
    "content": None,
    "reasoning_content": "hm",
    "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "run", "arguments": '{"a": 1}'}},
        {"id": "c2", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}},
    ],
}
RESULTS: list[dict[str, Any]] = [
    {"role": "tool", "tool_call_id": "c1", "name": "run", "content": "built\n"},
    {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "1"}]},
]
LOG: dict[str, Any] = {
    "messages": ASK,
    "timestamp": 1757015025.5,
    "response": {
        "id": "chatcmpl-1",
        "model": "gpt-9",
        "choices": [{"finish_reason": "tool_calls", "message": CALL}],
        "usage": {"total_tokens": 12},
    },
}


def test_only_what_the_model_saw_is_recorded(tmp_path: Path) -> None:
    imported = import_one(tmp_path, write_lines(tmp_path / "a.json", [[*ASK, CALL, *RESULTS]]))
    assert imported.format == "openai-chat"
    with opened(tmp_path) as reader:
        calls = calls_in(reader)
        roles = [one.role for one in messages_in(reader)]
    assert roles == ["system", "user", "assistant"]
    assert [call.arguments for call in calls] == [b'{"a": 1}', b"SELECT 1"]
    assert [call.receipt.text for call in calls if call.receipt] == ["built\n", "1"]
    assert {call.not_recorded for call in calls} == {("output", "canonical")}


def test_the_log_of_a_later_request_adds_only_what_is_new(tmp_path: Path) -> None:
    later = {"messages": [*ASK, CALL, *RESULTS], "timestamp": 1757015029}
    import_one(tmp_path, write_lines(tmp_path / "1.json", [LOG]))
    import_one(tmp_path, write_lines(tmp_path / "2.json", [later]))
    import_one(tmp_path, write_lines(tmp_path / "all.jsonl", [LOG, later, LOG]))
    with opened(tmp_path) as reader:
        (session,) = reader.sessions()
        calls, messages = calls_in(reader), messages_in(reader)
    assert [call.summary.call_id for call in calls] == ["c1", "c2"]
    assert [call.summary.state for call in calls] == ["success", "success"]
    assert len(messages) == 3
    assert b'"model":"gpt-9"' in (messages[2].document or b"")
    assert b'"usage":{"total_tokens":12}' in (messages[2].document or b"")
    assert session.opened_at.isoformat() == "2025-09-04T19:43:45.500000+00:00"
    assert_intact(tmp_path, is_complete=False)


def test_runs_that_begin_alike_are_sessions_of_their_own(tmp_path: Path) -> None:
    runs = [{"task_id": 4, "trial": n, "traj": [*ASK, CALL, *RESULTS]} for n in range(3)]
    import_one(tmp_path, write_lines(tmp_path / "a.json", [runs]))
    with opened(tmp_path) as reader:
        assert len(reader.sessions()) == 3
        assert reader.count_invocations() == 6


def test_only_answers_have_an_origin(tmp_path: Path) -> None:
    said = [(role, text) for role in ("user", "assistant") for text in ("", "go")]
    log = [{"role": role, "content": text} for role, text in said]
    import_one(tmp_path, write_lines(tmp_path / "a.json", [log]))
    with opened(tmp_path) as reader:
        found = [(one.role, b'"origin"' in (one.document or b"")) for one in messages_in(reader)]
    assert found == [(role, role == "assistant") for role, _ in said]


def test_odd_values_are_imported(tmp_path: Path) -> None:
    log = {**LOG, "messages": [*ASK, CALL, *RESULTS]}
    assert_odd_values_are_imported(tmp_path, [log])
