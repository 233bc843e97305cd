"""Codex: calls, the ends of commands, and both spellings of its lines."""

import json
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
    output_of,
    receipt_of,
    said_in,
    stream_of,
    write_lines,
)

from tooltrail.importers import codex, events
from tooltrail.importers.events import Line
from tooltrail.records import Message
from tooltrail.transcripts import conversation_of, load_transcript

META = {
    "id": "019d",
    "timestamp": "2026-04-11T23:00:00Z",
    "cwd": "/work",
    "cli_version": "0.140.0",
    "git": {"branch": "main", "commit_hash": "abc"},
}
CALL = {
    "type": "function_call",
    "name": "shell_command",
    "arguments": '{"command": "make"}',
    "call_id": "c1",
}
END = {
    "type": "exec_command_end",
    "call_id": "c1",
    "command": ["/bin/sh", "-c", "make"],
    "cwd": "/work",
    "stdout": "",
    "stderr": "",
    "aggregated_output": "built\n",
    "exit_code": 2,
    "duration": {"secs": 1, "nanos": 500_000_000},
    "status": "failed",
}
OUTPUT = {
    "type": "function_call_output",
    "call_id": "c1",
    "output": "Exit code: 2\nWall time: 1 seconds\nOutput:\nbuilt\n",
}

USAGE = {"total_token_usage": {"output_tokens": 8}, "last_token_usage": {"output_tokens": 3}}


def wrapped(kind: str, payload: dict[str, Any]) -> dict[str, Any]:
    return {"timestamp": "2026-04-11T23:00:01Z", "type": kind, "payload": payload}


def test_a_command_has_all_three_surfaces(tmp_path: Path) -> None:
    lines = [
        wrapped("session_meta", META),
        wrapped("turn_context", {"model": "gpt-9"}),
        wrapped("response_item", CALL),
        wrapped("event_msg", END),
        wrapped("response_item", OUTPUT),
    ]
    import_one(tmp_path, write_lines(tmp_path / "a.jsonl", lines))
    with opened(tmp_path) as reader:
        (call,) = calls_in(reader)
        (session,) = reader.sessions()
        (message,) = messages_in(reader)
        assert stream_of(reader, call, "combined") == b"built\n"
    summary = call.summary
    assert (summary.state, summary.exit_status, summary.duration_ms) == ("success", 2, 1500)
    assert call.arguments == b'{"command": "make"}'
    assert receipt_of(call) == OUTPUT["output"]
    assert session.agent == "codex"
    assert b'"model":"gpt-9"' in (message.document or b"")


def test_members_without_a_place_are_kept_beside_the_call_and_the_message(tmp_path: Path) -> None:
    end = {**END, "formatted_output": "built", "parsed_cmd": [{"cmd": "make"}], "exit_code": -9}
    image = {"type": "input_image", "image_url": "data:image/png;base64,AA=="}
    shown = [{"type": "input_text", "text": "built"}, image]
    lines = [
        wrapped("session_meta", META),
        wrapped("response_item", {**CALL, "id": "fc_1", "status": "completed"}),
        wrapped("event_msg", end),
        wrapped("response_item", {**OUTPUT, "output": shown, "new": 1}),
    ]
    call = only_call(tmp_path, lines)
    event = {"parsed_cmd": [{"cmd": "make"}], "exit_code": -9, "status": "failed"}
    assert json.loads(call.extras or "") == {"new": 1, "output": [image], "event": event}
    (message,) = codex.Reader(tmp_path / "a.jsonl").read(Line(0, b"", lines[1]))
    assert isinstance(message, events.Message)
    assert message.extras == {"id": "fc_1", "status": "completed"}


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("Exit code: 2\nWall time: 1 seconds\nOutput:\nbuilt\n", "exit 2"),
        ("Chunk ID: a6\nWall time: 1.0 seconds\nProcess exited with code 2\nOutput:\n", "exit 2"),
        ('{"output":"x\\n","metadata":{"exit_code":2,"duration_seconds":0.1}}', "exit 2"),
        ("make: Exit code: 2\nWall time: 1 seconds\n", "ok"),
    ],
)
def test_an_output_that_only_the_model_saw_is_not_complete_but_says_the_exit_status(
    tmp_path: Path, text: str, outcome: str
) -> None:
    lines = [
        wrapped("session_meta", META),
        *(wrapped("response_item", one) for one in (CALL, {**OUTPUT, "output": text})),
    ]
    call = only_call(tmp_path, lines)
    assert call.not_recorded == ("output", "canonical")
    assert (call.summary.outcome, call.summary.output_size) == (outcome, None)
    assert call.receipt is not None


def test_lines_of_2025_have_no_wrapper(tmp_path: Path) -> None:
    head: dict[str, Any] = {
        "id": "s1",
        "timestamp": "2025-09-01T10:00:00Z",
        "instructions": None,
        "git": {},
    }
    lines = [head, {"record_type": "state"}, CALL, OUTPUT]
    imported = import_one(tmp_path, write_lines(tmp_path / "a.jsonl", lines))
    assert imported.format == "codex"
    assert (imported.counts["calls"], imported.counts["results"]) == (1, 1)


@pytest.mark.parametrize(
    ("end", "state"),
    [
        (
            {"type": "mcp_tool_call_end", "result": {"Ok": {"content": [], "isError": False}}},
            "success",
        ),
        (
            {"type": "mcp_tool_call_end", "result": {"Ok": {"content": [], "isError": True}}},
            "error",
        ),
        ({"type": "mcp_tool_call_end", "result": {"Err": "gone"}}, "error"),
        ({"type": "patch_apply_end", "stdout": "Done", "stderr": "", "success": True}, "success"),
        ({"type": "patch_apply_end", "stdout": "", "stderr": "no", "success": False}, "error"),
    ],
)
def test_the_end_of_another_tool_says_whether_it_failed(
    tmp_path: Path, end: dict[str, Any], state: str
) -> None:
    call = {**CALL, "name": "apply_patch"}
    lines = [
        wrapped("session_meta", META),
        wrapped("response_item", call),
        wrapped("event_msg", {**end, "call_id": "c1"}),
        wrapped("response_item", OUTPUT),
    ]
    found = only_call(tmp_path, lines)
    assert found.summary.state == state
    assert found.not_recorded == ()


def test_an_end_that_comes_late_is_kept_and_given_to_no_other_call(tmp_path: Path) -> None:
    lines = [
        wrapped("session_meta", META),
        *(wrapped("response_item", one) for one in (CALL, OUTPUT)),
        wrapped("event_msg", END),
        *(wrapped("response_item", one) for one in (CALL, OUTPUT)),
    ]
    counts = import_one(tmp_path, write_lines(tmp_path / "a.jsonl", lines)).counts
    assert (counts["calls"], counts["results"]) == (2, 2)
    assert counts["unknown: late event exec_command_end"] == 1
    with opened(tmp_path) as reader:
        assert [one.not_recorded for one in calls_in(reader)] == [("output", "canonical")] * 2


def test_open_calls_with_the_same_id_get_their_ends_in_order(tmp_path: Path) -> None:
    lines = [
        wrapped("session_meta", META),
        *[wrapped("response_item", CALL)] * 2,
        *(wrapped("event_msg", {**END, "aggregated_output": one}) for one in ("first", "second")),
        *[wrapped("response_item", OUTPUT)] * 2,
    ]
    import_one(tmp_path, write_lines(tmp_path / "a.jsonl", lines))
    with opened(tmp_path) as reader:
        found = {stream_of(reader, one, "combined") for one in calls_in(reader)}
        assert found == {b"first", b"second"}
        first, _ = calls_in(reader)
        assert stream_of(reader, first, "combined") == b"first"


@pytest.mark.parametrize(
    ("before", "produced"),
    [("a" * 4999, 4999 + 15743 + 5000), ("the log said ", None)],  # a quotation is no cut
)
def test_an_output_that_codex_cut_is_marked_as_lost(
    tmp_path: Path, before: str, produced: int | None
) -> None:
    text = f"{before}…15743 chars truncated…{'b' * 5000}"
    lines = [
        wrapped("session_meta", META),
        wrapped("response_item", CALL),
        wrapped("event_msg", {**END, "aggregated_output": text}),
        wrapped("response_item", OUTPUT),
    ]
    call = only_call(tmp_path, lines)
    assert output_of(tmp_path, call, "combined") == text.encode()
    assert call.summary.output_size == (produced or len(text.encode()))


def test_the_tokens_of_an_answer_are_counted_once_and_shown_to_no_model(tmp_path: Path) -> None:
    said = {"type": "message", "role": "assistant", "content": "built"}
    lines = [
        wrapped("session_meta", META),
        wrapped("turn_context", {"model": "gpt-9"}),
        wrapped("response_item", said),
    ]
    import_one(tmp_path, write_lines(tmp_path / "a.jsonl", lines))
    count = wrapped("event_msg", {"type": "token_count", "info": USAGE})
    nothing = wrapped("event_msg", {"type": "token_count", "info": None})
    import_one(tmp_path, write_lines(tmp_path / "a.jsonl", [*lines, count, nothing, count]))
    with opened(tmp_path) as reader:
        answer, counted = messages_in(reader)
        shown = conversation_of(load_transcript(reader, "@last")).messages
    assert (answer.text, counted.text) == ("built", "")
    origin = Message.from_json(counted.document or b"").origin
    assert origin is not None
    assert (origin.model, origin.extras) == ("gpt-9", {"usage": {"output_tokens": 3}})
    assert [one.role for one in shown] == ["assistant"]


def test_odd_values_cost_nothing_else(tmp_path: Path) -> None:
    source = {"subagent": {"thread_spawn": {"parent_thread_id": "019c"}}}
    metas: list[dict[str, Any]] = [{"source": source}, {"forked_from_id": 5, "cwd": []}]
    for number, meta in enumerate(metas):
        folder = tmp_path / str(number)
        folder.mkdir()
        mcp_end = {"type": "mcp_tool_call_end", "call_id": "c1", "result": {"Ok": {"x": 1}}}
        lines = [
            wrapped("session_meta", {**META, **meta}),
            wrapped("turn_context", {"model": "gpt-9"}),
            wrapped("response_item", {"type": "reasoning", "summary": [{"text": "so"}]}),
            *(wrapped("event_msg", one) for one in (END, mcp_end)),
            wrapped("response_item", CALL),
            wrapped("event_msg", {"type": "token_count", "info": USAGE}),
            wrapped("event_msg", {**END, "duration": {"secs": 10**30, "nanos": True}}),
            wrapped("response_item", OUTPUT),
            wrapped("response_item", {**OUTPUT, "output": [{"type": "text", "text": "x"}]}),
        ]
        assert_odd_values_are_imported(folder, lines)


@pytest.mark.parametrize(
    "given", [{"base_instructions": {"text": "Be brief."}}, {"instructions": "Be brief."}]
)
def test_the_instructions_of_a_session_are_a_system_message(
    tmp_path: Path, given: dict[str, Any]
) -> None:
    lines = [wrapped("session_meta", {**META, **given}), wrapped("session_meta", META)]
    import_one(tmp_path, write_lines(tmp_path / "a.jsonl", lines))
    assert said_in(tmp_path) == [("system", "Be brief.")]
