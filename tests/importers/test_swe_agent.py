"""SWE-agent: answers in the history, outputs in the trajectory."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.importers.sources import (
    assert_intact,
    calls_in,
    import_one,
    messages_in,
    only_call,
    opened,
    receipt_of,
    stream_of,
    write_document,
)

TASK = [
    {"role": "system", "content": "Be good.", "agent": "main"},
    {"role": "user", "content": "Build it.", "agent": "main"},
]
CONFIG = {"agent": {"model": {"name": "gpt-4o"}}, "problem_statement": {"id": "issue-1"}}
TEXT = {"role": "assistant", "content": "Go.\n```\nmake\n```", "action": "make\n", "agent": "main"}
FUNCTION = {"name": "open", "arguments": '{"path":"a"}'}
NAMED = {
    "role": "assistant",
    "content": "Go.",
    "action": 'open "a"',
    "tool_calls": [{"function": FUNCTION, "id": "c1", "type": "function"}],
}


def step(action: str, observation: Any, folder: str = "/a", **more: Any) -> dict[str, Any]:
    found = {"action": action, "observation": observation, "response": f"I run {action}"}
    return {**found, "state": json.dumps({"working_dir": folder}), "execution_time": 0.25, **more}


def shown(text: Any, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": text, "agent": "main", **more}


def imported(folder: Path, history: list[Any], trajectory: list[Any]) -> Any:
    document = {
        "environment": "main",
        "trajectory": trajectory,
        "history": [*TASK, *history],
        "replay_config": json.dumps(CONFIG),
    }
    return import_one(folder, write_document(folder / "a.traj", document))


def test_a_command_in_a_text_has_all_three_surfaces(tmp_path: Path) -> None:
    receipt = "built\n(Current directory: /a)\nbash-$"
    history = [TEXT, shown(receipt), TEXT, shown("again")]
    imported(tmp_path, history, [step("make\n", "built"), step("make\n", "again", "/b")])
    with opened(tmp_path) as reader:
        call, other = calls_in(reader)
        (session,) = reader.sessions()
        messages = messages_in(reader)
        assert stream_of(reader, call, "combined") == b"built"
    assert (call.arguments, call.summary.tool_name) == (b"make\n", "bash")
    assert (call.summary.duration_ms, call.summary.exit_status) == (250, None)
    assert receipt_of(call) == receipt
    assert '"cwd":"/a"' in (other.complete_json or "")
    assert (session.agent, session.title) == ("swe-agent", "issue-1")
    assert [one.role for one in messages] == ["system", "user", "assistant", "assistant"]
    assert b'"model":"gpt-4o"' in (messages[-1].document or b"")
    assert_intact(tmp_path)


def test_a_call_of_a_function_has_its_own_name_and_id(tmp_path: Path) -> None:
    history = [NAMED, shown("a: 1", role="tool", tool_call_ids=["c1"])]
    imported(tmp_path, history, [step('open "a"', "1")])
    call = only_call(tmp_path)
    assert (call.summary.call_id, call.summary.tool_name) == ("c1", "open")
    assert call.arguments == b'{"path":"a"}'
    assert '"command":"open \\"a\\""' in (call.complete_json or "")


def test_a_step_that_no_message_shows_is_a_call_without_a_receipt(tmp_path: Path) -> None:
    trajectory = [step("edit", "syntax error"), step("make\n", "built"), step("submit", "diff")]
    counts = imported(tmp_path, [TEXT, shown("built")], trajectory).counts
    assert (counts["calls"], counts["results"]) == (3, 3)
    with opened(tmp_path) as reader:
        calls = calls_in(reader)
        outputs = [stream_of(reader, one, "combined") for one in calls]
    assert outputs == [b"syntax error", b"built", b"diff"]
    assert [one.not_recorded for one in calls] == [("receipt",), (), ("receipt",)]
    assert_intact(tmp_path)


def test_demonstrations_and_ends_of_runs_are_no_calls(tmp_path: Path) -> None:
    demo = {**TEXT, "is_demo": True}
    ended = {"role": "assistant", "content": "Exit due to cost limit", "action": "exit_cost"}
    history = [demo, shown("demo", is_demo=True), ended]
    counts = imported(tmp_path, history, [step("exit_cost", "")]).counts
    assert (counts["calls"], counts["messages"]) == (0, 5)


@pytest.mark.parametrize(
    "said",
    [
        "\nEXECUTION TIMED OUT\n",
        "The command 'make' was cancelled because it took more than 30 seconds.",
    ],
)
def test_a_command_that_ran_too_long_has_failed(tmp_path: Path, said: str) -> None:
    imported(tmp_path, [TEXT, shown(f"{said}\nbash-$")], [step("make\n", said)])
    call = only_call(tmp_path)
    assert (call.summary.state, call.summary.error_kind) == ("error", "tool_timed_out")
    assert_intact(tmp_path)


def test_without_steps_only_the_receipts_are_known(tmp_path: Path) -> None:
    history = [*TASK, TEXT, shown("built"), TEXT]
    found = import_one(tmp_path, write_document(tmp_path / "a.traj", {"history": history}))
    assert (found.format, found.counts["unpaired_calls"]) == ("swe-agent", 1)
    with opened(tmp_path) as reader:
        call, _ = calls_in(reader)
    assert call.not_recorded == ("output", "canonical")


def test_odd_values_cost_only_themselves(tmp_path: Path) -> None:
    odd: list[Any] = [None, 7, "text", [], {}, {"role": 7, "content": 7, "tool_call_ids": 7}]
    answers = [{**TEXT, "action": 7}, {**NAMED, "tool_calls": odd}, {**NAMED, "content": odd}]
    history = [*odd, *answers, shown(odd, tool_call_ids=odd)]
    steps = [*odd, step("make", 7, execution_time=1e300, state="{"), step("make", "", state=[])]
    counts = imported(tmp_path, history, steps).counts
    assert counts["calls"] == len(odd) + 1 + 2
    assert_intact(tmp_path, is_complete=False)
