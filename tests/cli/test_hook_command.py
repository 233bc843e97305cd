"""`tooltrail hook` as an agent runs it: always 0, silent, light, and without losses."""

import json
import os
import shlex
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from tests.importers.sources import claude_call, claude_line, claude_result, write_lines
from tests.support.cli import HANG_S, PROGRAM, Cli, Ended, clean_environment, without_coverage
from tests.support.waiting import until

SECRET = "ghp_" + "a1" * 18
SHELL = {"stdout": "out\n", "stderr": "", "interrupted": False}

FORBIDDEN = {
    *("click", "dataclasses", "datetime", "json", "pathlib", "subprocess", "uuid", "zstandard"),
    *("tooltrail.journal", "tooltrail.store", "tooltrail.importers.recording"),
}


def event(name: str, **more: Any) -> bytes:
    """An event of a command."""
    common = {"session_id": "5e55", "cwd": "/work", "hook_event_name": name}
    given = {"tool_name": "Bash", "tool_input": {"command": "make"}, "tool_use_id": "t1"}
    return json.dumps({**common, **given, **more}).encode()


def hook(cli: Cli, data: bytes, *arguments: str) -> Ended:
    """Run the hook, which may print nothing on stdout and must exit with 0."""
    ended = cli.program("hook", *arguments, stdin=data)
    assert (ended.code, ended.stdout) == (0, b"")
    return ended


def logged(cli: Cli) -> list[dict[str, Any]]:
    """The logged events in order."""
    files = sorted((cli.spool / "hooks").glob("*.jsonl"))
    return [json.loads(line)["event"] for one in files for line in one.read_text().splitlines()]


def grow_old(cli: Cli) -> None:
    """Let all logged events be as old as if the agent had written its transcript since."""
    for path in (cli.spool / "hooks").glob("*.jsonl"):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        older = [json.dumps({**line, "at": line["at"] - 9}) + "\n" for line in lines]
        path.write_text("".join(older))


def test_an_event_is_recorded_by_the_next_command_that_reads(cli: Cli) -> None:
    assert hook(cli, event("PreToolUse")).message == ""
    assert hook(cli, event("PostToolUse", tool_response=SHELL)).message == ""
    grow_old(cli)
    (record,) = cli.ok("log", "--json").records
    assert (record["tool_name"], record["state"]) == ("Bash", "success")
    assert cli.ok("show", "--stream", "stdout").stdout == b"out\n"


def test_the_first_event_makes_a_store(nowhere: Cli) -> None:
    nowhere.folder.mkdir()
    hook(nowhere, event("PreToolUse"))
    grow_old(nowhere)
    assert [row["state"] for row in nowhere.ok("log", "--json").records] == ["started"]


def test_only_the_owner_may_read_the_log(cli: Cli) -> None:
    hook(cli, event("PreToolUse"))
    folder = cli.spool / "hooks"
    assert folder.stat().st_mode & 0o77 == 0
    assert [one.stat().st_mode & 0o77 for one in folder.iterdir()] == [0]


@pytest.mark.parametrize(
    "data", [b"", b" \n", b"{", b"[1]", b"\xff\xfe\0", b'{"hook_event_name": "Later"}']
)
def test_odd_input_never_stops_the_agent(cli: Cli, data: bytes) -> None:
    assert hook(cli, data).message == ""
    cli.ok("log")


def test_a_result_with_half_a_character_is_shown(cli: Cli) -> None:
    hook(cli, event("PostToolUse", tool_name="Read", tool_response={"text": "cut \ud83d"}))
    grow_old(cli)
    (record,) = cli.ok("show", "--json").records
    assert record["damage"] is None
    assert "cut" in cli.ok("show", "--surface", "canonical").text
    cli.ok("verify")


def test_an_event_on_many_lines_is_one_event(cli: Cli) -> None:
    value = json.loads(event("PreToolUse"))
    hook(cli, json.dumps(value, indent=2).encode())
    assert logged(cli) == [value]


def test_a_problem_is_said_on_stderr_and_stops_nothing(cli: Cli) -> None:
    cli.spool.mkdir(exist_ok=True)
    (cli.spool / "hooks").write_text("in the way")
    ended = hook(cli, event("PreToolUse"))
    assert ended.message.startswith("tooltrail: the hook event is not recorded: ")
    assert hook(cli, b"{}", "--nonsense").message.endswith("no option --nonsense\n")


def test_a_full_disk_is_said_with_what_to_do(cli: Cli) -> None:
    limit = 'ulimit -f 1; exec "$@"'  # in units of at most 1,024 bytes
    first, second = (
        subprocess.run(
            ["sh", "-c", limit, "sh", *PROGRAM, "hook"],
            input=event("PreToolUse", more="x" * 5_000),
            capture_output=True,
            check=True,
            env={**clean_environment(), "TOOLTRAIL_SPOOL": str(cli.spool)},
        )
        for _ in range(2)  # a part of the first event fits, and nothing of the second
    )
    (path,) = (cli.spool / "hooks").iterdir()
    assert first.stdout == second.stdout == b""
    problem = f"tooltrail: the hook event is not recorded: {path}: "
    assert first.stderr.decode() == (
        f"{problem}No space left on device; "
        "free disk space, then import the transcript of the session\n"
    )
    assert second.stderr.decode() == f"{problem}File too large\n"


@pytest.mark.parametrize("arguments", [[], ["--agent", "codex"], ["--agent=codex"]])
def test_the_spool_and_the_agent_are_named(cli: Cli, arguments: list[str]) -> None:
    spool = cli.folder / "elsewhere"
    hook(cli, event("PreToolUse"), *arguments, "--spool", str(spool))
    (path,) = (spool / "hooks").iterdir()
    assert path.name.startswith("codex-" if arguments else "claude-code-")


def test_a_secret_is_replaced_before_it_is_stored(cli: Cli) -> None:
    given = {"command": f"curl -H 'Authorization: Bearer {SECRET}' https://a.example"}
    hook(cli, event("PreToolUse", tool_input=given))
    hook(cli, event("PostToolUse", tool_input=given, tool_response={**SHELL, "stdout": SECRET}))
    grow_old(cli)
    cli.ok("log")
    assert cli.ok("show", "--stream", "stdout").stdout == b"[REDACTED:github-token]"
    files = [one for one in cli.folder.rglob("*") if one.is_file()]
    assert files
    assert not any(SECRET.encode() in one.read_bytes() for one in files)


def test_a_user_may_keep_secrets(cli: Cli) -> None:
    hook(cli, event("PostToolUse", tool_response={**SHELL, "stdout": SECRET}), "--no-redact")
    grow_old(cli)
    cli.ok("log")
    assert cli.ok("show", "--stream", "stdout").stdout == SECRET.encode()


def test_the_end_of_a_session_imports_its_transcript(cli: Cli) -> None:
    lines = [
        claude_line("user", "build", 1),
        claude_call(2, "t1", "Bash", {"command": "make"}),
        claude_result(3, "t1", "out", SHELL, is_error=False),
    ]
    path = write_lines(cli.folder / "5e55.jsonl", lines)
    hook(cli, event("PostToolUse", tool_response=SHELL, transcript_path=str(path)))
    hook(cli, event("SessionEnd", reason="other", transcript_path=str(path)))
    journal = cli.spool / "journal"
    until(journal.is_dir)  # of the import that the hook has started
    until(lambda: list((cli.spool / "imports").glob("*")) != [])
    assert cli.ok("show", "@last", "--surface", "receipt").text == "out"


def test_a_spilled_output_is_imported_at_once(cli: Cli) -> None:
    spilled = cli.folder / "5e55" / "tool-results" / "out.txt"
    spilled.parent.mkdir(parents=True)
    spilled.write_bytes(b"line\n" * 9_000)
    response = {**SHELL, "persistedOutputPath": str(spilled), "persistedOutputSize": 45_000}
    transcript = str(cli.folder / "5e55.jsonl")  # not written yet
    hook(cli, event("PostToolUse", tool_response=response, transcript_path=transcript))
    until(lambda: any((cli.spool / "imports").glob("*")))
    spilled.unlink()
    assert cli.ok("show", "--stream", "stdout").stdout == b"line\n" * 9_000


def test_importing_events_is_a_command(cli: Cli) -> None:
    hook(cli, event("PreToolUse"))
    ended = cli.ok("import", "--hooks")  # waits for the newest event
    assert ended.lines[-1].split()[:1] == ["claude-code"]
    assert cli.ok("import", "--hooks").message == "0 new facts recorded, 0 known already\n"
    refused = cli.run("import", "--hooks", str(cli.folder))
    assert refused.usage_error == "--hooks has no path and no other option of an import"


def test_an_open_call_of_a_hook_cannot_be_followed(cli: Cli) -> None:
    hook(cli, event("PreToolUse"))
    cli.ok("import", "--hooks")
    assert "tail -f" not in cli.ok("show", "@last").text
    ended = cli.run("tail", "-f", "@last")
    assert ended.code == 4
    assert ended.sentence.endswith(
        ": a hook or an import recorded its start, so its output comes with its end"
    )


def test_forty_at_once_lose_nothing(cli: Cli) -> None:
    running: list[subprocess.Popen[bytes]] = []
    names = {f"t{number}" for number in range(40)}
    for name in names:
        process = cli.start("hook", stdin=subprocess.PIPE)
        assert process.stdin is not None
        process.stdin.write(event("PreToolUse", tool_use_id=name))
        running.append(process)
    for process in running:
        process.communicate()
    assert {one["tool_use_id"] for one in logged(cli)} == names


def test_a_hook_that_is_killed_loses_its_own_event_at_the_most(cli: Cli) -> None:
    sent = 6
    for number in range(sent):
        with cli.start("hook", stdin=subprocess.PIPE) as process:
            assert process.stdin is not None
            process.stdin.write(event("PreToolUse", tool_use_id=f"t{number}", more="x" * 60_000))
            process.stdin.close()
            time.sleep(number / 50)  # at another moment each time
            process.send_signal(signal.SIGKILL)
        hook(cli, event("PreToolUse", tool_use_id=f"after {number}"))
    grow_old(cli)
    found = {one["call_id"] for one in cli.ok("log", "-n", "0", "--json").records}
    assert found >= {f"after {number}" for number in range(sent)}


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Modules that are compiled once."""
    quiet = without_coverage(clean_environment())
    quiet.pop("PYTHONDONTWRITEBYTECODE", None)
    return {**quiet, "PYTHONPYCACHEPREFIX": str(tmp_path / "compiled")}


def test_a_hook_loads_neither_the_journal_nor_what_takes_time(
    environment: dict[str, str], tmp_path: Path
) -> None:
    command = [PROGRAM[0], "-X", "importtime", *PROGRAM[1:], "hook", "--spool", str(tmp_path)]
    done = subprocess.run(
        command, env=environment, input=event("PreToolUse"), capture_output=True, check=True
    )
    modules = {line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines()}
    assert "tooltrail.importers.hook_log" in modules
    assert {
        name for name in modules if any(f"{name}.".startswith(f"{one}.") for one in FORBIDDEN)
    } == set()


def settings(cli: Cli, text: str | None = None) -> Path:
    """The path of the settings, after `text` was written there."""
    path = Path(cli.environment["HOME"]) / ".claude" / "settings.json"
    if text is not None:
        path.parent.mkdir(parents=True)
        path.write_text(text, newline="")
    return path


@pytest.fixture
def at_home(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The command line of a user with a home folder, in a project."""
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    cli.environment["HOME"] = str(tmp_path / "home")
    return cli


def test_a_hook_is_installed_and_works(at_home: Cli) -> None:
    said = at_home.ok("hook", "install", "claude-code").message
    assert said == (
        f"installed the hook of claude-code in {settings(at_home)}\n"
        "new sessions of claude-code are recorded\n"
    )
    found = json.loads(settings(at_home).read_text())["hooks"]
    assert set(found) == {
        *("PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionDenied"),
        *("SubagentStart", "SubagentStop", "SessionStart", "SessionEnd"),
    }
    (group,) = found["PreToolUse"]
    (handler,) = group["hooks"]
    assert (handler["type"], handler["timeout"]) == ("command", 10)
    done = subprocess.run(
        handler["command"], shell=True, input=event("PreToolUse"), capture_output=True, check=True
    )
    assert (done.stdout, done.stderr) == (b"", b"")
    assert [one["tool_use_id"] for one in logged(at_home)] == ["t1"]


def test_installing_again_changes_nothing(at_home: Cli) -> None:
    at_home.ok("hook", "install", "claude-code")
    before = settings(at_home).read_bytes()
    assert at_home.ok("hook", "install", "claude-code").message.endswith("nothing was changed\n")
    assert settings(at_home).read_bytes() == before


@pytest.mark.parametrize("folder", ["my venv", "o'brien's venv"])
def test_a_program_in_a_folder_with_a_space_is_found_again(at_home: Cli, folder: str) -> None:
    at_home.ok("hook", "install", "codex", "--project")
    path = Path(".codex/hooks.json")
    program = shlex.quote(f"/no such/{folder}/bin/tooltrail")
    path.write_text(path.read_text().replace('"tooltrail hook', json.dumps(f"{program} hook")[:-1]))
    assert at_home.run("hook", "status", "--json", "codex").records[1]["events"] == 7
    at_home.ok("hook", "uninstall", "codex", "--project")
    assert "tooltrail" not in path.read_text()


def test_another_store_replaces_the_entries(at_home: Cli) -> None:
    at_home.ok("hook", "install", "claude-code")
    at_home.ok("hook", "install", "claude-code", "--spool", "/other/spool", "--no-redact")
    found = json.loads(settings(at_home).read_text())["hooks"]
    commands = [one["command"] for groups in found.values() for g in groups for one in g["hooks"]]
    assert len(commands) == 8
    assert all(one.endswith("--spool /other/spool --no-redact") for one in commands)


def test_the_settings_of_a_project_name_no_folder(at_home: Cli) -> None:
    at_home.ok("hook", "install", "codex", "--project")  # although a variable names the store
    handler = json.loads(Path(".codex/hooks.json").read_text())["hooks"]["Stop"][0]["hooks"][0]
    assert handler["command"] == "tooltrail hook --agent codex"


def test_removing_leaves_the_file_as_it_was(at_home: Cli) -> None:
    text = '{\n  // mine\n  "model": "opus"\n}\n'
    path = settings(at_home, text)
    at_home.ok("hook", "install", "claude-code")
    assert path.with_name("settings.json.before-tooltrail").read_text() == text
    said = at_home.ok("hook", "uninstall", "claude-code").message
    assert said == f"removed the hook of claude-code from {path}\n"
    assert path.read_text() == text
    again = at_home.ok("hook", "uninstall", "claude-code").message
    assert again == f"there is no hook of tooltrail in {path}; nothing was changed\n"


def test_the_status_says_where_hooks_are(at_home: Cli) -> None:
    at_home.ok("hook", "install", "claude-code")
    rows = [line.split() for line in at_home.ok("hook", "status").lines[1:]]
    assert [row[:3] for row in rows] == [
        ["claude-code", "user", "installed"],
        ["claude-code", "project", "not"],
        ["codex", "user", "not"],
        ["codex", "project", "not"],
    ]
    path = settings(at_home)
    found = json.loads(path.read_text())
    del found["hooks"]["PreToolUse"]
    path.write_text(json.dumps(found))
    ended = at_home.run("hook", "status", "claude-code")
    assert (ended.code, "missing: PreToolUse" in ended.text) == (4, True)
    counts = [one["events"] for one in at_home.run("hook", "status", "--json").records]
    assert counts == [7, 0, 0, 0]


@pytest.mark.parametrize(
    ("command", "program"),
    [
        ("/no/tooltrail hook", "/no/tooltrail"),
        ("no-program -m tooltrail.cli hook '", "no-program -m tooltrail.cli hook '"),
    ],
)
def test_a_hook_whose_program_does_not_exist_is_not_installed(
    at_home: Cli, command: str, program: str
) -> None:
    at_home.ok("hook", "install", "codex", "--project")
    path = Path(".codex/hooks.json")
    path.write_text(path.read_text().replace("tooltrail hook --agent codex", command))
    ended = at_home.run("hook", "status", "codex")
    assert (ended.code, f"no such program: {program}  " in ended.text) == (4, True)


def test_settings_that_cannot_be_read_hide_no_others(at_home: Cli) -> None:
    at_home.ok("hook", "install", "codex")
    path = settings(at_home, "{")
    ended = at_home.run("hook", "status", "--json")
    assert (ended.code, f"{path} cannot be used: it is not JSON" in ended.message) == (2, True)
    states = [(one["agent"], one["hook"]) for one in ended.records]
    assert states[::2] == [("claude-code", "cannot be read"), ("codex", "installed")]


def test_a_file_that_cannot_be_used_decides_the_exit_code(at_home: Cli) -> None:
    at_home.ok("hook", "install", "codex")
    path = Path(at_home.environment["HOME"]) / ".codex" / "hooks.json"
    path.write_text(path.read_text().replace('"PreToolUse"', '"Other"'))
    assert at_home.run("hook", "status").code == 4
    settings(at_home, "{")
    assert at_home.run("hook", "status", "codex", "claude-code").code == 2


def test_hooks_that_are_switched_off_record_nothing(at_home: Cli) -> None:
    path = settings(at_home, '{"disableAllHooks": false}')
    at_home.ok("hook", "install", "claude-code")
    at_home.ok("hook", "status")
    path.write_text(path.read_text().replace("false", "true"))
    ended = at_home.run("hook", "status", "--json")
    assert ended.code == 4
    assert ended.records[0]["hook"] == "switched off: disableAllHooks"
    assert (ended.records[0]["events"], ended.records[1]["hook"]) == (8, "not installed")


def test_a_project_switches_off_the_hook_of_the_user(at_home: Cli) -> None:
    at_home.ok("hook", "install", "claude-code")
    project = Path(".claude/settings.json")
    project.parent.mkdir()
    project.write_text('{"disableAllHooks": true}')
    ended = at_home.run("hook", "status", "claude-code", "--json")
    states = [one["hook"] for one in ended.records]
    assert (ended.code, states) == (4, ["switched off: disableAllHooks", "not installed"])
    ended = at_home.ok("hook", "install", "claude-code")
    off = f"no hook of claude-code runs: disableAllHooks in {project.absolute()} is true"
    assert off in ended.message
    local = project.with_name("settings.local.json")
    local.write_text('{"disableAllHooks": false}')
    at_home.ok("hook", "status", "claude-code")
    project.unlink()
    local.write_text('{"disableAllHooks": true}')
    assert at_home.run("hook", "status", "claude-code").code == 4


@pytest.mark.parametrize(
    "text",
    [
        *('{"hooks": {}}', '{\n  "hooks": { },\n  "a": 1\n}\n', '{"hooks": {"Stop": [ ]}}', " "),
        '{\n"hooks": {"SessionEnd":\n[  ],"PreToolUse":[  ]}}',
    ],
)
def test_an_empty_object_of_hooks_stays(at_home: Cli, text: str) -> None:
    path = settings(at_home, text)
    at_home.ok("hook", "install", "claude-code")
    at_home.ok("hook", "install", "claude-code", "--no-redact")  # another command
    copy = path.with_name("settings.json.before-tooltrail")
    assert copy.read_text() == text
    at_home.ok("hook", "uninstall", "claude-code")
    assert path.read_text() == text


def test_an_empty_object_of_hooks_stays_beside_a_later_change(at_home: Cli) -> None:
    path = settings(at_home, '{"hooks": {}}')
    at_home.ok("hook", "install", "claude-code")
    path.write_text(path.read_text().removesuffix("}") + ', "model": "opus"}')
    at_home.ok("hook", "uninstall", "claude-code")
    assert path.read_text() == '{"hooks": {}, "model": "opus"}'
    path.unlink()  # the copy of this file says nothing about the next one
    at_home.ok("hook", "install", "claude-code")
    at_home.ok("hook", "uninstall", "claude-code")
    assert path.read_text() == "{}\n"


def test_a_damaged_copy_of_the_settings_is_not_used(at_home: Cli) -> None:
    path = settings(at_home, '{"a": 1}')
    at_home.ok("hook", "install", "claude-code")
    path.with_name("settings.json.before-tooltrail").write_text("{")
    at_home.ok("hook", "uninstall", "claude-code")
    assert path.read_text() == '{"a": 1}'


@pytest.mark.parametrize("kind", ["folder", "pipe", "large"])
def test_a_copy_that_cannot_be_read_is_not_used(at_home: Cli, kind: str) -> None:
    path = settings(at_home, '{"a": 1}')
    at_home.ok("hook", "install", "claude-code")
    copy = path.with_name("settings.json.before-tooltrail")
    for arguments in (("install", "claude-code", "--no-redact"), ("uninstall", "claude-code")):
        copy.rmdir() if copy.is_dir() else copy.unlink()
        if kind == "folder":
            copy.mkdir()
        elif kind == "pipe":
            os.mkfifo(copy)
        else:
            copy.write_bytes(b" " * ((1 << 20) + 1))
        at_home.ok("hook", *arguments)
    assert path.read_text() == '{"a": 1}'


def test_a_switch_counts_only_for_an_installed_hook_of_claude_code(at_home: Cli) -> None:
    path = settings(at_home, '{"disableAllHooks": true}')
    other = path.parent.parent / ".codex" / "hooks.json"
    other.parent.mkdir()
    other.write_text('{"disableAllHooks": true}')
    at_home.ok("hook", "status")
    at_home.ok("hook", "install", "codex")
    at_home.ok("hook", "status")
    project = Path(".claude/settings.json")
    at_home.ok("hook", "install", "claude-code", "--project")
    project.write_text(
        project.read_text().replace("tooltrail hook", f"{PROGRAM[0]} -m tooltrail.cli hook")
    )
    ended = at_home.run("hook", "status", "claude-code", "--json")
    states = [one["hook"] for one in ended.records]
    assert (ended.code, states) == (4, ["not installed", "switched off: disableAllHooks"])
    project.write_text(project.read_text().replace("{", '{"disableAllHooks": false, ', 1))
    assert at_home.ok("hook", "status", "claude-code", "--json").records[1]["hook"] == "installed"


WRONG_LINE = '{\n  "a": 1,\n  "b": [1,]\n}\n'


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"hooks": []}', '{"hooks": null}', '{"hooks": {"PreToolUse": {}}}', WRONG_LINE],
)
def test_settings_in_another_form_are_left_alone(at_home: Cli, text: str) -> None:
    path = settings(at_home, text)
    ended = at_home.run("hook", "install", "claude-code")
    assert (ended.code, path.read_text()) == (2, text)
    assert f"{path} cannot be used: " in ended.sentence
    ended = at_home.run("hook", "status", "claude-code")
    assert (ended.code, path.read_text()) == (2, text)
    if text == WRONG_LINE:
        assert "it is not JSON: line 3 has a syntax error" in ended.sentence


def test_settings_that_cannot_be_written_are_said(at_home: Cli) -> None:
    settings(at_home).parent.parent.mkdir()
    settings(at_home).parent.write_text("in the way")
    ended = at_home.run("hook", "install", "claude-code")
    assert ended.code == 5
    assert "cannot be used: Not a directory" in ended.sentence


def test_a_read_only_settings_file_is_not_replaced(at_home: Cli) -> None:
    path = settings(at_home, "{}")
    path.chmod(0o400)
    ended = at_home.run("hook", "install", "claude-code")
    assert ended.code == 5
    assert ended.sentence == f"{path} cannot be used: the file is read-only"
    assert [one.name for one in path.parent.iterdir()] == [path.name]
    assert path.read_text() == "{}"


def test_a_linked_settings_file_stays_a_link(at_home: Cli) -> None:
    path = settings(at_home, "")
    path.unlink()
    real = path.parent.parent / "dotfiles.json"
    real.write_text("{}")
    real.chmod(0o640)
    path.symlink_to(real)
    at_home.ok("hook", "install", "claude-code")
    assert path.is_symlink()
    assert "tooltrail hook" in real.read_text()
    assert real.stat().st_mode & 0o777 == 0o640


def test_the_help_is_not_an_event(cli: Cli) -> None:
    assert cli.program("hook", "--help", stdin=b"").text.startswith("Usage: tooltrail hook")


def test_a_person_who_types_hook_gets_the_help(cli: Cli) -> None:
    ours, terminal = os.openpty()
    with cli.start("hook", stdin=terminal) as process:
        _, err = process.communicate(timeout=HANG_S)
    os.close(ours)
    os.close(terminal)
    assert b"install    Let an agent record" in err


def test_a_damaged_event_is_said_once(cli: Cli) -> None:
    hook(cli, b"garbage")
    hook(cli, event("PreToolUse"))
    ended = cli.program("import", "--hooks")
    assert ended.code == 4
    hook(cli, b"garbage")
    path = max((cli.spool / "hooks").iterdir())  # of the newest day
    said = cli.ok("log").message
    assert f"{path}: 1 damaged part could not be imported" in said
    data = path.read_bytes().splitlines(keepends=True)
    size, offset = len(data[-1]) - 1, sum(map(len, data[:-1]))
    assert f"\n{path}:{len(data)}: {size} bytes at offset {offset}: not valid JSON\n" in said
    assert "damaged" not in cli.ok("log").message


def test_an_interrupt_is_for_the_agent(cli: Cli) -> None:
    with cli.start("hook", stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        data = event("PreToolUse", tool_input={"command": "x" * 1_000_000})
        process.stdin.write(data[:-10])  # more than a pipe holds: then the event is being read
        process.send_signal(signal.SIGINT)
        process.stdin.write(data[-10:])
        process.stdin.close()
        assert process.wait() == 0
    assert len(logged(cli)) == 1


def test_a_subcommand_with_another_name_is_refused(cli: Cli) -> None:
    ended = cli.program("hook", "instal", "claude-code", stdin=b"")
    assert (ended.code, "No such command 'instal'" in ended.message) == (2, True)
    assert (
        "no agent cursor; the agents are claude-code, codex"
        in hook(cli, event("PreToolUse"), "--agent", "cursor").message
    )


def test_other_settings_stay(at_home: Cli) -> None:
    text = (
        '{\r\n  "hooks": {\r\n    "PreToolUse": [ // my list\r\n    ],\r\n    "Stop": '
        '[{"hooks": [{"type": "command", "command": "echo see tooltrail hook --help"}]}]'
        "\r\n  }\r\n}\r\n"
    )
    path = settings(at_home, text)
    path.chmod(0o600)
    at_home.ok("hook", "install", "claude-code")
    assert b"\n" not in path.read_bytes().replace(b"\r\n", b"")
    kept = path.with_name("settings.json.before-tooltrail")
    assert (kept.stat().st_mode & 0o777, path.stat().st_mode & 0o777) == (0o600, 0o600)
    at_home.ok("hook", "uninstall", "claude-code")
    assert path.read_bytes().decode() == text
