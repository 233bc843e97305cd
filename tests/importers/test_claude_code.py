"""Claude Code: where each surface of a call comes from, and what is said to be missing."""

from pathlib import Path

import pytest
from tests.importers.sources import (
    assert_intact,
    calls_in,
    claude_call,
    claude_line,
    claude_result,
    import_one,
    opened,
    stream_of,
    write_lines,
)

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
    import_one(tmp_path, write_lines(tmp_path / "a.jsonl", lines))
    with opened(tmp_path) as reader:
        (call,) = calls_in(reader)
        assert stream_of(reader, call, "combined") == b"no such thing"
    assert (call.summary.state, call.summary.exit_status) == ("success", 3)


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
    assert call.receipt is not None
    assert call.receipt.text == text


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
    import_one(tmp_path, write_lines(tmp_path / "a.jsonl", lines))
    with opened(tmp_path) as reader:
        (call,) = calls_in(reader)
        assert stream_of(reader, call, "stdout") == b"x" * 9000 + b"\xff"
    assert call.summary.lost_size == 0


def test_a_long_output_whose_file_is_gone_is_marked_as_lost(tmp_path: Path) -> None:
    receipt = SPILLED.format("/etc/passwd")  # a transcript cannot name any file of the machine
    returned = {**BASH, "stdout": "x" * 30, "persistedOutputSize": 9000}
    lines = [
        claude_call(1, "t", "Bash", {"command": "make"}),
        claude_result(2, "t", receipt, returned, is_error=False),
    ]
    import_one(tmp_path, write_lines(tmp_path / "a.jsonl", lines))
    with opened(tmp_path) as reader:
        (call,) = calls_in(reader)
        assert stream_of(reader, call, "stdout") == b"x" * 30
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
    with opened(tmp_path) as reader:
        child, parent = sorted(reader.sessions(), key=lambda one: one.parent_id is None)
        names = {call.summary.session_id: call.summary.tool_name for call in calls_in(reader)}
    assert child.parent_id == parent.id
    assert names == {parent.id: "Task", child.id: "Bash"}


def test_unknown_lines_and_blocks_are_kept_verbatim(tmp_path: Path) -> None:
    lines = [
        claude_line("assistant", [{"type": "hologram", "x": 1}], 1, novelty=[1]),
        {"type": "telepathy", "sessionId": "5e55"},
        {"type": "summary", "summary": "x", "leafUuid": "y"},
    ]
    path = write_lines(tmp_path / "a.jsonl", lines)
    counts = import_one(tmp_path, path).counts
    assert (counts["unknown: telepathy"], counts["other_lines"]) == (1, 1)
    with opened(tmp_path) as reader:
        (session,) = reader.sessions()
        _, (message, unknown), _ = reader.conversation(session.id, payloads=True)
    assert b'"native":{"type":"hologram","x":1}' in (message.document or b"")
    assert unknown.payload == path.read_bytes().splitlines(keepends=True)[1]
    assert_intact(tmp_path)
