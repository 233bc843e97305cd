"""OpenCode: exported sessions with commands, other tools, failures and sub-agents."""

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

INFO = {
    "id": "ses_1",
    "directory": "/src",
    "title": "Build it",
    "version": "1.4.3",
    "time": {"created": 1_776_000_000_000},
}
RAN = {
    "status": "completed",
    "input": {"command": "make", "workdir": "/src/sub"},
    "output": "built\n",
    "metadata": {"output": "built\n", "exit": 2, "truncated": False},
    "time": {"start": 1_776_000_001_000, "end": 1_776_000_002_500},
}
READ = {
    "status": "completed",
    "input": {"filePath": "a"},
    "output": "1: a",
    "metadata": {"preview": "a", "truncated": False},
}


def tool(name: str, state: Any, call_id: str = "c1") -> dict[str, Any]:
    return {"type": "tool", "tool": name, "callID": call_id, "state": state}


def answer(*parts: Any, name: str = "msg_1") -> dict[str, Any]:
    info = {
        "id": name,
        "role": "assistant",
        "modelID": "kimi",
        "providerID": "moonshot",
        "tokens": {"input": 7},
        "path": {"cwd": "/src"},
        "variant": "high",
    }
    return {"info": info, "parts": list(parts)}


def session(*messages: Any, **info: Any) -> dict[str, Any]:
    return {"info": {**INFO, **info}, "messages": list(messages)}


def imported(folder: Path, *messages: Any, **info: Any) -> Any:
    return import_one(folder, write_document(folder / "a.json", session(*messages, **info)))


def test_a_command_has_all_three_surfaces(tmp_path: Path) -> None:
    assert imported(tmp_path, answer(tool("bash", RAN))).format == "opencode"
    with opened(tmp_path) as reader:
        (call,) = calls_in(reader)
        (found,) = reader.sessions()
        (message,) = messages_in(reader)
        assert stream_of(reader, call, "combined") == b"built\n"
    summary = call.summary
    assert (summary.state, summary.exit_status, summary.duration_ms) == ("success", 2, 1500)
    assert call.not_recorded == ()
    assert call.arguments == b'{"command":"make","workdir":"/src/sub"}'
    assert receipt_of(call) == "built\n"
    assert (found.agent, found.title) == ("opencode", "Build it")
    assert '"agent_version":"1.4.3"' in found.environment
    assert b'"usage":{"input":7}' in (message.document or b"")
    assert_intact(tmp_path)


def test_the_text_of_a_tool_is_its_output_unless_it_was_cut(tmp_path: Path) -> None:
    cut = {**READ, "metadata": {"truncated": True, "outputPath": "/home/tool_1"}}
    unknown = {**READ, "metadata": {}}
    parts = [tool("read", one, str(n)) for n, one in enumerate((READ, cut, unknown))]
    imported(tmp_path, answer(*parts))
    with opened(tmp_path) as reader:
        read, *others = calls_in(reader)
        assert stream_of(reader, read, "content") == b"1: a"
        assert stream_of(reader, read, "structured") == b'{"preview":"a","truncated":false}'
    assert [one.not_recorded for one in others] == [("output", "canonical")] * 2
    assert [one.receipt.text for one in others if one.receipt] == ["1: a"] * 2


@pytest.mark.parametrize(
    "text", ["...\n\n" + "x" * 30_000, f"{'a' * 99}…7 chars truncated…{'b' * 99}"]
)
def test_the_output_of_a_command_that_was_cut_is_a_loss(tmp_path: Path, text: str) -> None:
    shown = {"output": text, "exit": 0, "truncated": False}
    imported(tmp_path, answer(tool("bash", {**RAN, "metadata": shown})))
    call = only_call(tmp_path)
    assert (call.summary.lost_size or 0) > 0


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({"status": "error", "error": "no such file"}, ("error", "tool_execution_failed")),
        (
            {"status": "error", "error": "The user rejected permission to use this tool"},
            ("denied", "permission_denied"),
        ),
        ({"status": "error", "error": "Tool execution aborted"}, ("interrupted", "interrupted")),
        (
            {
                **RAN,
                "output": "a\n\n<bash_metadata>\nbash tool terminated command after exceeding",
                "metadata": {"output": "a", "exit": None},
            },
            ("error", "tool_timed_out"),
        ),
        ({"status": "running", "input": {}}, ("started", None)),
    ],
)
def test_a_call_that_failed_says_how(tmp_path: Path, state: Any, expected: Any) -> None:
    imported(tmp_path, answer(tool("bash", state)))
    call = only_call(tmp_path)
    assert (call.summary.state, call.summary.error_kind) == expected
    assert_intact(tmp_path, is_complete=expected[1] is not None)


def test_a_sub_agent_is_a_session_with_a_parent(tmp_path: Path) -> None:
    imported(tmp_path)
    imported(tmp_path, id="ses_2", parentID="ses_1")
    with opened(tmp_path) as reader:
        parents = {one.id: one.parent_id for one in reader.sessions()}
    (child,) = (one for one, parent in parents.items() if parent is not None)
    assert parents[child] in parents


def test_a_later_export_adds_what_is_new(tmp_path: Path) -> None:
    running = tool("bash", {"status": "running", "input": RAN["input"]})
    assert imported(tmp_path, answer(running)).counts["unpaired_calls"] == 1
    imported(tmp_path, answer(tool("bash", RAN)), answer(tool("read", READ), name="msg_2"))
    with opened(tmp_path) as reader:
        calls = calls_in(reader)
    assert [one.summary.state for one in calls] == ["success", "success"]
    assert_intact(tmp_path)


def test_an_answer_that_was_exported_while_it_was_written_is_recorded_whole(
    tmp_path: Path,
) -> None:
    for text in ("I bui", "I build.", "I build."):
        said = {"type": "text", "text": text}
        imported(tmp_path, answer(said, tool("bash", RAN)))
    with opened(tmp_path) as reader:
        assert [one.text for one in messages_in(reader)] == ["I bui", "I build."]
        assert len(calls_in(reader)) == 1
    assert_intact(tmp_path)


def test_odd_values_cost_only_themselves(tmp_path: Path) -> None:
    odd: list[Any] = [None, 7, "text", [], {}, {"type": 7}, {"type": "text", "text": None}]
    parts = [*odd, *(tool("bash", one) for one in odd), tool("bash", {**RAN, "metadata": 7})]
    late = {**RAN, "time": {"start": 0, "end": 10**400}}
    states: list[Any] = [
        {**RAN, "output": 7, "time": {"start": "x", "end": 1e300}},
        late,
        {"status": []},
    ]
    messages = [*odd, answer(*parts, *(tool("read", one) for one in states)), {"parts": parts}]
    found = imported(tmp_path, *messages, title=7, parentID=[], directory={}, time=None).counts
    assert found["unknown: part text"] == 2
    assert found["calls"] == 2 * 8 + 3
    assert_intact(tmp_path, is_complete=False)


def test_messages_without_ids_are_different_messages(tmp_path: Path) -> None:
    said = [answer({"type": "text", "text": text}) for text in ("a", "b")]
    for message in said:
        message["info"]["id"] = None
    imported(tmp_path, *said)
    with opened(tmp_path) as reader:
        assert [one.text for one in messages_in(reader)] == ["a", "b"]
