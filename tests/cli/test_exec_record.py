"""What exec records, when, and into which session."""

import json
import os
from typing import Any

import pytest
from tests.support.cli import PROGRAM, Cli

from tooltrail.records import DEFAULT_POLICY


def log_of(cli: Cli, *arguments: str) -> list[dict[str, object]]:
    return cli.ok("log", "--reverse", "-n", "0", "--json", *arguments).records


def rows(cli: Cli, sql: str) -> list[tuple[Any, ...]]:
    with cli.open() as store:
        _ = store.reader
        with store.database.read() as connection:
            return connection.query(sql)


def test_the_start_is_in_the_store_before_the_command_runs(cli: Cli) -> None:
    seen = cli.exec("--", *PROGRAM, "log", "--json", "--state", "started")
    assert (seen.code, seen.stderr) == (0, b"")
    (own,) = seen.records
    assert own["tool_name"] == "exec"
    assert own["finished_at"] is None
    assert str(own["arguments_preview"]).endswith("log --json --state started")
    (finished,) = log_of(cli)
    assert (finished["id"], finished["state"]) == (own["id"], "success")


def test_a_finished_command_has_its_three_surfaces_and_every_proof_holds(cli: Cli) -> None:
    cli.exec("--", "sh", "-c", "echo out; echo err >&2; seq 20000; exit 3")
    cli.ok("verify")
    with cli.open() as store:
        detail = store.reader.invocation("@last")
    summary = detail.summary
    assert (summary.state, summary.exit_status, summary.signal) == ("success", 3, None)
    assert (summary.family, summary.timed_out, summary.truncated) == ("command", False, True)
    assert summary.output_size == 4 + 4 + len("".join(f"{n}\n" for n in range(1, 20_001)))
    assert [stream.role for stream in detail.streams] == ["stdout", "stderr", "order"]
    assert detail.policy_digest == DEFAULT_POLICY.digest
    assert detail.receipt
    assert detail.receipt.text.startswith("Process exited with code 3\n")


def test_a_spooled_stream_that_is_shown_whole_is_a_body_and_every_proof_holds(cli: Cli) -> None:
    printed = cli.exec("--", "sh", "-c", "seq 4000").stdout
    assert 16_384 < len(printed) < 32_000
    cli.ok("verify", "--receipts")
    assert rows(cli, "SELECT count(*) FROM artifacts") == [(0,)]
    assert cli.ok("show", "--stream", "stdout").stdout == printed


def test_without_a_session_each_exec_opens_and_closes_its_own(cli: Cli) -> None:
    cli.exec("--", "true")
    cli.exec("--", "/no/such/command")
    sessions = cli.ok("session", "ls", "--json").records
    assert [view["invocation_count"] for view in sessions] == [1, 1]
    assert all(view["closed_at"] for view in sessions)
    environment = json.loads(sessions[0]["environment"])
    assert environment["cwd"] == os.getcwd()  # noqa: PTH109  as the program saw it


def test_a_session_that_is_named_takes_the_record_and_stays_open(cli: Cli) -> None:
    session = cli.ok("session", "open", "--title", "build").text.strip()
    cli.exec("--session", session, "--", "echo", "flag")
    cli.environment["TOOLTRAIL_SESSION"] = session
    cli.exec("--", "echo", "variable")
    del cli.environment["TOOLTRAIL_SESSION"]
    (view,) = cli.ok("session", "ls", "--json").records
    assert (view["invocation_count"], view["closed_at"]) == (2, None)
    first, second = (int(str(row["seq"])) for row in log_of(cli, "--session", session))
    assert second == first + 1


def test_the_flag_wins_over_the_variable(cli: Cli) -> None:
    named, other = (cli.ok("session", "open").text.strip() for _ in range(2))
    cli.environment["TOOLTRAIL_SESSION"] = other
    cli.exec("--session", named, "--", "true")
    del cli.environment["TOOLTRAIL_SESSION"]
    assert [row["session_id"] for row in log_of(cli)] == [named]


def test_a_closed_session_takes_the_record_all_the_same(cli: Cli) -> None:
    session = cli.ok("session", "open").text.strip()
    cli.ok("session", "close", session)
    ended = cli.exec("--session", session, "--", "echo", "ran")
    assert (ended.code, ended.stdout, ended.stderr) == (0, b"ran\n", b"")
    assert [row["session_id"] for row in log_of(cli)] == [session]
    assert [row["is_late"] for row in log_of(cli)] == [True]
    assert ", after its session was closed\n" in cli.ok("show").text
    cli.exec("--", "true")
    assert "after its session" not in cli.ok("show").text
    cli.ok("verify")


def test_a_session_is_opened_by_its_first_command_under_any_name(cli: Cli) -> None:
    for name in ("nightly build/7", "nightly build/7", "feedbeef"):
        assert cli.exec("--session", name, "--", "true").code == 0
    first, second, third = (row["session_id"] for row in log_of(cli))
    assert first == second != third
    views = cli.ok("session", "ls", "--json").records
    assert [view["closed_at"] for view in views] == [None, None]
    names = rows(cli, "SELECT name FROM sessions")
    assert {name for (name,) in names} == {"nightly build/7", "feedbeef"}
    assert rows(cli, "SELECT count(*) FROM rejected_facts") == [(0,)]


def test_a_name_joins_the_session_that_somebody_opened_with_more(cli: Cli) -> None:
    with cli.open() as store:
        session = store.open_session(name="build", title="the build", agent="builder")
    assert cli.exec("--session", "build", "--", "true").code == 0
    assert [row["session_id"] for row in log_of(cli)] == [str(session.id)]
    assert rows(cli, "SELECT count(*) FROM rejected_facts") == [(0,)]


def test_exec_within_exec_records_both(cli: Cli) -> None:
    ended = cli.exec("--tool", "Bash", "--", *PROGRAM, "exec", "--", "sh", "-c", "echo in; exit 5")
    assert (ended.code, ended.stdout, ended.stderr) == (5, b"in\n", b"")
    outer, inner = log_of(cli)
    assert (outer["tool_name"], inner["tool_name"]) == ("Bash", "exec")
    assert (outer["exit_status"], inner["exit_status"]) == (5, 5)
    assert outer["session_id"] != inner["session_id"]


@pytest.mark.parametrize("tool", ["Bash", "my build ✓", "Read"])
def test_whatever_the_tool_is_called_what_exec_ran_is_a_command(cli: Cli, tool: str) -> None:
    ended = cli.exec("--tool", tool, "--call-id", "call/1 ", "--", "sh", "-c", "echo hi; exit 1")
    assert (ended.code, ended.stdout, ended.stderr) == (1, b"hi\n", b"")
    (row,) = log_of(cli, "--tool", tool)
    assert (row["family"], row["state"], row["exit_status"]) == ("command", "success", 1)
    assert row["call_id"] == "call/1 "
    cli.ok("verify")


def test_verbose_says_which_invocation_it_became(cli: Cli) -> None:
    ended = cli.exec("-v", "--", "echo", "hi")
    (row,) = log_of(cli)
    assert ended.sentence == f"recorded {row['id']}"


def test_the_record_says_what_was_asked_for(cli: Cli) -> None:
    cli.exec("--cwd", "/", "--timeout", "7.25", "--", "printf", "%s", "a b")
    arguments = json.loads(cli.ok("show", "--surface", "input").text)
    assert arguments == {"argv": ["printf", "%s", "a b"], "cwd": "/", "timeout_ms": 7250}
    assert log_of(cli)[0]["arguments_preview"] == "printf %s 'a b'"


def test_commands_of_one_session_keep_their_environments(cli: Cli) -> None:
    for _ in range(3):
        assert cli.exec("--session", "shared", "--", "true").code == 0
    assert cli.ok("verify").text == ""
