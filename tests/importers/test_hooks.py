"""Hook events: what they add to a record, and how they meet the transcript that they name."""

import json
import os
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tests.importers.sources import (
    CORPUS,
    ODD,
    assert_intact,
    calls_in,
    claude_call,
    claude_line,
    claude_result,
    import_one,
    messages_in,
    odd_variants,
    only_call,
    opened,
    output_of,
    receipt_of,
    stream_of,
    write_lines,
)
from tests.support.evidence import problems_of

from tooltrail.importers import Imported
from tooltrail.importers.events import Line
from tooltrail.importers.hook_log import append_event
from tooltrail.importers.hooks import has_events, import_events, settle
from tooltrail.importers.lines import read_lines
from tooltrail.importers.values import list_of, object_of
from tooltrail.records import DamageError
from tooltrail.redaction import default_rules
from tooltrail.store import InvocationDetail, open_store
from tooltrail.store.engines.sqlite_library import sqlite3
from tooltrail.store.verify import verify
from tooltrail.transcripts import load_transcript

SHELL = {"stdout": "out\n", "stderr": "err\n", "interrupted": False, "isImage": False}
LONG_AGO = time.time() - 30
SESSIONS = sorted(CORPUS.glob("claude_code/**/*.jsonl"))[::2]


def event(name: str, **more: Any) -> dict[str, Any]:
    """An event of session `5e55`, that of the lines of Claude Code in these tests."""
    return {"session_id": "5e55", "cwd": "/work", "hook_event_name": name, **more}


def tool(name: str, call_id: str, **more: Any) -> dict[str, Any]:
    """An event about a command."""
    given = {"command": "make"}
    return event(name, tool_name="Bash", tool_input=given, tool_use_id=call_id, **more)


def log(
    folder: Path, *events: Mapping[str, Any], agent: str = "claude-code", at: float = LONG_AGO
) -> Path:
    """Log events as if they had come at a time."""
    path = folder / "tooltrail.db-spool" / "hooks" / f"{agent}-2026-03-25.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        for number, one in enumerate(events):
            file.write(json.dumps({"at": at + number / 100, "event": one}) + "\n")
    return path


def imported(folder: Path) -> list[Imported]:
    """Import what waits; nothing may fail."""
    found = [*import_events(folder / "tooltrail.db-spool", default_rules())]
    imported = [one for one in found if isinstance(one, Imported)]
    assert imported == found
    return imported


def call_of(folder: Path, *events: Mapping[str, Any]) -> InvocationDetail:
    """The only call that events tell."""
    log(folder, *events)
    imported(folder)
    return only_call(folder)


def names_in(folder: Path) -> list[str | None]:
    with opened(folder) as reader:
        return [one.summary.call_id for one in calls_in(reader)]


def test_a_transcript_without_a_session_yet_is_no_error(tmp_path: Path) -> None:
    transcript = write_lines(tmp_path / "5e55.jsonl", [{"type": "file-history-snapshot"}])
    log(tmp_path, tool("PreToolUse", "t1", transcript_path=str(transcript)))
    assert [one.counts["sessions"] for one in imported(tmp_path)] == [0, 0]
    assert names_in(tmp_path) == ["t1"]


def test_a_session_is_recorded_by_its_events_alone(tmp_path: Path) -> None:
    log(
        tmp_path,
        event("SessionStart", source="startup"),
        tool("PreToolUse", "t1"),
        tool("PostToolUse", "t1", tool_response={**SHELL, "noOutputExpected": False}),
        event("SessionEnd", reason="logout"),
    )
    imported(tmp_path)
    with opened(tmp_path) as reader:
        (session,) = reader.sessions()
        (call,) = calls_in(reader)
        assert stream_of(reader, call, "stdout") == b"out\n"
        assert stream_of(reader, call, "stderr") == b"err\n"
    assert (session.agent, session.close_reason) == ("claude-code", "logout")
    assert call.arguments == b'{"command":"make"}'
    assert (call.summary.state, call.summary.tool_name) == ("success", "Bash")
    assert '"preview":"make"' in (call.canonical_json or "")
    assert call.not_recorded == ("receipt",)
    assert call.extras == (
        '{"tool_response":{"interrupted":false,"isImage":false,"noOutputExpected":false}}'
    )
    assert call.source is not None
    assert call.source.file.endswith("claude-code-2026-03-25.jsonl")
    assert_intact(tmp_path)


INTERRUPTED = tool("PostToolUseFailure", "t1", error="stopped", is_interrupt=True)


@pytest.mark.parametrize(
    ("last", "state", "kind", "message"),
    [
        (tool("PermissionDenied", "t1", reason="not safe"), "denied", "permission_denied", "not"),
        (tool("PostToolUseFailure", "t1", error="no file"), "error", "tool_execution_failed", "no"),
        (INTERRUPTED, "interrupted", "interrupted", "stopped"),
    ],
)
def test_a_call_that_failed_has_its_kind(
    tmp_path: Path, last: Mapping[str, Any], state: str, kind: str, message: str
) -> None:
    call = call_of(tmp_path, last)  # the event of the start is lost
    assert (call.summary.state, call.summary.error_kind) == (state, kind)
    assert message in (call.canonical_json or "")


def test_a_command_that_exits_with_a_status_did_not_fail(tmp_path: Path) -> None:
    failed = tool("PostToolUseFailure", "t1", error="Exit code 2\nno rule", duration_ms=1500)
    call = call_of(tmp_path, failed)
    assert output_of(tmp_path, call, "combined") == b"no rule"
    summary = call.summary
    assert (summary.state, summary.exit_status, summary.duration_ms) == ("success", 2, 1500)
    assert summary.finished_at is not None
    assert (summary.finished_at - summary.started_at).total_seconds() == 1.5


def test_every_call_of_a_batch_is_recorded_once(tmp_path: Path) -> None:
    calls = [
        {"tool_name": "Read", "tool_input": {"n": n}, "tool_use_id": f"t{n}", "tool_response": n}
        for n in range(3)
    ]
    one = event("PostToolUse", **calls[0])
    silent = {"tool_name": "Read", "tool_input": {}, "tool_use_id": "t9"}
    log(tmp_path, one, event("PostToolBatch", tool_calls=[*calls, silent]))
    imported(tmp_path)
    with opened(tmp_path) as reader:
        found = [(call.summary.call_id, call.summary.state) for call in calls_in(reader)]
        ended = [(f"t{n}", "success") for n in range(3)]
        assert found == [*ended, ("t9", "started")]  # of the last one, no result was said
        assert messages_in(reader) == []


def test_a_damaged_call_of_a_batch_costs_only_itself(tmp_path: Path) -> None:
    calls: list[Any] = [
        {"tool_name": "Read", "tool_input": {"n": n}, "tool_use_id": f"t{n}", "tool_response": n}
        for n in range(4)
    ]
    calls[1]["tool_use_id"] = None
    calls[2] = None
    log(tmp_path, event("PostToolBatch", tool_calls=calls))
    (report,) = imported(tmp_path)
    (damaged,) = report.damaged
    assert "in 2 of 4 calls: tool_use_id is not a text" in damaged.damage
    with opened(tmp_path) as reader:
        assert [call.summary.call_id for call in calls_in(reader)] == ["t0", "t3"]


def test_a_start_that_was_logged_after_its_end_begins_no_other_call(tmp_path: Path) -> None:
    call = call_of(tmp_path, tool("PostToolUse", "t1", tool_response="x"), tool("PreToolUse", "t1"))
    assert call.summary.state == "success"


def test_a_sub_agent_is_a_session_of_its_own(tmp_path: Path) -> None:
    of_agent = {"agent_id": "a1", "agent_type": "Explore"}
    log(
        tmp_path,
        tool("PostToolUse", "t1", tool_response=SHELL),
        tool("PostToolUse", "t2", tool_response=SHELL, **of_agent),
        event("SubagentStop", **of_agent),
    )
    imported(tmp_path)
    with opened(tmp_path) as reader:
        child, parent = reader.sessions()
    assert (child.parent_id, parent.parent_id) == (parent.id, None)
    assert child.closed_at is not None
    assert parent.closed_at is None


def test_what_codex_sends_of_a_command_is_its_output(tmp_path: Path) -> None:
    one = tool("PostToolUse", "call_1", tool_response="hello\n", turn_id="1", model="gpt")
    log(tmp_path, event("SessionStart"), one, event("Telepathy"), agent="codex")
    (report,) = imported(tmp_path)
    unknown = {name: n for name, n in report.counts.items() if name.startswith("unknown")}
    assert unknown == {"unknown: event Telepathy": 1}
    call = only_call(tmp_path)
    assert output_of(tmp_path, call, "combined") == b"hello\n"
    assert call.extras == '{"model":"gpt","turn_id":"1"}'


@pytest.mark.parametrize("agent", ["claude-code", "codex"])
@pytest.mark.parametrize(
    ("returned", "text"),
    [("x", b"x"), ([{"type": "text", "text": "x"}], b"x"), ({"output": "x"}, None)],
)
def test_the_output_of_a_command_in_any_form_is_recorded(
    tmp_path: Path, agent: str, returned: Any, text: bytes | None
) -> None:
    log(tmp_path, tool("PostToolUse", "t1", tool_response=returned), agent=agent)
    imported(tmp_path)
    call = only_call(tmp_path)
    if text is None:
        assert json.loads(call.extras or "") == {"tool_response": returned}
    else:
        assert output_of(tmp_path, call, "combined") == text


def transcript(folder: Path, *lines: Mapping[str, Any]) -> Path:
    return write_lines(folder / "5e55.jsonl", lines)


ASK = claude_line("user", "build", 1)
CALL = claude_call(2, "t1", "Bash", {"command": "make"})
RESULT = claude_result(3, "t1", "out\nerr", SHELL, is_error=False)


def test_the_transcript_comes_first(tmp_path: Path) -> None:
    named = {"transcript_path": str(transcript(tmp_path, ASK, CALL, RESULT))}
    log(
        tmp_path,
        tool("PreToolUse", "t1", **named),
        tool("PostToolUse", "t1", tool_response=SHELL, **named),
        event("PostToolBatch", tool_calls=[{"tool_use_id": "t1", "tool_response": SHELL}]),
        tool("PreToolUse", "t2", **named),
    )
    *_, of_log = imported(tmp_path)
    found = {name: n for name, n in of_log.counts.items() if n}
    assert found == {"calls": 1, "unpaired_calls": 1, "new": 1}
    with opened(tmp_path) as reader:
        ended, running = calls_in(reader)
        assert [message.role for message in messages_in(reader)] == ["user", "assistant"]
        assert reader.session("@last").agent == "claude-code"
    assert (receipt_of(ended), ended.message_id is not None) == ("out\nerr", True)
    assert (running.summary.state, running.summary.call_id) == ("started", "t2")
    assert_intact(tmp_path, is_complete=False)


def test_a_later_transcript_adds_what_the_model_saw(tmp_path: Path) -> None:
    path = tmp_path / "5e55.jsonl"
    named = {"transcript_path": str(path)}
    log(
        tmp_path,
        tool("PostToolUse", "t1", tool_response=SHELL, **named),
        tool("PostToolUse", "t2", tool_response=SHELL, **named),
        at=datetime(2026, 3, 25, 2, 17, 2, 500_000, tzinfo=UTC).timestamp(),  # behind CALL
    )
    imported(tmp_path)
    with opened(tmp_path) as reader:
        assert [one.not_recorded for one in calls_in(reader)] == [("receipt",)] * 2
    odd = claude_result(5, "t2", "\0 out", SHELL)  # which no database stores as it is
    more = [claude_call(4, "t2", "Bash", {"command": "make"}), odd]
    transcript(tmp_path, ASK, CALL, RESULT, *more)
    import_one(tmp_path, path)
    import_one(tmp_path, path)
    with opened(tmp_path) as reader:
        first, second = calls_in(reader)
        assert stream_of(reader, first, "stdout") == b"out\n"
        entries = load_transcript(reader, "@last").entries
    assert first.receipt is not None
    assert (first.receipt.text, first.receipt.renderer_name) == ("out\nerr", "seen")
    assert (receipt_of(second), first.not_recorded) == ("\0 out", ())
    assert first.source is not None
    assert first.source.file.endswith("25.jsonl")
    kinds = [type(one).__name__ for one in entries]
    assert kinds[:3] == ["MessageView", "MessageView", "InvocationDetail"]
    assert_intact(tmp_path)
    with open_store(tmp_path / "tooltrail.db") as store:
        assert [*verify(store.database, store.archive, families=store.families)] == []


def test_a_receipt_that_came_later_is_compared_with_its_fact(tmp_path: Path) -> None:
    log(tmp_path, tool("PostToolUse", "t1", tool_response=SHELL))
    imported(tmp_path)
    import_one(tmp_path, transcript(tmp_path, CALL, RESULT))
    with opened(tmp_path) as reader:
        reader.database.close()
    with sqlite3.connect(tmp_path / "tooltrail.db") as connection:
        connection.execute("DROP TRIGGER surfaces_no_update")
        connection.execute("UPDATE surfaces SET receipt = 'altered'")
    with open_store(tmp_path / "tooltrail.db") as store:
        assert [one for one in problems_of(store) if "receipt" in one]
        (call,) = store.reader.invocations().items
        with pytest.raises(DamageError, match="receipt"):
            store.reader.invocation(call.id)


def test_a_receipt_that_came_later_says_how_much_was_cut(tmp_path: Path) -> None:
    log(tmp_path, tool("PostToolUse", "t1", tool_response={**SHELL, "stdout": "line\n" * 100}))
    imported(tmp_path)
    with opened(tmp_path) as reader:
        assert reader.ranked_invocations("cut") == []
    import_one(tmp_path, transcript(tmp_path, CALL, RESULT))
    with opened(tmp_path) as reader:
        ((call, cut),) = reader.ranked_invocations("cut")
        assert cut == (call.output_size or 0) - len("out\nerr") > 400
    assert_intact(tmp_path)


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_spilled_output_is_complete_or_counted_as_lost(tmp_path: Path, is_gone: bool) -> None:
    whole = b"line\n" * 9_000
    path = tmp_path / "5e55" / "tool-results" / "out.txt"
    path.parent.mkdir(parents=True)
    if not is_gone:
        path.write_bytes(whole)
    response: dict[str, Any] = {**SHELL, "stdout": "line\n", "persistedOutputPath": str(path)}
    response["persistedOutputSize"] = len(whole)
    named = {"transcript_path": str(transcript(tmp_path, ASK, CALL))}
    call = call_of(tmp_path, tool("PostToolUse", "t1", tool_response=response, **named))
    assert output_of(tmp_path, call, "stdout") == (b"line\n" if is_gone else whole)
    assert call.summary.lost_size == (len(whole) - 5 if is_gone else 0)


def test_output_without_errors_is_recorded(tmp_path: Path) -> None:
    call = call_of(tmp_path, tool("PostToolUse", "t1", tool_response={"stdout": "abc"}))
    assert output_of(tmp_path, call, "stdout") == b"abc"


def test_a_sub_agent_has_its_parent_from_its_first_event_on(tmp_path: Path) -> None:
    log(tmp_path, event("SessionStart"), event("SubagentStart", agent_id="a1"))
    imported(tmp_path)
    with opened(tmp_path) as reader:
        child, parent = reader.sessions()
    assert (child.parent_id, child.agent, parent.agent) == (parent.id, "claude-code", "claude-code")
    assert json.loads(parent.environment) == {"cwd": "/work"}


def test_a_clock_that_was_ahead_holds_nothing_back(tmp_path: Path) -> None:
    log(tmp_path, tool("PreToolUse", "t1"), at=time.time() + 86_400)
    log(tmp_path, tool("PreToolUse", "t2"))
    imported(tmp_path)
    assert {*names_in(tmp_path)} == {"t1", "t2"}


def test_the_transcript_of_a_sub_agent_is_found(tmp_path: Path) -> None:
    main = transcript(tmp_path, ASK)
    folder = tmp_path / "5e55" / "subagents"
    folder.mkdir(parents=True)
    write_lines(folder / "agent-a1.jsonl", [{**CALL, "agentId": "a1"}, {**RESULT, "agentId": "a1"}])
    log(tmp_path, event("SubagentStop", agent_id="a1", transcript_path=str(main)))
    imported(tmp_path)
    with opened(tmp_path) as reader:
        (call,) = calls_in(reader)
        child, _ = reader.sessions()
    assert call.receipt is not None
    assert call.summary.session_id == child.id


def test_the_newest_events_wait_two_seconds(tmp_path: Path) -> None:
    log(tmp_path, tool("PreToolUse", "t1"))
    newest = json.dumps(tool("PreToolUse", "t2")).encode()
    append_event(str(tmp_path / "tooltrail.db-spool"), "claude-code", newest)
    imported(tmp_path)
    assert names_in(tmp_path) == ["t1"]
    assert has_events(tmp_path / "tooltrail.db-spool")


def test_settling_waits_for_the_newest_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    settle(tmp_path / "tooltrail.db-spool")
    log(tmp_path, tool("PreToolUse", "t1"))
    settle(tmp_path / "tooltrail.db-spool")
    assert waited[0] == 0
    assert 0 < waited[1] < 3


def test_a_torn_event_costs_only_itself(tmp_path: Path) -> None:
    path = log(tmp_path, tool("PreToolUse", "t1"))
    with path.open("a") as file:
        file.write('{"at":1,"event":{"session_id":"5e')  # killed in the middle
    log(tmp_path, tool("PreToolUse", "t2"))
    *_, report = imported(tmp_path)
    assert len(report.damaged) == 1
    assert names_in(tmp_path) == ["t1", "t2"]
    assert not has_events(tmp_path / "tooltrail.db-spool")


def test_a_young_event_behind_a_torn_one_is_imported_later(tmp_path: Path) -> None:
    path = log(tmp_path, tool("PreToolUse", "t1"))
    with path.open("a") as file:
        file.write('{"at":1,"event":{"session_id":"5e')  # killed in the middle
    log(tmp_path, tool("PreToolUse", "t2"), at=time.time())
    imported(tmp_path)
    log(tmp_path, tool("PreToolUse", "t3"))
    settle(tmp_path / "tooltrail.db-spool")
    imported(tmp_path)
    assert {*names_in(tmp_path)} == {"t1", "t2", "t3"}


@pytest.mark.parametrize("missing", ["session_id", "tool_name", "tool_use_id"])
@pytest.mark.parametrize("wrong", [None, "", 5, ["a"]])
@pytest.mark.parametrize("kind", ["PreToolUse", "PostToolUse"])
def test_an_event_without_the_name_of_a_tool_or_a_call_is_damaged(
    tmp_path: Path, kind: str, missing: str, wrong: Any
) -> None:
    log(tmp_path, tool("PreToolUse", "t1"))
    imported(tmp_path)
    log(tmp_path, {**tool(kind, "t2"), missing: wrong}, tool("PreToolUse", "t3"))
    *_, report = imported(tmp_path)
    (damaged,) = report.damaged
    assert (damaged.number, f"({missing} is not a text)" in damaged.damage) == (2, True)
    assert names_in(tmp_path) == ["t1", "t3"]


def test_a_log_that_cannot_be_read_stops_no_other(tmp_path: Path) -> None:
    log(tmp_path, tool("PreToolUse", "t1"))
    (tmp_path / "tooltrail.db-spool" / "hooks" / "claude-code-2026-01-01.jsonl").mkdir()
    failure, _ = import_events(tmp_path / "tooltrail.db-spool", default_rules())
    assert "claude-code-2026-01-01.jsonl cannot be imported: Is a directory" in str(failure)
    assert names_in(tmp_path) == ["t1"]


def test_a_log_is_deleted_days_after_it_was_imported(tmp_path: Path) -> None:
    path = log(tmp_path, tool("PreToolUse", "t1"))
    imported(tmp_path)
    assert path.exists()
    old = time.time() - 3 * 24 * 3600
    os.utime(path, (old, old))
    imported(tmp_path)
    assert not path.exists()


def test_a_secret_that_was_replaced_is_counted(tmp_path: Path) -> None:
    mark = "[REDACTED:github-token]"
    response = {**SHELL, "stdout": f"is {mark}\n"}
    call = call_of(tmp_path, tool("PostToolUse", "t1", tool_response=response))
    assert output_of(tmp_path, call, "stdout") == f"is {mark}\n".encode()
    (found,) = [one for one in call.redacted if one.field == "stdout"]
    assert (found.rule, found.count, found.offset) == ("github-token", 1, 3)


def test_a_log_of_another_program_is_left_alone(tmp_path: Path) -> None:
    log(tmp_path, tool("PreToolUse", "t1"), agent="other")
    assert not has_events(tmp_path / "tooltrail.db-spool")
    assert imported(tmp_path) == []


def test_odd_values_cost_only_their_event(tmp_path: Path) -> None:
    kept = [
        tool("PreToolUse", "t1", transcript_path=str(tmp_path)),
        tool("PostToolUse", "t1", tool_response=SHELL, duration_ms=1),
        tool("PermissionDenied", "t2", reason="no"),
        tool("PostToolUse", "t3", tool_response="text", transcript_path="a\0b"),
        event("PostToolBatch", tool_calls=[{"tool_use_id": "t4", "tool_response": 1}]),
        event("SessionEnd", agent_id="a", agent_transcript_path=None),
    ]
    odd: list[Any] = [*kept, *ODD, *(variant for one in kept for variant in odd_variants(one))]
    log(tmp_path, *odd)
    imported(tmp_path)
    assert not has_events(tmp_path / "tooltrail.db-spool")
    assert_intact(tmp_path, is_complete=False)


def events_of(lines: list[dict[str, Any]], path: Path) -> list[dict[str, Any]]:
    """The events that Claude Code would have sent for the calls in its lines."""
    events: list[dict[str, Any]] = []
    tools: dict[str, str] = {}
    for line in lines:
        common = {"session_id": line.get("sessionId"), "transcript_path": str(path)}
        if line.get("agentId"):
            common["agent_id"] = line["agentId"]
        for block in map(object_of, list_of(object_of(line.get("message")).get("content"))):
            if block.get("type") == "tool_use":
                tools[block["id"]] = block["name"]
                named = {"tool_name": block["name"], "tool_input": block["input"]}
                named |= {"tool_use_id": block["id"], "hook_event_name": "PreToolUse"}
                events.append({**common, **named})
            if block.get("type") == "tool_result":
                call_id, returned = block["tool_use_id"], line.get("toolUseResult")
                named = {"tool_name": tools.get(call_id, "Bash"), "tool_use_id": call_id}
                named |= {"hook_event_name": "PostToolUse", "tool_response": returned}
                if block.get("is_error"):
                    named |= {"hook_event_name": "PostToolUseFailure", "error": str(returned)}
                events.append({**common, **named})
    return events


def all_calls(folder: Path) -> dict[UUID, tuple[object, ...]]:
    """What is known of each call, except for the message that asks for it."""
    with opened(folder) as reader:
        return {
            one.summary.id: (
                *(one.summary.state, one.summary.exit_status, one.arguments, one.canonical_json),
                one.receipt and one.receipt.text,
            )
            for one in calls_in(reader)
        }


@pytest.mark.skipif(not CORPUS.exists(), reason="the corpus is not on this machine")
@pytest.mark.parametrize("source", SESSIONS, ids=[one.stem[-12:] for one in SESSIONS])
def test_events_change_nothing_that_the_transcript_says(tmp_path: Path, source: Path) -> None:
    data = source.read_bytes()
    with source.open("rb") as file:
        lines = [one.value for one in read_lines(file) if isinstance(one, Line)]
    path, half = tmp_path / source.name, len(lines) // 2
    path.write_bytes(b"".join(data.splitlines(keepends=True)[:half]))
    early = events_of(lines[: half + 2], path)  # those of two lines more
    log(tmp_path, *early)
    imported(tmp_path)
    path.write_bytes(data)
    log(tmp_path, *events_of(lines[half:], path))
    imported(tmp_path)
    assert not has_events(tmp_path / "tooltrail.db-spool")
    alone = tmp_path / "alone"
    import_one(alone, path)
    expected = all_calls(alone)
    found = all_calls(tmp_path)
    assert found.keys() == expected.keys()
    # Two events at the most came before their lines: their calls have the output of the event.
    assert sum(found[one] != expected[one] for one in expected) <= 2
    receipts = {one: call[-1] for one, call in found.items()}
    assert receipts == {one: call[-1] for one, call in expected.items()}
    assert_intact(tmp_path, is_complete=False)
