"""A session read back through the command line."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.cli import Cli, on_a_terminal
from tests.support.recording import run_command, say

from tooltrail.records import ToolCall, estimate_tokens


@pytest.fixture
def recorded(cli: Cli) -> Iterator[Cli]:
    """A store whose last call runs."""
    with cli.open() as store:
        session = store.open_session(title="talk")
        say(session, "user", "run it\nplease \ud800")
        run_command(session, b"done\n")
        session.start(ToolCall(tool_name="Bash", arguments_raw="{"))
        yield cli


def test_text_is_the_default_and_each_format_has_its_name(recorded: Cli) -> None:
    text = recorded.ok("transcript").text
    assert text.startswith("Session ")
    assert text == recorded.ok("transcript", "--format", "text").text
    assert recorded.ok("transcript", "--format", "markdown").text.startswith("# talk\n")
    as_json = recorded.ok("transcript", "--format", "json").text
    assert as_json == recorded.ok("transcript", "--json").text
    assert json.loads(as_json)["schema_version"] == 1


def test_lone_surrogates_are_spelled_out_and_in_json_come_back(recorded: Cli) -> None:
    assert "  please \\ud800\n" in recorded.ok("transcript").text
    entries = json.loads(recorded.ok("transcript", "--json").text)["entries"]
    assert entries[0]["text"] == "run it\nplease \ud800"


def test_the_session_is_named_by_the_argument_else_by_the_variable_else_the_last(
    recorded: Cli,
) -> None:
    talk = recorded.ok("session", "ls", "--json").records[0]["id"]
    last = recorded.ok("session", "open", "--title", "later").text.strip()
    assert recorded.ok("transcript").lines[0].startswith(f"Session {last} later")
    assert recorded.ok("transcript", talk[-6:]).lines[0].startswith(f"Session {talk} talk")
    recorded.environment["TOOLTRAIL_SESSION"] = talk
    assert recorded.ok("transcript").lines[0].startswith(f"Session {talk} talk")


def test_a_file_gets_what_would_be_printed(recorded: Cli, tmp_path: Path) -> None:
    for style in ("text", "markdown", "json"):
        path = tmp_path / "talk"
        ended = recorded.ok("transcript", "--format", style, "-o", str(path))
        assert (ended.text, ended.message) == ("", "")
        assert path.read_bytes() == recorded.ok("transcript", "--format", style).stdout
        assert recorded.ok("transcript", "-o", "-").text.startswith("Session ")


def test_a_file_that_cannot_be_written_is_said(recorded: Cli, tmp_path: Path) -> None:
    ended = recorded.run("transcript", "-o", str(tmp_path / "no" / "talk"))
    assert ended.code == 5
    assert ended.sentence == (
        f"{tmp_path / 'no' / 'talk'} cannot be written: No such file or directory"
    )
    ended = recorded.run("transcript", "-o", str(tmp_path))
    assert (ended.code, ended.stdout) == (2, b"")
    assert "is a directory" in ended.usage_error


def test_a_transcript_that_cannot_be_read_leaves_the_file_as_it_was(
    recorded: Cli, tmp_path: Path
) -> None:
    path = tmp_path / "talk"
    path.write_text("before")
    assert recorded.run("transcript", "feedbeef", "-o", str(path)).code == 3
    assert path.read_text() == "before"


def test_on_a_terminal_nothing_that_a_tool_printed_moves_the_cursor(cli: Cli) -> None:
    with cli.open() as store, store.open_session() as session:
        run_command(session, b"\x1b[2J wild\ttab\n")
    assert "\x1b[2J wild\ttab\n" in cli.ok("transcript").text
    seen = on_a_terminal(cli, "transcript", columns=80)
    assert "\x1b" not in seen
    assert "�[2J wild\ttab\n" in seen


LONG = b"".join(b"line %04d of a long log\n" % n for n in range(300))


@pytest.fixture
def long(cli: Cli) -> Cli:
    with cli.open() as store, store.open_session(title="long") as session:
        say(session, "user", "run it twice")
        run_command(session, LONG)
        run_command(session, LONG, exit_status=1)
    return cli


@pytest.mark.parametrize("style", ["text", "json"])
def test_a_budget_that_is_too_small_is_said_and_what_must_stay_stays(
    long: Cli, style: str, tmp_path: Path
) -> None:
    ended = long.run("transcript", "--format", style, "--compact", "10")
    assert ended.code == 4
    tokens = estimate_tokens(ended.text)
    assert ended.sentence == (
        f"the transcript has {tokens:,} tokens, more than 10: "
        "messages, arguments, the essentials of results, and receipts without a recorded result"
        " are never compacted"
    )
    assert "run it twice" in ended.text
    assert [ended.text.count(f"exit_status: {n}") for n in (0, 1)] == [1, 1]
    path = tmp_path / "talk"
    filed = long.run("transcript", "--format", style, "--compact", "10", "-o", str(path))
    assert (filed.code, filed.text, filed.sentence) == (4, "", ended.sentence)
    assert path.read_bytes() == ended.stdout


def test_the_compaction_of_a_policy_file_is_used(long: Cli) -> None:
    file = long.folder / "policy.toml"
    file.write_text("[compaction]\nmax_nodes = 0\n")
    usual = long.run("transcript", "--compact", "700").stdout
    named = long.run("transcript", "--compact", "700", "--policy", str(file)).stdout
    assert b"_preview" in usual
    assert b"_preview" not in named
    file.write_text("compaction = 5")
    refused = long.run("transcript", "--policy", str(file))
    assert refused.code == 2
    assert "not a policy: compaction: " in refused.message
