"""Inspect: messages say what the model saw, events what the tools returned."""

import json
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import pytest
from tests.importers.sources import (
    assert_odd_values_are_imported,
    import_one,
    messages_in,
    only_call,
    opened,
    receipt_of,
    stream_of,
    write_lines,
)

from tooltrail.store import InvocationDetail

ASSISTANT: dict[str, Any] = {
    "id": "m2",
    "role": "assistant",
    "content": [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "I look"}],
    "tool_calls": [{"id": "c1", "function": "bash", "arguments": {"cmd": "ls"}}],
}
TOOL = {"id": "m3", "role": "tool", "tool_call_id": "c1", "function": "bash", "content": "a\n"}
TOOL_EVENT: dict[str, Any] = {
    "event": "tool",
    "id": "c1",
    "function": "bash",
    "arguments": {"cmd": "ls"},
    "result": "attachment://d1",
    "timestamp": "2025-05-12T20:27:39.5-04:00",
    "completed": "2025-05-12T20:27:41-04:00",
}
MODEL_EVENT: dict[str, Any] = {
    "event": "model",
    "timestamp": "2025-05-12T20:27:38-04:00",
    "output": {
        "model": "gpt-9",
        "choices": [{"message": ASSISTANT, "stop_reason": "tool_calls"}],
        "usage": {"total_tokens": 12},
    },
}


def log(message: Any = TOOL, *events: Any, **sample: Any) -> dict[str, Any]:
    """The log of one sample with one call."""
    return {
        "version": 2,
        "eval": {
            "eval_id": "e1",
            "task": "ctf",
            "task_id": "t1",
            "created": "2025-05-12T20:27:36-04:00",
            "model": "openai/gpt-9",
            "revision": {"type": "git", "origin": "git@x", "commit": "abc"},
            "packages": {"inspect_ai": "0.3.95"},
        },
        "samples": [
            {
                "id": 7,
                "epoch": 1,
                "messages": [{"id": "m1", "role": "user", "content": "go"}, ASSISTANT, message],
                "events": [MODEL_EVENT, *events],
                "attachments": {"d1": "a\n"},
                **sample,
            }
        ],
    }


def imported_call(folder: Path, value: Any) -> InvocationDetail:
    assert import_one(folder, write_lines(folder / "a.json", [value])).format == "inspect"
    return only_call(folder)


def test_a_call_has_all_three_surfaces(tmp_path: Path) -> None:
    call = imported_call(tmp_path, log(TOOL, TOOL_EVENT))
    with opened(tmp_path) as reader:
        assert stream_of(reader, call, "content") == b"a\n"
        (session,) = reader.sessions()
        messages = messages_in(reader)
    assert (receipt_of(call), call.not_recorded) == ("a\n", ())
    assert (call.arguments, call.summary.duration_ms) == (b'{"cmd":"ls"}', 1500)
    assert (session.agent, session.title) == ("inspect", "ctf 7 (1)")
    assert '"agent_version":"0.3.95","git_commit":"abc"' in session.environment
    assert [one.role for one in messages] == ["user", "assistant"]
    document = messages[1].document or b""
    assert b'"usage":{"total_tokens":12}' in document
    assert b'"finish_reason":"tool_calls","model":"gpt-9"' in document


def test_without_an_event_there_is_only_what_the_model_saw(tmp_path: Path) -> None:
    call = imported_call(tmp_path, log())
    assert call.not_recorded == ("output", "canonical")
    assert call.receipt is not None


def test_an_output_that_inspect_cut_is_not_a_complete_output(tmp_path: Path) -> None:
    call = imported_call(tmp_path, log(TOOL, {**TOOL_EVENT, "truncated": [90, 20]}))
    assert call.not_recorded == ("output", "canonical")


def test_a_call_that_no_message_speaks_of_has_no_receipt(tmp_path: Path) -> None:
    call = imported_call(tmp_path, log(TOOL, TOOL_EVENT, messages=[]))
    assert (call.not_recorded, call.summary.tool_name) == (("receipt",), "bash")


@pytest.mark.parametrize(
    ("error", "state", "kind"),
    [
        ("timeout", "error", "tool_timed_out"),
        ("parsing", "error", "invalid_tool_input"),
        ("approval", "denied", "permission_denied"),
        ("unknown", "error", "tool_execution_failed"),
    ],
)
def test_a_failure_has_its_kind(tmp_path: Path, error: str, state: str, kind: str) -> None:
    failure = {"type": error, "message": "it failed"}
    failed = {**TOOL, "content": "", "error": failure}
    call = imported_call(tmp_path, log(failed, {**TOOL_EVENT, "result": "", "error": failure}))
    assert (call.summary.state, call.summary.error_kind) == (state, kind)
    assert receipt_of(call) == "it failed"


def test_a_failure_is_shown_as_it_was_sent(tmp_path: Path) -> None:
    failed = {**TOOL, "content": "", "error": {"type": "timeout", "message": "it failed"}}
    sent = {"role": "tool", "tool_call_id": "c1", "content": "Error: it failed"}
    later = {"event": "model", "call": {"request": {"messages": [sent]}}}
    call = imported_call(tmp_path, log(failed, later))
    assert receipt_of(call) == "Error: it failed"


def test_a_call_whose_result_was_removed_has_its_output(tmp_path: Path) -> None:
    call = imported_call(tmp_path, log({"role": "user", "content": "next"}, TOOL_EVENT))
    assert call.not_recorded == ("receipt",)


def test_logs_of_2024_hold_the_events_in_a_transcript(tmp_path: Path) -> None:
    event = {**TOOL_EVENT, "result": "tc://d1"}
    old = {"events": None, "transcript": {"events": [event], "content": {"d1": "a\n"}}}
    call = imported_call(tmp_path, log(TOOL, **old))
    with opened(tmp_path) as reader:
        assert stream_of(reader, call, "content") == b"a\n"


def archived(path: Path, method: int = ZIP_DEFLATED) -> Path:
    """An `.eval` archive, in which the call's sample is the second file."""
    whole = log(TOOL, TOOL_EVENT)
    files: dict[str, Any] = {
        "_journal/start.json": {"version": 2, "eval": whole["eval"], "plan": {}},
        "samples/7_epoch_1.json": whole["samples"][0],
        "summaries.json": [{"id": 7, "epoch": 1}],
    }
    with ZipFile(path, "w", method) as archive:
        for name, value in files.items():
            # Without the time of day, which would make each archive another one.
            archive.writestr(ZipInfo(name), json.dumps(value), method)
    return path


def test_an_archive_is_the_same_session_as_its_document(tmp_path: Path) -> None:
    counts = import_one(tmp_path, archived(tmp_path / "a.eval")).counts
    assert (counts["calls"], counts["results"], counts["other_lines"]) == (1, 1, 1)
    again = import_one(tmp_path, archived(tmp_path / "a.eval")).counts
    assert (again["new"], again["known"]) == (0, counts["new"])
    call = imported_call(tmp_path, log(TOOL, TOOL_EVENT))
    assert call.source is not None
    assert call.source.file.endswith("a.eval")
    data = (tmp_path / "a.eval").read_bytes()
    assert data[call.source.offset :].startswith(b"PK\x03\x04")


def test_a_damaged_file_in_an_archive_costs_only_itself(tmp_path: Path) -> None:
    path = archived(tmp_path / "a.eval", ZIP_STORED)
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"epoch": 1, "messages"', b'"epoch": 2, "messages"'))
    imported = import_one(tmp_path, path)
    (damaged,) = imported.damaged
    assert (damaged.number, damaged.damage) == (
        2,
        "samples/7_epoch_1.json in the archive cannot be read, and all calls in it are lost",
    )
    assert imported.counts["other_lines"] == 1


def test_an_archive_that_is_still_written_is_imported_later(tmp_path: Path) -> None:
    path = archived(tmp_path / "a.eval", ZIP_STORED)
    data = path.read_bytes()
    path.write_bytes(data[:-30])
    (damaged,) = import_one(tmp_path, path).damaged
    assert (damaged.damage, damaged.is_cut) == ("the archive cannot be read", True)
    path.write_bytes(data)
    imported = import_one(tmp_path, path)
    assert (imported.damaged, imported.counts["calls"]) == ((), 1)


def test_odd_values_are_imported(tmp_path: Path) -> None:
    picture = {**TOOL, "content": [{"type": "image", "image": "data:"}], "error": {"type": "limit"}}
    logs = [log(TOOL, TOOL_EVENT), log(picture)]
    for one in logs:
        del one["eval"]["packages"]  # another agent would be another fact of the same session
    assert_odd_values_are_imported(tmp_path, logs)
