"""Claude Code: where each surface of a call comes from, and what is said to be missing."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.importers.sources import (
    assert_intact,
    assert_odd_values_are_imported,
    calls_in,
    claude_call,
    claude_line,
    claude_result,
    import_one,
    messages_in,
    only_call,
    opened,
    output_of,
    receipt_of,
    stream_of,
    tools_of_child_and_parent,
    write_lines,
)

from tooltrail.importers import claude_code
from tooltrail.importers.events import Line, Message, Result

BASH = {"stdout": "out\n", "stderr": "err\n", "interrupted": False, "isImage": False}


def test_a_command_has_all_three_surfaces(tmp_path: Path) -> None:
    lines = [
        claude_line("user", "please build", 1),
        claude_call(2, "toolu_1", "Bash", {"command": "make", "description": "Build"}),
        claude_result(3, "toolu_1", "out\nerr", BASH, is_error=False),
    ]
    counts = import_one(tmp_path, write_lines(tmp_path / "a.jsonl", lines)).counts
    assert (counts["messages"], counts["calls"], counts["results"]) == (2, 1, 1)
    with opened(tmp_path) as reader:
        (call,) = calls_in(reader)
        assert stream_of(reader, call, "stdout") == b"out\n"
        assert stream_of(reader, call, "stderr") == b"err\n"
        (session,) = reader.sessions()
    assert call.arguments == b'{"command":"make","description":"Build"}'
    assert call.receipt is not None
    assert (call.receipt.text, call.receipt.renderer_name) == ("out\nerr", "seen")
    assert '"preview":"make"' in (call.canonical_json or "")
    assert call.summary.exit_status is None  # Claude Code does not say
    assert call.not_recorded == ()
    assert call.source is not None
    assert (call.source.format, call.source.file) == ("claude-code", str(tmp_path / "a.jsonl"))
    assert session.agent == "claude-code"
    assert call.message_id is not None


def test_a_command_that_failed_ran(tmp_path: Path) -> None:
    lines = [
        claude_call(1, "t", "Bash", {"command": "false"}),
        claude_result(
            2, "t", "Exit code 3\nno such thing", "Error: Exit code 3\nno such thing", is_error=True
        ),
    ]
    call = only_call(tmp_path, lines)
    assert output_of(tmp_path, call, "combined") == b"no such thing"
    assert (call.summary.state, call.summary.exit_status) == ("success", 3)


@pytest.mark.parametrize(
    ("returned", "streams"),
    [
        ("plain", {"combined": b"plain"}),
        ([{"type": "text", "text": "one"}, {"type": "image"}], {"combined": b"one"}),
        ({"stdout": "x"}, {"stdout": b"x", "stderr": b""}),
        ({"stderr": ["x"], "stdout": None}, {"stdout": b"", "stderr": b'["x"]'}),
    ],
)
def test_the_output_of_a_command_in_another_form_is_kept(
    tmp_path: Path, returned: Any, streams: dict[str, bytes]
) -> None:
    lines = [
        claude_call(1, "t", "Bash", {"command": "x"}),
        claude_result(2, "t", "shown", returned, is_error=False),
    ]
    call = only_call(tmp_path, lines)
    assert call.summary.state == "success"
    for role, data in streams.items():
        assert output_of(tmp_path, call, role) == data
    if isinstance(returned, list):
        assert json.loads(call.extras or "") == {"toolUseResult": returned}
    assert_intact(tmp_path)


def test_what_a_command_returned_without_output_is_kept_beside_it(tmp_path: Path) -> None:
    lines = [
        claude_call(1, "t", "Bash", {"command": "x"}),
        claude_result(2, "t", "shown", {"output": "x"}, is_error=False),
    ]
    call = only_call(tmp_path, lines)
    assert (call.streams, call.not_recorded) == ((), ("output", "canonical"))
    assert json.loads(call.extras or "") == {"toolUseResult": {"output": "x"}}
    assert_intact(tmp_path)


@pytest.mark.parametrize(
    ("text", "state", "kind"),
    [
        ("The user doesn't want to proceed with this tool use.", "denied", "permission_denied"),
        ("<tool_use_error>Sibling tool call errored</tool_use_error>", "cancelled", "cancelled"),
        ("File has not been read yet.", "error", "tool_execution_failed"),
    ],
)
def test_a_failure_has_its_kind(tmp_path: Path, text: str, state: str, kind: str) -> None:
    lines = [
        claude_call(1, "t", "Edit", {"file_path": "a"}),
        claude_result(2, "t", text, f"Error: {text}", is_error=True),
    ]
    import_one(tmp_path, write_lines(tmp_path / "a.jsonl", lines))
    with opened(tmp_path) as reader:
        (call,) = calls_in(reader)
        assert stream_of(reader, call, "structured").decode() == f'"Error: {text}"'
    assert (call.summary.state, call.summary.error_kind) == (state, kind)
    assert receipt_of(call) == text


def test_what_any_other_tool_returned_is_kept_as_it_is(tmp_path: Path) -> None:
    returned = {"type": "text", "file": {"filePath": "/a", "content": "x\u2028y", "n": 1.5}}
    lines = [
        claude_call(1, "t", "Read", {"file_path": "/a"}),
        claude_result(2, "t", "     1\tx", returned),
    ]
    import_one(tmp_path, write_lines(tmp_path / "a.jsonl", lines))
    with opened(tmp_path) as reader:
        (call,) = calls_in(reader)
        structured = stream_of(reader, call, "structured").decode()
    expected = '{"file":{"content":"x\u2028y","filePath":"/a","n":1.5},"type":"text"}'
    assert structured == expected


SPILLED = "<persisted-output>\nOutput too large (9KB). Full output saved to: {}\n\nPreview"


def test_a_long_output_is_read_from_the_file_beside_the_session(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "tool-results"
    folder.mkdir(parents=True)
    (folder / "b1.txt").write_bytes(b"x" * 9000 + b"\xff")
    receipt = SPILLED.format("/home/elsewhere/a/tool-results/b1.txt")
    lines = [
        claude_call(1, "t", "Bash", {"command": "make"}),
        claude_result(2, "t", receipt, {**BASH, "stdout": "x" * 30}, is_error=False),
    ]
    call = only_call(tmp_path, lines)
    assert output_of(tmp_path, call, "stdout") == b"x" * 9000 + b"\xff"
    assert call.summary.lost_size == 0


def test_a_long_output_whose_file_is_gone_is_marked_as_lost(tmp_path: Path) -> None:
    receipt = SPILLED.format("/etc/passwd")  # a transcript cannot name any file of the machine
    spill = {"persistedOutputPath": "/etc/passwd", "persistedOutputSize": 9000}
    returned = {**BASH, "stdout": "x" * 30, **spill}
    lines = [
        claude_call(1, "t", "Bash", {"command": "make"}),
        claude_result(2, "t", receipt, returned, is_error=False),
    ]
    call = only_call(tmp_path, lines)
    assert output_of(tmp_path, call, "stdout") == b"x" * 30
    assert call.summary.lost_size == 9000 - 30
    assert [one.stage for one in call.omissions] == ["capture"]


def test_a_sub_agent_is_a_session_of_its_own(tmp_path: Path) -> None:
    inner = claude_call(5, "inner", "Bash", {"command": "ls"})
    lines = [
        claude_call(1, "outer", "Task", {"prompt": "look"}),
        {
            **claude_line("progress", None, 2),
            "parentToolUseID": "outer",
            "data": {"type": "agent_progress", "agentId": "a1", "message": inner},
        },
    ]
    import_one(tmp_path, write_lines(tmp_path / "a.jsonl", lines))
    assert tools_of_child_and_parent(tmp_path) == ("Bash", "Task")


def test_unknown_lines_and_blocks_are_kept_verbatim(tmp_path: Path) -> None:
    lines = [
        claude_line("assistant", [{"type": "hologram", "x": 1}], 1, novelty=[1]),
        claude_line("assistant", [], 2),
        {"type": "telepathy", "sessionId": "5e55"},
        {"type": "summary", "summary": "x", "leafUuid": "y"},
    ]
    path = write_lines(tmp_path / "a.jsonl", lines)
    counts = import_one(tmp_path, path).counts
    assert (counts["unknown: telepathy"], counts["other_lines"]) == (1, 1)
    assert "unknown: assistant" not in counts
    with opened(tmp_path) as reader:
        (session,) = reader.sessions()
        _, (message, unknown), _ = reader.conversation(session.id, payloads=True)
    assert b'"native":{"type":"hologram","x":1}' in (message.document or b"")
    assert unknown.payload == path.read_bytes().splitlines(keepends=True)[2]
    assert_intact(tmp_path)


def spilled_lines(path: Path, name: str, tool: str = "Bash", returned: Any = None) -> Path:
    """A session with a call whose complete output is in a file."""
    lines = [
        claude_call(1, "t", tool, {"command": "make"}),
        claude_result(2, "t", SPILLED.format(name), returned, is_error=False),
    ]
    return write_lines(path, lines)


@pytest.mark.parametrize("name", ["nul\0", "lone\ud800", "pipe", "link", "folder", "..", "x" * 300])
def test_a_long_output_that_is_no_regular_file_is_gone(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "a" / "tool-results"
    (folder / "folder").mkdir(parents=True)
    os.mkfifo(folder / "pipe")
    (tmp_path / "secret").write_text("secret")
    (folder / "link").symlink_to(tmp_path / "secret")
    lines = json.dumps(claude_call(1, "t", "Bash", {"command": "make"})) + "\n"
    lines += json.dumps(claude_result(2, "t", SPILLED.format(f"/a/{name}"), BASH)) + "\n"
    (tmp_path / "a.jsonl").write_text(lines)
    import_one(tmp_path, tmp_path / "a.jsonl")
    call = only_call(tmp_path)
    assert output_of(tmp_path, call, "stdout") == b"out\n"
    assert (call.summary.lost_size or 0) > 0


@pytest.mark.parametrize("link", ["a", "a/tool-results"])
def test_a_link_to_a_folder_elsewhere_is_not_followed(tmp_path: Path, link: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "tool-results").mkdir(parents=True)
    for folder in (elsewhere, elsewhere / "tool-results"):
        (folder / "b1.txt").write_text("secret")
    (tmp_path / link).parent.mkdir(exist_ok=True)
    (tmp_path / link).symlink_to(elsewhere)
    import_one(tmp_path, spilled_lines(tmp_path / "a.jsonl", "b1.txt", returned=BASH))
    call = only_call(tmp_path)
    assert output_of(tmp_path, call, "stdout") == b"out\n"


@pytest.mark.parametrize(("tool", "role"), [("Bash", "combined"), ("mcp__x__y", "content")])
def test_a_long_output_of_a_sub_agent_is_in_the_folder_of_its_session(
    tmp_path: Path, tool: str, role: str
) -> None:
    for name in ("tool-results", "subagents"):
        (tmp_path / "5e55" / name).mkdir(parents=True)
    (tmp_path / "5e55" / "tool-results" / "b1.txt").write_text("long")
    path = tmp_path / "5e55" / "subagents" / "agent-1.jsonl"
    import_one(tmp_path, spilled_lines(path, "b1.txt", tool))
    call = only_call(tmp_path)
    assert output_of(tmp_path, call, role) == b"long"
    assert call.summary.lost_size == 0


@pytest.mark.parametrize(
    ("returned", "lost"),
    [
        (None, True),
        ({"content": "beginning"}, True),
        ({"content": "x" * 9300}, False),  # what the tool returned is complete
    ],
)
@pytest.mark.parametrize("is_named_by_size", [True, False])
def test_a_long_output_of_any_tool_whose_file_is_gone_is_a_loss(
    tmp_path: Path, returned: Any, *, lost: bool, is_named_by_size: bool
) -> None:
    receipt = (
        SPILLED.format("/gone/b1.txt") + " (first 2KB):\nbegin\nning\n...\n</persisted-output>"
    )
    if not is_named_by_size:
        receipt, lost = receipt.replace("(9KB)", ""), True
    lines = [
        claude_call(1, "t", "Grep", {"pattern": "x"}),
        claude_result(2, "t", receipt, returned),
    ]
    import_one(tmp_path, write_lines(tmp_path / "a.jsonl", lines))
    with opened(tmp_path) as reader:
        (call,) = calls_in(reader)
        if lost:
            assert stream_of(reader, call, "content") == b"begin\nning"
    # The receipt says 9KB, which is rounded.
    assert call.summary.lost_size == (int(8.95 * 1024) - 10 if is_named_by_size else 1) * lost


@pytest.mark.parametrize(
    ("marker", "parts", "lost"),
    [
        ("\n\n... [19966 characters truncated] ...\n\n", ("ä" * 50, "b" * 50), 19966 - 40),
        ("\n\n... [19966 characters truncated] ...\n\n", ("quoted", "b" * 50), 0),
        ("\n\n... [442 lines truncated] ...", ("a" * 50, ""), 1),
    ],
)
@pytest.mark.parametrize("has_failed", [True, False])
def test_an_output_that_claude_code_cut_is_marked_as_lost(
    tmp_path: Path, marker: str, parts: tuple[str, str], lost: int, *, has_failed: bool
) -> None:
    text = marker.join(parts)
    returned = f"Error: Exit code 1\n{text}" if has_failed else {**BASH, "stdout": text}
    lines = [
        claude_call(1, "t", "Bash", {"command": "make"}),
        claude_result(2, "t", text, returned, is_error=has_failed),
    ]
    import_one(tmp_path, write_lines(tmp_path / "a.jsonl", lines))
    with opened(tmp_path) as reader:
        (call,) = calls_in(reader)
        stream = stream_of(reader, call, "combined" if has_failed else "stdout")
        assert stream == text.encode()
    assert call.summary.lost_size == lost


def test_only_a_line_with_the_same_id_and_message_is_a_repetition(tmp_path: Path) -> None:
    call = claude_call(1, "t", "Bash", {"command": "make"})
    nameless = [claude_line("user", text, 0) for text in ("one", "two")]
    lines = [
        *({name: one for name, one in line.items() if name != "uuid"} for line in nameless),
        *(call, {**call, "cwd": "/elsewhere"}),
        claude_line("user", "three", 1),  # the id of the call
    ]
    counts = import_one(tmp_path, write_lines(tmp_path / "a.jsonl", lines)).counts
    assert (counts["calls"], counts["messages"], counts["other_lines"]) == (1, 4, 1)
    with opened(tmp_path) as reader:
        texts = {one.text for one in messages_in(reader)}
        assert texts >= {"one", "two", "three"}
        assert len(calls_in(reader)) == 1


@pytest.mark.parametrize(
    ("member", "state", "kind"),
    [
        ({"interrupted": True}, "interrupted", "interrupted"),
        ({"timedOutAfterMs": 120_000}, "error", "tool_timed_out"),
        ({"timedOutAfterMs": 120_000, "backgroundTaskId": "b1"}, "success", None),
    ],
)
def test_a_command_that_was_ended_early_has_a_partial_output(
    tmp_path: Path, member: dict[str, Any], state: str, kind: str | None
) -> None:
    lines = [
        claude_call(1, "t", "Bash", {"command": "make"}),
        claude_result(2, "t", "out", {**BASH, **member}, is_error=False),
    ]
    call = only_call(tmp_path, lines)
    assert output_of(tmp_path, call, "stdout") == b"out\n"
    summary = call.summary
    assert (summary.state, summary.error_kind, summary.exit_status) == (state, kind, None)
    assert ("partial_output" in (call.canonical_json or "")) == (kind is not None)


def test_a_null_member_is_kept_and_an_invalid_duration_is_replaced(tmp_path: Path) -> None:
    line = claude_result(1, "t", "done", {"durationMs": "?", "totalDurationMs": 7})
    reader = claude_code.Reader(tmp_path / "a.jsonl")
    *_, result = reader.read(Line(0, b"", {**line, "nothing": None}))
    *_, message = reader.read(Line(1, b"", claude_line("user", "hi", 2, nothing=None)))
    assert isinstance(result, Result)
    assert isinstance(message, Message)
    assert (result.duration_ms, result.extras, message.extras) == (7, *[{"nothing": None}] * 2)


def test_an_image_that_only_the_model_saw_is_kept(tmp_path: Path) -> None:
    image = {"type": "image", "source": {"type": "base64", "data": "aGk="}}
    content = [{"type": "text", "text": "seen"}, image]
    lines = [claude_call(1, "t", "Read", {}), claude_result(2, "t", content)]
    call = only_call(tmp_path, lines)
    assert (receipt_of(call), json.loads(call.extras or "")) == ("seen", {"content": [image]})


def test_odd_values_cost_nothing_else(tmp_path: Path) -> None:
    message: dict[str, Any] = {
        "role": "assistant",
        "model": "m",
        "id": "i",
        "stop_reason": "s",
        "usage": {},
    }
    thought = [{"type": "thinking", "thinking": "so"}]
    lines = [
        claude_line("user", "hi", 1, timestamp=5, agentId="a1"),
        claude_line("assistant", None, 2, message={**message, "content": thought}),
        claude_call(3, "t", "Bash", {"command": "make"}),
        claude_result(4, "t", "out", {**BASH, "durationMs": True, "persistedOutputSize": 9}),
        claude_result(5, "t", SPILLED.format("b1.txt"), "Exit code 3\nno"),
    ]
    assert_odd_values_are_imported(tmp_path, lines)
