"""Statistics and retries on the command line."""

import csv
import io
import json
import re
import subprocess
from datetime import UTC, datetime, timedelta

import pytest
from tests.support.altering import alter
from tests.support.cli import Cli, on_a_terminal
from tests.support.ended import made
from tests.support.outputs import returned
from tests.support.recording import fail_tool, run_command, run_tool

from tooltrail.records import ToolCall
from tooltrail.store import EndedCall

HOSTILE = "mcp__x\x1b]52;c;aGk=\x07\u202e__run"
LINES = b"line\n" * 100
DAY = datetime(2026, 3, 1, 12, tzinfo=UTC)


def ended(tool: str, days: int, seconds: float, exit_status: int = 0) -> EndedCall:
    at = DAY + timedelta(days=days)
    call = ToolCall.of(tool, {"command": "make"})
    output = made(LINES, b"", exit_status) if tool == "Bash" else returned(tool, LINES.decode())
    return EndedCall(call, output, started_at=at, finished_at=at + timedelta(seconds=seconds))


@pytest.fixture
def recorded(cli: Cli) -> Cli:
    """Four calls of `Bash` on three days, and one of a tool with a hostile name."""
    with cli.open() as store, store.open_session(agent="Ada") as session:
        calls = [
            ended("Bash", 0, 1, 2),
            ended("Bash", 0, 2.5, 2),
            ended("Bash", 1, 3),
            ended("Bash", 3, 240),
            ended(HOSTILE, 3, 5),
        ]
        for _ in session.record_many(iter(calls)):
            pass
        store.ingest()
    return cli


def test_the_table_has_a_row_for_each_tool(recorded: Cli) -> None:
    header, bash, hostile = recorded.ok("stats").lines
    assert header.split() == ["TOOL", "CALLS", "FAILED", "P50", "P95", "P99", "TOTAL", "PRODUCED"]
    assert bash.split("  ")[0] == "Bash"
    cells = ["4", "2", "2.50 s", "4 min 0 s", "4 min 0 s", "4 min 6 s", "2 kB"]
    assert re.split(r" {2,}", bash)[1:] == cells
    assert hostile.startswith("mcp__x�]52;c;aGk=��__run")


def test_records_have_plain_numbers(recorded: Cli) -> None:
    (bash, hostile) = recorded.ok("stats", "--json").records
    assert bash == {
        "schema_version": 1,
        "tool": "Bash",
        "call_count": 4,
        "failed_count": 2,
        "outcomes": {"ok": 2, "exit": 2},
        "p50_ms": 2_500,
        "p95_ms": 240_000,
        "p99_ms": 240_000,
        "total_ms": 246_500,
        "produced_bytes": 2_000,
        "lost_bytes": 0,
        "shown_bytes": None,
        "cut_bytes": None,
        "stored_bytes": None,
        "duplicate_count": None,
        "damaged_count": 0,
    }
    assert hostile["tool"] == HOSTILE
    lines = recorded.ok("stats", "--ndjson", "--by", "day,agent", "--utc").lines
    assert [(one["day"], one["agent"]) for one in map(json.loads, lines)] == [
        (day, "Ada") for day in ("2026-03-04", "2026-03-02", "2026-03-01")
    ]
    rows = [*csv.reader(io.StringIO(recorded.ok("stats", "--csv", "--fields", "tool,p50_ms").text))]
    assert rows == [["tool", "p50_ms"], ["Bash", "2500"], [HOSTILE, "5000"]]


def test_surfaces_are_counted_if_they_are_asked_for(recorded: Cli) -> None:
    for arguments in (
        ["--surfaces"],
        ["--sort", "duplicates"],
        ["--fields", "tool,duplicate_count"],
    ):
        style = ["--json"] if arguments[0] != "--fields" else []
        bash = recorded.ok("stats", *arguments, *style).records[0]
        assert (bash["tool"], bash["duplicate_count"]) == ("Bash", 3)
    header = recorded.ok("stats", "--surfaces").lines[0]
    assert header.split()[-4:] == ["SHOWN", "CUT", "STORED", "DUPLICATES"]


def test_bytes_are_counted_as_cut_like_in_a_log(cli: Cli) -> None:
    with cli.open() as store, store.open_session() as session:
        run_command(session, b"\0\xff" * 10)  # the model is shown that the output is binary
        run_command(session, b"x" * 100_000)
    calls = cli.ok("log", "--sort", "cut", "--json").records
    (bash,) = cli.ok("stats", "--surfaces", "--json").records
    assert len(calls) == 2
    assert bash["cut_bytes"] == sum(one["cut_size"] for one in calls)


def test_groups_are_sorted_cut_and_filtered(recorded: Cli) -> None:
    for arguments, days in (
        ("--by day", ["04", "02", "01"]),
        ("--by day --reverse", ["01", "02", "04"]),
        ("--by day --sort failed", ["01", "02", "04"]),
        ("--by day --sort p95", ["04", "02", "01"]),
        ("--by day --sort total --reverse", ["02", "01", "04"]),
        ("--by day -n 1", ["04"]),
        ("--by day --by tool", ["04", "02", "01"]),
        ("--by day --failed", ["01"]),
        ("--by day --since 2026-03-02", ["04", "02"]),
    ):
        printed = recorded.ok("stats", "--tool", "Bash", "--utc", "--json", *arguments.split())
        found = [one["day"][-2:] for one in printed.records]
        assert found == days
        assert ("1 of 3 groups; -n 0 for all" in printed.message) == ("-n 1" in arguments)


def test_an_empty_store_prints_a_header(cli: Cli) -> None:
    assert cli.ok("stats").lines == ["TOOL  CALLS  FAILED  P50  P95  P99  TOTAL  PRODUCED"]
    assert cli.ok("stats", "--json").records == []
    assert cli.ok("retries", "--json").records == []


def test_damage_is_reported(recorded: Cli) -> None:
    with recorded.open() as store:
        alter(store, "UPDATE invocations SET duration_ms = 'long' WHERE seq = 1")
    ended = recorded.ok("stats", "--json")
    assert ended.records[0]["p50_ms"] == 3_000
    assert ended.message == (
        "1 call with damaged values, which do not count; `tooltrail verify` names them\n"
    )


@pytest.mark.parametrize("columns", [80, 160])
def test_a_terminal_shows_bars_and_days(recorded: Cli, columns: int) -> None:
    seen = on_a_terminal(recorded, "stats", columns=columns)
    header, bash, hostile = seen.splitlines()
    assert ("  ████████  " in bash, "  ██  " in hostile) == (columns == 160, columns == 160)
    assert ("LAST 28 DAYS" in header) == (columns == 160)
    assert bash.endswith("█▄ ▄") == (columns == 160)
    assert "\x1b]" not in seen
    plain = seen.replace("\x1b[31m", "").replace("\x1b[0m", "")
    assert max(map(len, plain.splitlines())) <= columns


def test_retries_say_how_each_attempt_ended(recorded: Cli) -> None:
    with recorded.open() as store, store.open_session() as session:
        run_tool(session, "text")
        fail_tool(session)
        run_command(session, call=ToolCall.of("Bash", {"command": "make"}))
        store.ingest()
    (read, bash) = recorded.ok("retries", "--json").records
    assert (read["tool_name"], read["attempt_count"], read["is_changed"]) == ("Read", 2, True)
    assert (bash["tool_name"], bash["attempt_count"], bash["is_changed"]) == ("Bash", 4, True)
    outcomes = [one["outcome"] for one in bash["attempts"]]
    assert outcomes == ["exit 2", "exit 2", "ok", "ok"]
    header, *rows = recorded.ok("retries").lines
    assert header.split() == ["SESSION", "LAST", "TOOL", "TIMES", "CHANGED", "OUTCOMES", "CALL"]
    assert "  4  yes      exit 2 x2 → ok x2  " in rows[1]
    assert "  2  yes      ok → error: tool_execution_failed  " in rows[0]
    cut = recorded.ok("retries", "-n", "1")
    assert len(cut.lines) == 2
    assert cut.message == "1 listed; -n 0 for all\n"


@pytest.mark.parametrize("command", ["retries", "session ls", "artifact ls", "log", "stats"])
def test_the_note_about_a_shortened_list_follows_the_list(recorded: Cli, command: str) -> None:
    with recorded.open() as store, store.open_session() as session:
        for text in ("a", "b") * 2:
            run_command(session, text.encode() * 70_000)
    words = (*command.split(), "-n", "1")
    whole = recorded.program(*words, stderr=subprocess.STDOUT)
    assert re.search(r"^1 \S.*; -n 0 for all", whole.lines[-1])
    assert [line for line in whole.lines if "-n 0 for all" in line] == whole.lines[-1:]
    wrong = recorded.run(*words, "--fields", "nope")
    assert (wrong.code, "-n 0 for all" in wrong.message) == (2, False)
