"""Options of the store before the command, as in `tooltrail --db FILE log`."""

import json
from pathlib import Path

import pytest
from tests.support.cli import Cli

from tooltrail.store import create_store


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Another store than that of the environment, with one session."""
    path = tmp_path / "other.db"
    with create_store(path) as store:
        store.open_session(name="other").close()
    return path


def test_the_option_before_the_command_wins_over_the_variable(cli: Cli, other: Path) -> None:
    assert len(cli.ok("session", "ls", "--json").records) == 0
    for spelled in (["--db", str(other)], [f"--db={other}"], ["--utc", "--db", str(other)]):
        assert len(cli.ok(*spelled, "session", "ls", "--json").records) == 1


def test_the_option_after_the_command_wins(cli: Cli, other: Path) -> None:
    for before, after, count in (("no-such.db", str(other), 1), (str(other), cli.database, 0)):
        ended = cli.ok("--db", before, "session", "ls", "--db", after, "--json")
        assert len(ended.records) == count
    ended = cli.ok("--db", str(other), "session", "ls", "--db", "", "--json")
    assert len(ended.records) == 1


def test_times_before_the_command(cli: Cli, other: Path) -> None:
    cli.environment["TZ"] = "Asia/Kathmandu"
    before, after, local = (
        cli.program(*one, "--db", str(other)).text
        for one in (["--utc", "session", "ls"], ["session", "ls", "--utc"], ["session", "ls"])
    )
    assert before == after != local
    cli.environment["TZ"] = "XYZ-99"  # Python refuses an offset of more than a day
    assert cli.program("session", "ls", "--db", str(other)).text == before


def test_a_spool_and_artifacts_before_the_command(nowhere: Cli, tmp_path: Path) -> None:
    roots = ("--artifacts", str(tmp_path / "root"), "--spool", str(tmp_path / "elsewhere"))
    nowhere.ok(*roots, "init")
    (status,) = nowhere.ok(*roots, "status", "--json").records
    assert json.dumps(status).count(str(tmp_path / "elsewhere"))
    assert (tmp_path / "root").is_dir()


def test_exec_and_hook_accept_them_too(cli: Cli, other: Path) -> None:
    named = ["--db", str(other), "--utc"]
    assert cli.program(*named, "exec", "--tool", "here", "--", "echo", "--db").text == "--db\n"
    assert cli.program(*named, "exec", "--db", cli.database, "--tool", "there", "true").code == 0
    event = {"session_id": "5e55", "hook_event_name": "PreToolUse", "tool_name": "Bash"}
    ended = cli.program(*named, "hook", "--agent", "codex", stdin=json.dumps(event).encode())
    assert (ended.code, ended.stdout, ended.message) == (0, b"", "")
    assert list(Path(f"{other}-spool", "hooks").iterdir())
    tools = [
        {one["tool_name"] for one in cli.ok("--db", database, "log", "--json").records}
        for database in (str(other), cli.database)
    ]
    assert tools == [{"here"}, {"there"}]


def test_hook_install_names_the_spool_of_the_store(cli: Cli, other: Path, tmp_path: Path) -> None:
    cli.environment["HOME"] = str(tmp_path)
    ended = cli.program("--db", str(other), "hook", "install", "claude-code")
    assert ended.code == 0, ended.message
    assert f"{other}-spool" in (tmp_path / ".claude" / "settings.json").read_text()


def test_commands_in_messages_name_the_store_that_the_line_names(cli: Cli, tmp_path: Path) -> None:
    missing = tmp_path / "no such.db"
    for line in (["--db", str(missing), "log"], ["log", f"--db={missing}"]):
        hint = cli.run(*line).sentence.partition("create one with ")[2]
        assert hint == f"`tooltrail --db '{missing}' init`"
    hint = cli.run("log", "--db", f"sqlite:///{missing}?password=secret").message
    assert "secret" not in hint
    for command in ("log", "status"):
        hint = cli.run(command, "--db", f"sqlite:///{missing}").sentence
        assert hint.endswith("create one with `tooltrail --db URL init`")
    hint = cli.run("log", "--db", str(tmp_path / "b.db"), "--artifacts", "s3://bucket/a").sentence
    assert hint.endswith(f"`tooltrail --db {tmp_path}/b.db --artifacts URL init`")
    cli.environment["TOOLTRAIL_DB"] = str(missing)
    assert cli.run("log").sentence.endswith("create one with `tooltrail init`")
