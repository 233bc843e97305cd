"""OpenHands: actions and observations of both generations, and what a command does not have."""

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
    stream_of,
    write_lines,
)

ANSWER: dict[str, Any] = {
    "id": "chatcmpl-1",
    "model": "claude-9",
    "usage": {"total_tokens": 12},
    "choices": [
        {
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "tool_calls": [{"id": "t1", "function": {"name": "bash", "arguments": '{"a":1}'}}],
            },
        }
    ],
}
METADATA = {"function_name": "bash", "tool_call_id": "t1", "model_response": ANSWER}


def event(n: int, **members: Any) -> dict[str, Any]:
    return {"id": n, "timestamp": f"2025-01-27T22:44:{n:02}.5", "source": "agent", **members}


TASK = event(0, source="user", action="message", args={"content": "build"})
RUN = event(1, action="run", args={"command": "make", "thought": "go"}, tool_call_metadata=METADATA)
RAN = event(
    2,
    observation="run",
    cause=1,
    content="built\n",
    tool_call_metadata=METADATA,
    extras={"command": "make", "metadata": {"exit_code": 2, "working_dir": "/w"}},
)


def observed(kind: str, content: str, **members: Any) -> list[dict[str, Any]]:
    """A history with a call and its observation, without the ids of a provider."""
    call = event(1, action="edit", args={"path": "a"})
    return [TASK, call, event(2, observation=kind, cause=1, content=content, **members)]


def test_a_command_has_its_output_and_no_receipt(tmp_path: Path) -> None:
    system = event(9, action="system", args={"content": "be brief", "openhands_version": "0.35"})
    path = write_lines(tmp_path / "a.json", [[TASK, RUN, RAN, system]])
    assert import_one(tmp_path, path).format == "openhands"
    with opened(tmp_path) as reader:
        (call,) = calls_in(reader)
        assert stream_of(reader, call, "combined") == b"built\n"
        (session,) = reader.sessions()
        messages = messages_in(reader)
    assert (call.arguments, call.summary.exit_status) == (b'{"a":1}', 2)
    assert call.not_recorded == ("receipt",)
    assert (session.agent, call.summary.tool_name) == ("openhands", "bash")
    assert session.environment == '{"agent_version":"0.35"}'
    assert [(one.role, one.text) for one in messages] == [
        ("user", "build"),
        ("assistant", "go"),
        ("system", "be brief"),
    ]
    assert b'"model":"claude-9"' in (messages[1].document or b"")


def test_an_edit_has_what_the_tool_returned_beside_the_text(tmp_path: Path) -> None:
    none = {"tool_call_id": None}
    returned = {"path": "a", "diff": "+x"}
    history = observed("edit", "edited", extras=returned, tool_call_metadata=none)
    call = only_call(tmp_path, [{"history": history}])
    assert output_of(tmp_path, call, "structured") == b'{"diff":"+x","path":"a"}'
    assert receipt_of(call) == "edited"
    assert (call.not_recorded, call.arguments) == ((), b'{"path":"a"}')


@pytest.mark.parametrize(
    ("kind", "content", "state"),
    [
        ("read", "text", "success"),
        ("edit", "ERROR:\nno such text", "error"),
        ("error", "no such tool", "error"),
        ("user_rejected", "rejected", "denied"),
    ],
)
def test_an_observation_says_whether_the_tool_failed(
    tmp_path: Path, kind: str, content: str, state: str
) -> None:
    call = only_call(tmp_path, [observed(kind, content)])
    assert call.summary.state == state
    assert receipt_of(call) == content


def test_an_output_that_openhands_cut_is_marked_as_lost(tmp_path: Path) -> None:
    cut = {**RAN, "content": "a[... Observation truncated due to length ...]z"}
    call = only_call(tmp_path, [[TASK, RUN, cut]])
    assert [one.stage for one in call.omissions] == ["capture"]


def test_events_of_2024_have_no_ids(tmp_path: Path) -> None:
    history = [
        {"action": "message", "content": "build"},
        {"action": "run", "command": "make", "thought": "go"},
        {"observation": "run", "command": "make", "content": "built", "exit_code": 0},
        {"action": "run_ipython", "code": "1 + 1", "thought": ""},
        {"observation": "run_ipython", "code": "1 + 1", "content": "2"},
    ]
    pairs = [history[:1], history[1:3], history[3:]]  # an even older layout
    import_one(tmp_path, write_lines(tmp_path / "a.jsonl", [{"history": history}]))
    import_one(tmp_path, write_lines(tmp_path / "b.jsonl", [{"history": pairs}]))
    with opened(tmp_path) as reader:
        command, code = calls_in(reader)
        assert stream_of(reader, command, "combined") == b"built"
        roles = [one.role for one in messages_in(reader)]
    assert roles == ["user", "assistant", "assistant"]
    assert (command.summary.exit_status, command.arguments) == (0, b'{"command":"make"}')
    assert (receipt_of(code), code.not_recorded) == ("2", ("output", "canonical"))


def test_odd_values_are_imported(tmp_path: Path) -> None:
    state = event(7, observation="agent_state_changed", content="", extras={})
    ran = {**RAN, "tool_call_metadata": {"function_name": "bash", "tool_call_id": "t1"}}
    edited = observed("edit", "x", extras={"path": "a"})
    histories = [[TASK, RUN, ran], [*edited, state]]
    lines = [{"history": one, "instance_id": "i"} for one in histories]
    assert_odd_values_are_imported(tmp_path, lines)
