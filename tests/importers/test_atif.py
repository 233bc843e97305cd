"""ATIF: steps with their calls and results, and runs inside runs."""

from pathlib import Path
from typing import Any

from tests.importers.sources import (
    assert_odd_values_are_imported,
    calls_in,
    import_one,
    messages_in,
    opened,
    write_lines,
)
from tests.redaction.samples import ALL

STEPS: list[dict[str, Any]] = [
    {"step_id": 1, "timestamp": "2026-01-05T10:00:00Z", "source": "user", "message": "go"},
    {
        "step_id": 2,
        "timestamp": "2026-01-05T10:00:01Z",
        "source": "agent",
        "message": [{"type": "text", "text": "I look"}],
        "reasoning_content": "hm",
        "tool_calls": [
            {"tool_call_id": "c1", "function_name": "shell", "arguments": {"command": "ls"}},
            {"tool_call_id": "c2", "function_name": "task", "arguments": {}},
        ],
        "observation": {
            "results": [
                {"source_call_id": "c1", "content": "a\n"},
                {"source_call_id": "c2", "content": [{"type": "text", "text": "done"}]},
                {"content": "a new prompt"},
            ]
        },
        "metrics": {"prompt_tokens": 12},
        "extra": {"note": 1},
    },
]


def run(**members: Any) -> dict[str, Any]:
    return {
        "schema_version": "ATIF-v1.7",
        "session_id": "s1",
        "agent": {"name": "terminus", "version": "2.0", "model_name": "gpt-9"},
        "steps": STEPS,
        **members,
    }


def test_the_name_of_an_agent_keeps_no_secret(tmp_path: Path) -> None:
    agent = {"name": f"agent of {ALL['github-token'][1]}"}
    import_one(tmp_path, write_lines(tmp_path / "trajectory.json", [run(agent=agent)]))
    with opened(tmp_path) as reader:
        (session,) = reader.sessions()
    assert session.agent == "agent of [REDACTED:github-token]"


def test_a_run_has_what_the_model_saw(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "trajectory.json", [run()])
    assert import_one(tmp_path, path).format == "atif"
    with opened(tmp_path) as reader:
        calls = calls_in(reader)
        (session,) = reader.sessions()
        messages = messages_in(reader)
    assert [call.receipt.text for call in calls if call.receipt] == ["a\n", "done"]
    assert {call.not_recorded for call in calls} == {("output", "canonical")}
    assert calls[0].arguments == b'{"command":"ls"}'
    assert (session.agent, session.opened_at.year) == ("terminus", 2026)
    assert session.environment == '{"agent_version":"2.0"}'
    assert [(one.role, one.text) for one in messages] == [
        ("user", "go"),
        ("assistant", "I look"),
        ("user", "a new prompt"),
    ]
    assert b'"usage":{"prompt_tokens":12}' in (messages[1].document or b"")
    assert b'"model":"gpt-9"' in (messages[1].document or b"")


def test_a_longer_run_adds_only_what_is_new(tmp_path: Path) -> None:
    path = tmp_path / "trajectory.json"
    import_one(tmp_path, write_lines(path, [run(steps=STEPS[:1])]))
    import_one(tmp_path, write_lines(path, [run()]))
    with opened(tmp_path) as reader:
        assert len(messages_in(reader)) == 3
        assert len(calls_in(reader)) == 2


def test_a_run_inside_a_run_is_a_session_with_a_parent(tmp_path: Path) -> None:
    inner = {**run(), "trajectory_id": "t2"}
    import_one(tmp_path, write_lines(tmp_path / "a.json", [run(subagent_trajectories=[inner])]))
    with opened(tmp_path) as reader:
        child, parent = sorted(reader.sessions(), key=lambda one: one.parent_id is None)
        assert reader.count_invocations() == 4
    assert child.parent_id == parent.id


def test_a_run_without_an_id_is_known_by_its_first_steps(tmp_path: Path) -> None:
    bare = run(session_id=None)
    import_one(tmp_path, write_lines(tmp_path / "a.json", [bare]))
    import_one(tmp_path, write_lines(tmp_path / "b.json", [bare]))
    import_one(tmp_path, write_lines(tmp_path / "c.json", [run(session_id=None, steps=STEPS[:1])]))
    with opened(tmp_path) as reader:
        assert sorted(one.invocation_count for one in reader.sessions()) == [0, 2]


def test_odd_values_are_imported(tmp_path: Path) -> None:
    # Without an agent: another agent would be another fact of the same session.
    assert_odd_values_are_imported(tmp_path, [run(agent={}, subagent_trajectories=[None])])
