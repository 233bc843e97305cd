"""mini-swe-agent: commands in texts (version 1), commands as calls of a tool (version 2)."""

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
    output_of,
    receipt_of,
    write_document,
)

from tooltrail.importers import usual_folders

TASK = [{"role": "system", "content": "Be good."}, {"role": "user", "content": "Build it."}]
CONFIG = {"environment": {"cwd": "/testbed"}, "model": {"model_name": "gemini"}}
RESPONSE = {"id": "gen-1", "model": "gemini-3", "created": 1_763_509_059, "usage": {"total": 7}}
CALL = {"id": "c1", "function": {"name": "bash", "arguments": '{"command": "make"}'}}
ACTION = {"command": "make", "tool_call_id": "c1"}
ASKED: dict[str, Any] = {
    "role": "assistant",
    "content": "",
    "tool_calls": [CALL],
    "extra": {"actions": [ACTION], "timestamp": 1_763_509_060.5, "cost": 0.1},
}


def said(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text, "extra": {"response": RESPONSE}}


def user(text: Any, **extra: Any) -> dict[str, Any]:
    return {"role": "user", "content": text, "extra": extra}


def observed(**extra: Any) -> dict[str, Any]:
    found = {"raw_output": "built\n", "returncode": 2, **extra}
    return {
        "role": "tool",
        "tool_call_id": "c1",
        "content": "<output>built</output>",
        "extra": found,
    }


def imported(folder: Path, *messages: Any) -> Any:
    document = {
        "info": {"mini_version": "2.0", "config": CONFIG},
        "messages": [*TASK, *messages],
        "trajectory_format": "mini-swe-agent-1.1",
    }
    return import_one(folder, write_document(folder / "a.traj.json", document))


def test_a_command_in_a_text_has_only_a_receipt(tmp_path: Path) -> None:
    shown = "<returncode>0</returncode>\n<output>\nbuilt\n</output>"
    assert imported(tmp_path, said("Go.\n```bash\nmake\n```"), user(shown)).counts["results"] == 1
    with opened(tmp_path) as reader:
        (call,) = calls_in(reader)
        (session,) = reader.sessions()
        messages = messages_in(reader)
    assert call.arguments == b"make"
    assert call.not_recorded == ("output", "canonical")
    assert receipt_of(call) == shown
    assert [one.role for one in messages] == ["system", "user", "assistant"]
    assert b'"usage":{"total":7}' in (messages[-1].document or b"")
    assert session.agent == "mini-swe-agent"
    assert '"agent_version":"2.0"' in session.environment
    assert session.opened_at.year == 2025
    assert_intact(tmp_path)


def test_an_answer_without_exactly_one_command_runs_nothing(tmp_path: Path) -> None:
    block = "```bash\nls\n```\n"
    found = imported(tmp_path, said(block * 2), user("One action."), said("none"), user("One."))
    assert (found.counts["calls"], found.counts["messages"]) == (0, 6)


def test_a_command_of_version_2_has_all_three_surfaces(tmp_path: Path) -> None:
    imported(tmp_path, ASKED, observed())
    call = only_call(tmp_path)
    assert output_of(tmp_path, call, "combined") == b"built\n"
    assert (call.summary.call_id, call.summary.exit_status) == ("c1", 2)
    assert call.arguments == b'{"command": "make"}'
    assert receipt_of(call) == "<output>built</output>"
    assert call.not_recorded == ()
    assert_intact(tmp_path)


def test_calls_of_the_responses_api_are_found_by_their_ids(tmp_path: Path) -> None:
    items = [{"type": "function_call", "call_id": "c1", "arguments": '{"command": "make"}'}]
    answer = {**RESPONSE, "object": "response", "output": items, "extra": {"actions": [ACTION]}}
    shown = {"type": "function_call_output", "call_id": "c1", "output": "ok"}
    extra = {"raw_output": "ok", "returncode": 0}
    imported(tmp_path, answer, {**shown, "extra": extra})
    call = only_call(tmp_path)
    assert (call.arguments, call.summary.exit_status) == (b'{"command": "make"}', 0)
    assert receipt_of(call) == "ok"


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        (
            [said("```bash\nmake\n```"), user("The last command <command>make</command> timed")],
            ("error", "tool_timed_out"),
        ),
        (
            [said("```bash\nmake\n```"), user("Command not executed. The user rejected it.")],
            ("denied", "permission_denied"),
        ),
        (
            [ASKED, observed(exception_info="late", exception_type="TimeoutExpired")],
            ("error", "tool_timed_out"),
        ),
        (
            [ASKED, observed(exception_info="action was not executed", returncode=-1)],
            ("cancelled", "cancelled"),
        ),
        ([ASKED, {"role": "exit", "content": "diff"}], ("started", None)),
    ],
)
def test_a_call_that_failed_says_how(tmp_path: Path, messages: Any, expected: Any) -> None:
    imported(tmp_path, *messages)
    call = only_call(tmp_path)
    assert (call.summary.state, call.summary.error_kind) == expected
    assert_intact(tmp_path, is_complete=expected[1] is not None)


def test_a_longer_run_adds_what_is_new_and_another_run_is_another_session(tmp_path: Path) -> None:
    imported(tmp_path, ASKED)
    imported(tmp_path, ASKED, observed())
    with opened(tmp_path) as reader:
        assert [one.summary.state for one in calls_in(reader)] == ["success"]
    later = {**ASKED, "extra": {**ASKED["extra"], "timestamp": 1_763_600_000}}
    imported(tmp_path, later, observed())
    with opened(tmp_path) as reader:
        assert len([*reader.sessions()]) == 2
    assert_intact(tmp_path)


def test_odd_values_cost_only_themselves(tmp_path: Path) -> None:
    odd: list[Any] = [None, 7, "text", [], {}, {"role": 7, "content": 7, "extra": 7}]
    answers = [{**ASKED, "extra": {"actions": odd, "timestamp": 1e300}}, {**ASKED, "content": odd}]
    shown = [observed(raw_output=odd, returncode="x"), user(odd, exception_info=odd)]
    counts = imported(tmp_path, *odd, *answers, *shown).counts
    assert (counts["calls"], counts["unpaired_calls"]) == (len(odd) + 1, len(odd))
    assert_intact(tmp_path, is_complete=False)


def test_its_usual_folder_is_known(tmp_path: Path) -> None:
    folder = tmp_path / ".config" / "mini-swe-agent"
    folder.mkdir(parents=True)
    assert usual_folders({}, tmp_path) == [folder]
    assert usual_folders({"MSWEA_GLOBAL_CONFIG_DIR": str(tmp_path)}, tmp_path / "x") == [tmp_path]
