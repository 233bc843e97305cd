"""Agents on the command line."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.agents.recorded import record_leg, version
from tests.support.agents.scenarios import EXAMPLES, GOOD
from tests.support.agents.scripted_provider import (
    Delivery,
    ScriptedProvider,
    Step,
    scripted_provider,
)
from tests.support.agents.spelled_answers import Call, asks, says
from tests.support.altering import alter
from tests.support.cli import PROGRAM, Cli
from tests.support.waiting import until

from tooltrail.agents import load_agent
from tooltrail.store import iter_legs

REVIEWER = str(EXAMPLES / "reviewer")
SUBMITS = asks(Call("submit_result", GOOD["reviewer"], "c1"))
HEAD = "schema: kb.agent/1\nid: a\nname: A\n"


@pytest.fixture
def made(cli: Cli) -> Cli:
    cli.ok("init")
    return cli


@pytest.fixture
def provider() -> Iterator[ScriptedProvider]:
    with scripted_provider() as started:
        yield started


def run(cli: Cli, provider: ScriptedProvider, *script: Step, more: tuple[str, ...] = ()) -> Any:
    provider.script[:] = script
    return cli.run("agents", "run", REVIEWER, "--task", "Look.", *at(provider), *more)


def at(provider: ScriptedProvider) -> tuple[str, ...]:
    """The options that name a provider."""
    return ("--base-url", f"{provider.url}/v1", "--format", "openai", "--model", "m")


def test_a_file_name_drives_no_terminal_and_begins_no_line(cli: Cli) -> None:
    cli.folder.joinpath("a\x1b[2J\u202e\nb.yml").write_text("id: a\n")
    ended = cli.run("agents", "check", str(cli.folder))
    assert ended.code == 1
    assert (lines := ended.message.splitlines())
    assert all(line.startswith(f"{cli.folder}/a\ufffd[2J\ufffd\ufffdb.yml:") for line in lines)


def test_the_examples_check(cli: Cli) -> None:
    ended = cli.ok("agents", "check", str(EXAMPLES))
    header, *rows = ended.lines
    assert header.split() == ["FILE", "AGENT", "VERSION", "TIERS", "TOOLS", "RESULT", "VERDICT"]
    assert [row.split()[1] for row in rows] == ["implementer", "researcher", "reviewer", "tester"]
    assert {row.split()[-1] for row in rows} == {"ok"}
    assert ended.message == ""
    records = cli.ok("agents", "check", str(EXAMPLES), "--json").records
    config = load_agent(EXAMPLES / "implementer" / "agent.yml")
    assert records[0]["agent_digest"] == config.version_record.digest
    assert records[0]["tools"][0] == "fs:read"
    assert records[0]["problems"] == []


def test_problems_are_told_with_file_and_line_and_the_exit_says_so(
    cli: Cli, tmp_path: Path
) -> None:
    (tmp_path / "good.yml").write_text(HEAD + "model: m\n")
    bad = tmp_path / "bad.yml"
    bad.write_text(HEAD.replace("id: a", "id: b") + "limits: {maxStep: 5}\n")
    ended = cli.run("agents", "check", str(tmp_path))
    assert ended.code == 1
    message = "unknown key `maxStep`, did you mean `maxSteps`?"
    assert ended.message == f"{bad}:4: limits.maxStep: {message}\n"
    assert [row.split()[-1] for row in ended.lines[1:]] == ["problem", "ok"]
    records = cli.run("agents", "check", str(tmp_path), "--json").records
    assert records[0]["problems"] == [
        {"line": 4, "column": 10, "place": "limits.maxStep", "message": message}
    ]
    (tmp_path / "empty").mkdir()
    assert cli.run("agents", "check", str(tmp_path / "empty")).code == 3
    assert cli.run("agents", "check", str(tmp_path / "missing")).code == 2


@pytest.mark.parametrize("options", [(), ("--strict",)])
def test_a_tool_that_is_not_built_in_is_only_warned_of(
    cli: Cli, tmp_path: Path, options: tuple[str, ...]
) -> None:
    file = tmp_path / "agent.yml"
    file.write_text(HEAD + "tools: [fs:raed, artifact:grep, shell:run, nope]\n")
    ended = cli.ok("agents", "check", str(tmp_path), *options)
    begin, said = f"warning: {file}:4: ", "no built-in tool has the name"
    assert ended.message.splitlines() == [
        f"{begin}tools[0]: {said} `fs:raed`, did you mean `fs:read`?",
        f"{begin}tools[3]: {said} `nope`",
    ]


def test_the_agents_of_a_project_are_checked_and_unknown_sections_are_warned_of(
    cli: Cli, tmp_path: Path
) -> None:
    file = tmp_path / ".kb" / "agents" / "researcher" / "agent.yml"
    file.parent.mkdir(parents=True)
    file.write_text(HEAD + "policies: {a: 1}\noutput: {}\n")
    (tmp_path / "compose.yml").write_text("services: {}\n")
    ended = cli.ok("agents", "check", str(tmp_path))
    assert [row.split()[-2:] for row in ended.lines[1:]] == [["2", "warnings"]]
    unknown = f"{file}:4: policies: unknown key `policies`"
    legacy = f"{file}:5: output: there is no `schema`: the agent answers in free text"
    assert ended.message == f"warning: {unknown}\nwarning: {legacy}\n"
    [record] = cli.ok("agents", "check", str(tmp_path), "--json").records
    assert (record["agent_id"], record["problems"], len(record["warnings"])) == ("a", [], 2)
    refused = cli.run("agents", "check", str(tmp_path), "--strict")
    assert (refused.code, refused.message) == (1, f"{unknown}\n{legacy}\n")


def test_a_run_prints_its_result_alone_on_stdout(made: Cli, provider: ScriptedProvider) -> None:
    ended = run(made, provider, says("I look.", Call("fs_list", {}, "c0")), SUBMITS)
    assert ended.code == 0, ended.message
    assert json.loads(ended.text) == GOOD["reviewer"]
    told = ended.message.splitlines()
    assert told[0] == "agent reviewer begins with tier default: m"
    assert "calls fs_list" in told
    assert "submitted: accepted at attempt 1" in told
    assert told[-1].startswith("submitted after 1 leg; see `tooltrail transcript ")
    name = told[-1].rpartition(" ")[2].rstrip("`")
    shown = made.ok("transcript", name)
    assert "agent reviewer begins with tier default" in shown.text
    assert provider.refused == []
    quiet = run(made, provider, SUBMITS, more=("-q", "--json"))
    assert quiet.message == ""
    [record] = quiet.records
    assert (record["outcome"], record["value"]) == ("submitted", GOOD["reviewer"])
    assert record["legs"][0]["attempt_count"] == 1


def test_a_run_without_a_result_is_incomplete(made: Cli, provider: ScriptedProvider) -> None:
    ended = run(made, provider, says("No."), says("No."))
    assert (ended.code, ended.text) == (4, "")
    reason = "Agent did not call submit_result tool: the model stopped without a valid result"
    assert f"result_not_submitted: {reason}" in ended.message


def test_the_task_may_come_from_standard_input(made: Cli, provider: ScriptedProvider) -> None:
    provider.script[:] = [SUBMITS]
    command = (*PROGRAM, "agents", "run", REVIEWER, "--task", "-", *at(provider))
    ended = subprocess.run(
        command,
        input=b"Look at \xc3\xa4.",
        capture_output=True,
        env=made.full_environment,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert provider.requests[0][2]["messages"][-1]["content"] == "Look at \u00e4."


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--task", "x"), 2, "names no format; pass --format"),
        (("--task", "x", "--format", "openai", "--base-url", "nowhere"), 2, "is not a URL"),
        (("--task", "x", "--format", "mcp"), 2, "'mcp' is not one of"),
        (("--format", "openai"), 2, "Missing option '--task'"),
        (("--task", "x", "--format", "openai", "--api-key-env", "NO_SUCH_KEY"), 2, "NO_SUCH_KEY"),
        (("--task", "x", "--format", "openai", "--root", "/nowhere"), 2, "/nowhere"),
        (("--task", "x", "--format", "openai", "--parent", "@last"), 3, "no session yet"),
    ],
)
def test_what_cannot_run_says_why(
    made: Cli, arguments: tuple[str, ...], code: int, words: str
) -> None:
    ended = made.run("agents", "run", REVIEWER, *arguments)
    assert (ended.code, ended.text) == (code, "")
    assert words in ended.message
    assert "Traceback" not in ended.message


def test_tools_that_write_and_run_commands_are_to_be_allowed(
    made: Cli, provider: ScriptedProvider
) -> None:
    ended = made.run("agents", "run", str(EXAMPLES / "tester"), "--task", "x", *at(provider))
    assert ended.code == 2
    assert "names missing tools: ['fs:write', 'fs:edit', 'shell:run']" in ended.message


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_a_run_and_the_record_says_so(
    made: Cli, provider: ScriptedProvider, number: signal.Signals
) -> None:
    provider.script[:] = [Delivery(SUBMITS, "hangs")]
    command = (*PROGRAM, "agents", "run", REVIEWER, "--task", "x", *at(provider))
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=made.full_environment
    ) as process:
        until(lambda: bool(provider.requests))
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert b"Traceback" not in said
    with made.open() as store:
        [leg] = iter_legs(store.reader)
    assert leg.ended is not None
    assert leg.ended.outcome == "cancelled"


def test_a_run_that_is_killed_is_repaired_and_counted_as_lost(
    made: Cli, provider: ScriptedProvider, tmp_path: Path
) -> None:
    slow = asks(Call("shell_run", {"command": "echo said; echo $$ > pid; sleep 60"}, "c1"))
    provider.script[:] = [slow]
    allowed = ("--root", str(tmp_path), "--allow-writes", "--allow-commands")
    command = (
        *PROGRAM,
        "agents",
        "run",
        str(EXAMPLES / "tester"),
        "--task",
        "x",
        *at(provider),
        *allowed,
    )
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=made.full_environment
    ) as process:
        until(lambda: (tmp_path / "pid").exists() and bool((tmp_path / "pid").read_text()))
        until(lambda: any(one.stat().st_size for one in made.spool.glob("*/stdout.zst")))
        process.kill()
        process.wait(60)
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    made.ok("repair")
    [call] = made.ok("log", "--json").records
    assert (call["tool_name"], call["state"]) == ("shell_run", "interrupted")
    assert made.ok("artifact", "cat", call["id"]).stdout == b"said\n"
    with made.open() as store:
        [leg] = iter_legs(store.reader)
    assert leg.ended is None
    [whole, _] = made.ok("agents", "stats", "--json").records
    # Its time is not over, so that nobody can tell yet.
    assert (whole["count"], whole["open_count"], whole["success_count"]) == (1, 1, 0)
    assert made.run("verify").code == 0


def test_a_damaged_run_hides_no_other(made: Cli) -> None:
    agents = [load_agent(EXAMPLES / name).version_record for name in ("reviewer", "tester")]
    with made.open() as store:
        for agent in agents:
            record_leg(store, agent=agent)
        store.ingest()
        alter(store, "UPDATE agent_legs SET agent = 'x', started_at = 'x' WHERE message_key = 1")
    for command, said in (("ls", "digest holds no digest"), ("stats", "started_at holds no time")):
        ended = made.run("agents", command)
        assert ended.code == 1
        assert "tester" in ended.text
        assert "reviewer" not in ended.text
        assert ended.sentence.startswith("row 1 of agent_legs is damaged: ")
        assert said in ended.sentence
        assert "`tooltrail verify`" in ended.sentence
        assert {one["agent_id"] for one in made.run("agents", command, "--json").records} == {
            "tester"
        }


def test_a_version_that_is_no_configuration_is_listed_without_its_schema(made: Cli) -> None:
    with made.open() as store:
        record_leg(store, agent=version("other"))
        record_leg(store, agent=load_agent(EXAMPLES / "tester").version_record)
    ended = made.run("agents", "ls", "--json")
    assert ended.code == 1
    assert [one["schema_digest"] is None for one in ended.records] == [True, False]
    assert "a recorded version of an agent cannot be read" in ended.message
    assert [line.split()[1] for line in made.run("agents", "ls").lines[1:]] == ["other", "tester"]


def test_statistics_are_one_command(made: Cli, provider: ScriptedProvider) -> None:
    run(made, provider, SUBMITS)
    bad = asks(Call("submit_result", {"summary": "x", "issues": []}, "c1"))
    run(made, provider, bad, SUBMITS)
    run(made, provider, says("No."), says("No."))
    ended = made.ok("agents", "stats")
    runs, errors = ended.text.split("\n\n")
    header, whole, tier = runs.splitlines()
    assert header.split()[:6] == ["AGENT", "SCHEMA", "TIER", "RUNS", "OPEN", "OK"]
    cells = whole.split()
    assert (cells[0], cells[2], cells[3:6]) == ("reviewer", "(all)", ["3", "0", "2"])
    assert cells[6:12] == ["66.7%", "33.3%", "3", "1", "1", "0"]
    assert tier.split()[2] == "default"
    assert errors.splitlines()[1].split()[2:] == ["1", "approved"]
    [record, _] = made.ok("agents", "stats", "--json", "--agent", "reviewer").records
    assert (record["count"], record["success_count"], record["missing_count"]) == (3, 2, 1)
    assert record["errors"] == {"approved": 1}
    assert record["outcomes"] == {"submitted": 2, "result_not_submitted": 1}
    assert made.ok("agents", "stats", "--json", "--agent", "nobody").records == []
    assert made.ok("agents", "stats", "--json", "--until", "yesterday").records == []


def test_escalations_are_told(made: Cli) -> None:
    with made.open() as store:
        first = record_leg(store, "model_failed", ended={"escalated_to": "large"})
        record_leg(store, "submitted", run_id=first, position=1, tier="large")
    text = made.ok("agents", "stats").text
    assert "small → large: model_failed" in text
    [whole, _, _] = made.ok("agents", "stats", "--json").records
    assert whole["escalations"] == [
        {"from": "small", "to": "large", "outcome": "model_failed", "count": 1}
    ]


def test_versions_are_listed_and_compared(
    made: Cli, provider: ScriptedProvider, tmp_path: Path
) -> None:
    run(made, provider, SUBMITS)
    [version] = made.ok("agents", "ls", "--json").records
    assert (version["agent_id"], version["version"]) == ("reviewer", "1")
    row = made.ok("agents", "ls", "--utc").lines[1].split()
    assert row[:3] == [version["agent_digest"][:19], "reviewer", "1"]
    newer = tmp_path / "newer.yml"
    text = (EXAMPLES / "reviewer" / "agent.yml").read_text()
    newer.write_text(text + "      minutes: {type: integer}\n")
    name = version["agent_digest"][7:19]
    ended = made.ok("agents", "diff", name, str(newer), "--stored")
    assert ended.lines[1].split()[:3] == ["compatible", "field_added", "minutes"]
    assert ended.message == "1 recorded result, 0 refused\n"
    assert made.ok("agents", "diff", REVIEWER, str(newer), "--json").records == [
        {
            "schema_version": 1,
            "effect": "compatible",
            "kind": "field_added",
            "path": "minutes",
            "detail": "it was not allowed before",
        }
    ]
    stricter = tmp_path / "stricter.yml"
    stricter.write_text(text.replace("approved]", "approved, overallQuality]"))
    broken = made.run("agents", "diff", name, str(stricter), "--stored")
    assert broken.code == 1
    assert broken.lines[1].split()[:3] == ["breaking", "required_added", "overallQuality"]
    assert broken.message.splitlines()[0] == "1 recorded result, 1 refused"
    assert made.run("agents", "diff", REVIEWER, "sha256:0000").code == 3
    (tmp_path / "text.yml").write_text(HEAD)
    assert (
        "its result is free text"
        in made.run("agents", "diff", REVIEWER, str(tmp_path / "text.yml")).message
    )
    assert made.run("agents", "diff", REVIEWER, str(tmp_path)).code == 3


def test_an_agent_without_a_schema_prints_its_text(
    made: Cli, provider: ScriptedProvider, tmp_path: Path
) -> None:
    (tmp_path / "agent.yml").write_text(HEAD)
    provider.script[:] = [says("It is 3.")]
    ended = made.run("agents", "run", str(tmp_path), "--task", "x", *at(provider))
    assert (ended.code, ended.text) == (0, "It is 3.\n")
    assert "says: It is 3." in ended.message
    header, whole, _ = made.ok("agents", "stats").lines
    assert whole.split()[1] == "(text)"
    assert len(header) > 0


def test_the_workspace_is_imported_only_for_a_check() -> None:
    code = (
        "import sys, tooltrail.cli._agent_lists\n"
        "print([one for one in sys.modules if one.startswith('tooltrail.workspace')])"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert ended.stdout.decode().splitlines() == ["[]"]


def test_nothing_of_it_is_imported_for_the_version() -> None:
    code = (
        "import sys; sys.argv=['tooltrail','agents','--help']; from tooltrail.cli._app import app\n"
        "try: app()\nexcept SystemExit: pass\n"
        "print(sorted({'jsonschema', 'httpx', 'yaml', 'sqlalchemy'} & set(sys.modules)))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert ended.stdout.decode().splitlines()[-1] == "[]"
