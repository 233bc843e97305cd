"""The list of invocations: its columns, its filters, its pages."""

import csv
import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from tests.support.cli import Cli
from tests.support.recording import captured, command_output, fail_tool, run_command, run_tool

from tooltrail.records import CommandOutput, CompleteOutput, ToolCall
from tooltrail.store import Session

FIELDS = [
    *("schema_version", "id", "session_id", "seq", "call_id", "tool_name", "family", "state"),
    *("arguments_preview", "started_at", "finished_at", "duration_ms", "error_kind"),
    *("exit_status", "signal", "timed_out", "output_size", "truncated", "lost_size"),
    *("is_late", "damage", "outcome_kind", "outcome"),
]


def end_badly(session: Session, *, signal: int | None, timed_out: bool) -> None:
    invocation = session.start(ToolCall(tool_name="Bash", call_id="call-9"))
    result = CommandOutput(
        signal=signal,
        exit_status=None if signal else 143,
        timed_out=timed_out,
        timeout_ms=500 if timed_out else None,
        stdout=captured(invocation, "stdout", b""),
        stderr=captured(invocation, "stderr", b""),
    )
    invocation.finish(CompleteOutput.success("Bash", result))


@pytest.fixture
def recorded(cli: Cli) -> Iterator[Cli]:
    """Eight invocations of every kind, in two sessions; the last one runs."""
    with cli.open() as store:
        first = store.open_session(title="first", agent="Ada")
        run_command(first, b"x" * 1500, call=ToolCall(tool_name="Bash", title="make all"))
        run_command(
            first, exit_status=1, call=ToolCall(tool_name="shell", arguments_raw='{"a": 1}')
        )
        end_badly(first, signal=9, timed_out=False)
        second = store.open_session(agent="Bob")
        end_badly(second, signal=None, timed_out=True)
        fail_tool(second)
        fail_tool(second, kind="permission_denied")
        run_tool(second, "text")
        second.start(ToolCall(tool_name="Bash", title="still\nrunning\x1b[31m"))
        yield cli


def test_the_table_shows_the_newest_first_with_how_each_ended(recorded: Cli) -> None:
    ended = recorded.ok("log", "--utc")
    header, *rows = ended.lines
    assert header.split() == ["ID", "STARTED", "TOOL", "OUTCOME", "TIME", "OUTPUT", "CALL"]
    assert ended.message == ""
    ids = [row["id"] for row in recorded.ok("log", "--json").records]
    assert [row.split()[0] for row in rows] == [name[-8:] for name in ids]
    started = recorded.ok("log", "--json").records[0]["started_at"]
    assert rows[0].split()[1:3] == [started[:10], f"{started[11:19]}Z"]
    assert rows[0].split()[3:] == ["Bash", "running", "still", "running�[31m"]
    words = [row.split()[3:] for row in reversed(rows)]
    assert words[0][:2] == ["Bash", "ok"]
    assert words[0][-4:] == ["1.5", "kB", "make", "all"]
    assert words[1][:3] == ["shell", "exit", "1"]
    assert words[1][-2:] == ['{"a":', "1}"]
    assert words[2][:2] == ["Bash", "SIGKILL"]
    assert words[3][:2] == ["Bash", "timeout"]
    assert words[4][:3] == ["Read", "error:", "tool_execution_failed"]
    assert words[5][:2] == ["Read", "denied"]
    assert words[6][:2] == ["Read", "ok"]


def test_a_flag_repeated_is_or_and_different_flags_are_and(recorded: Cli) -> None:
    for flags, places in (
        ("--tool Bash", [1, 3, 4, 8]),
        ("--tool Bash --tool shell", [1, 2, 3, 4, 8]),
        ("--tool Bash --exit-code 0", [1]),
        ("--family file_read", [5, 6, 7]),
        ("--family file_read --family command", [1, 2, 3, 4, 5, 6, 7, 8]),
        ("--state started", [8]),
        ("--state denied --state error", [5, 6]),
        ("--ok", [1, 7]),
        ("--failed", [2, 3, 4, 5, 6]),
        ("--failed --session @last", [4, 5, 6]),
        ("--outcome exit --outcome denied", [2, 6]),
        ("--outcome running", [8]),
        ("--timed-out", [4]),
        ("--ok --timed-out", [1, 4, 7]),
        ("--signal KILL", [3]),
        ("--signal 9 --signal sigterm", [3]),
        ("--exit-code !=0", [2, 4]),
        ("--exit-code !=0 --exit-code !=143", [2]),
        ("--error-kind permission_denied", [6]),
        ("--agent Ada", [1, 2, 3]),
        ("--agent Ada --agent Bob --exit-code 143 --exit-code 1", [2, 4]),
        ("--exit-code 1", [2]),
        ("--min-size 1500", [1]),
        ("--min-size 1501", []),
        ("--min-size 1.46484k", [1]),
        ("--min-size 1.4649k", []),
        ("--min-size 0 --tool Bash", [1, 3, 4]),
        ("--session @last", [4, 5, 6, 7, 8]),
        ("--session @last --tool Bash --failed", [4]),
        ("--since 1h", [1, 2, 3, 4, 5, 6, 7, 8]),
        ("--since 2999-01-01", []),
        ("--until 1h", []),
        ("--until 2999-01-01 --since 2020-01-01", [1, 2, 3, 4, 5, 6, 7, 8]),
        ("--since yesterday --until now", [1, 2, 3, 4, 5, 6, 7, 8]),
    ):
        everything = recorded.ok("log", "--reverse", "--json").records
        ended = recorded.ok("log", "--reverse", "--json", *flags.split())
        assert ended.records == [everything[place - 1] for place in places]
        assert ended.message == ""


def test_since_and_until_are_exact_to_the_microsecond(recorded: Cli) -> None:
    moments = [row["started_at"] for row in recorded.ok("log", "--reverse", "--json").records]
    since = recorded.ok("log", "--reverse", "--json", "--since", moments[2]).records
    until = recorded.ok("log", "--reverse", "--json", "--until", moments[2]).records
    assert [row["started_at"] for row in since] == moments[2:]
    assert [row["started_at"] for row in until] == moments[:2]
    assert datetime.fromisoformat(moments[0]).tzinfo == UTC


def test_a_list_that_was_cut_says_so_and_how_to_go_on(recorded: Cli) -> None:
    ended = recorded.ok("log", "-n", "3", "--tool", "Bash", "--json")
    cursor = ended.message.split()[-4]
    assert ended.message == f"3 of 4; -n 0 for all, --cursor {cursor} for the next\n"
    assert len(ended.records) == 3
    assert recorded.ok("log", "-n", "8").message == ""
    assert recorded.ok("log", "-n", "0").message == ""


def test_every_style_prints_the_same_facts(recorded: Cli) -> None:
    records = recorded.ok("log", "--json").records
    assert list(records[0]) == FIELDS
    lines = recorded.ok("log", "--ndjson").lines
    assert [json.loads(line) for line in lines] == records
    rows = list(csv.DictReader(io.StringIO(recorded.ok("log", "--csv").text)))
    assert list(rows[0]) == FIELDS
    assert rows == [
        {name: "" if value is None else str(value) for name, value in record.items()}
        for record in records
    ]


def test_fields_are_printed_in_the_order_that_was_asked_for(recorded: Cli) -> None:
    ended = recorded.ok("log", "--fields", "tool_name, seq", "-n", "1")
    assert ended.text == '[{"tool_name": "Bash", "seq": 5}]\n'
    assert recorded.ok("log", "--csv", "--fields", "seq", "-n", "2").text == "seq\n5\n4\n"


def test_an_unknown_field_names_those_that_there_are(cli: Cli) -> None:
    ended = cli.run("log", "--fields", "id,nope")
    assert (ended.code, ended.stdout) == (2, b"")
    assert ended.usage_error == f"unknown field nope; there are {', '.join(FIELDS[1:])}"


def test_an_empty_store_has_an_empty_list(cli: Cli) -> None:
    assert len(cli.ok("log").lines) == 1
    assert cli.ok("log", "--json").text == "[]\n"
    assert cli.ok("log", "--ndjson").text == ""
    assert cli.ok("log", "--csv").text == ",".join(FIELDS) + "\n"


def test_what_no_encoding_can_carry_is_spelled_out(cli: Cli) -> None:
    with cli.open() as store, store.open_session() as session:
        invocation = session.start(ToolCall(tool_name="Bash", call_id="\ud800\0", title="\udcff"))
        invocation.finish(command_output(invocation))
    (row,) = cli.ok("log", "--json").records
    assert row["call_id"] == "\\ud800\\0"
    assert cli.ok("log").lines[1].endswith("\\udcff")
