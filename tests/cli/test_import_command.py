"""`tooltrail import`: what it prints and refuses, and what `show` says of imported calls."""

import json
import os
import signal
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from tests.importers.sources import claude_call, claude_result, write_lines
from tests.support.cli import Cli
from tests.support.waiting import until

from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._importing import import_with_bar
from tooltrail.importers import FORMATS

BASH = {"stdout": "out\n", "stderr": "", "interrupted": False}
LINES = [
    claude_call(1, "t1", "Bash", {"command": "make"}),
    claude_result(2, "t1", "out", BASH, is_error=False),
    claude_call(3, "t2", "Bash", {"command": "make test"}),
]


def session_file(folder: Path, *, name: str = "s.jsonl") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return write_lines(folder / name, LINES)


def test_a_file_is_imported_and_can_be_read(cli: Cli) -> None:
    path = session_file(cli.folder / "in")
    ended = cli.ok("import", str(path))
    header, row = ended.lines
    assert " ".join(header.split()) == "FORMAT SESSIONS MESSAGES CALLS RESULTS NEW KNOWN FILE"
    assert row.split() == ["claude-code", "1", "2", "2", "1", "6", "0", str(path)]
    assert ended.message == (
        f"6 new facts recorded, 0 known already\n{path}: 1 call without a result\n"
    )
    assert [row["state"] for row in cli.ok("log", "--json").records] == ["started", "success"]
    shown = cli.ok("show", "@last:Bash")
    assert f"source     claude-code: {path}, byte " in shown.text


def test_a_surface_that_the_file_does_not_have_is_named(cli: Cli) -> None:
    lines = [LINES[0], claude_result(2, "t1", "out")]
    cli.ok("import", str(write_lines(cli.folder / "s.jsonl", lines)))
    text = cli.ok("show").text
    assert text.count("is not recorded: its source does not contain it)") == 2
    (record,) = cli.ok("show", "--json").records
    assert record["not_recorded"] == ["output", "canonical"]
    assert (record["complete_output"], record["canonical_result"]) == (None, None)
    assert record["source"]["format"] == "claude-code"


def imported(cli: Cli, result: dict[str, Any], command: str = "make") -> None:
    """Import one call with this result."""
    lines = [claude_call(1, "t1", "Bash", {"command": command}), result]
    cli.ok("import", str(write_lines(cli.folder / "s.jsonl", lines)))


def test_a_surface_that_is_not_recorded_is_not_a_call_that_has_not_ended(cli: Cli) -> None:
    imported(cli, claude_result(2, "t1", "out"))
    assert cli.ok("show", "--surface", "receipt").text == "out"
    for flags in (["--surface", "complete"], ["--surface", "canonical"], ["--stream", "stdout"]):
        ended = cli.run("show", *flags)
        assert (ended.code, ended.stdout) == (4, b"")
        assert "is not recorded: its source" in ended.sentence


def test_a_receipt_that_is_not_recorded_has_nothing_to_compare(cli: Cli) -> None:
    imported(cli, claude_result(2, "t1", None, BASH))
    ended = cli.ok("show", "--rerender")
    assert "receipt is not recorded: its source" in ended.message
    assert cli.run("show", "--surface", "receipt").code == 4
    assert cli.ok("show", "--surface", "complete").text == "out\n"


def test_a_receipt_with_a_lone_surrogate_is_shown(cli: Cli) -> None:
    path = cli.folder / "s.jsonl"
    lines = [LINES[0], claude_result(2, "t1", "half \ud83d")]
    path.write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    cli.ok("import", str(path))
    assert (
        "── receipt, 8 bytes, recorded as the model saw it ──\nhalf \ufffd\n" in cli.ok("show").text
    )
    assert cli.ok("show", "--surface", "receipt").stdout == b"half \xed\xa0\xbd"


def test_replaced_secrets_and_extras_are_listed(cli: Cli) -> None:
    secret = f"ghp_{'a1B2' * 9}"
    result = claude_result(2, "t1", f"{secret} {secret}") | {"mood": {"n": 1}}
    imported(cli, result, f"echo {secret}")
    line = "redacted   3 secrets: github-token in arguments, github-token in receipt\n"
    assert line in cli.ok("show").text
    (record,) = cli.ok("show", "--json").records
    assert record["redacted"] == [
        {"field": "arguments", "rule": "github-token", "count": 1, "offset": 17},
        {"field": "receipt", "rule": "github-token", "count": 2, "offset": 0},
    ]
    assert record["extras"] == {"mood": {"n": 1}}
    assert secret not in json.dumps(record)


def test_a_dry_run_and_a_second_run_record_nothing(cli: Cli) -> None:
    path = session_file(cli.folder / "in")
    planned = cli.ok("import", "--dry-run", "--json", str(path))
    assert planned.records[0]["counts"]["new"] == 6
    assert "6 new facts would be recorded" in planned.message
    assert cli.ok("log", "--json").records == []
    cli.ok("import", str(path))
    assert cli.ok("import", "--json", str(path)).records[0]["counts"]["known"] == 6


def test_without_a_path_the_usual_folders_are_searched(cli: Cli) -> None:
    home = cli.folder / "claude"
    session_file(home / "projects" / "p1")
    (home / "projects" / "p1" / "notes.jsonl").write_text('{"a": 1}\n')
    cli.environment |= {"CLAUDE_CONFIG_DIR": str(home), "CODEX_HOME": str(cli.folder / "none")}
    ended = cli.ok("import")
    assert f"found 2 files in {home / 'projects'}\n" in ended.message
    assert "6 new facts recorded" in ended.message
    cli.environment["CLAUDE_CONFIG_DIR"] = str(cli.folder / "none")
    nothing = cli.run("import")
    assert nothing.code == 3
    assert nothing.sentence == "no sessions of known agents found; name a file or a folder"


def test_of_very_many_damaged_lines_the_first_are_named(cli: Cli) -> None:
    path = session_file(cli.folder / "in")
    path.write_bytes(path.read_bytes() + b'{"a\n' * 15)
    ended = cli.run("import", str(path), "--json")
    assert (ended.code, ended.message.count(": not valid JSON\n")) == (4, 10)
    assert f"{path}: 5 more damaged parts; --json lists them all\n" in ended.message
    assert len(ended.records[0]["damaged"]) == 15


def test_damage_is_named_and_costs_only_itself(cli: Cli) -> None:
    path = session_file(cli.folder / "in")
    data = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([data[0], b'{"type": "user", "mess\n', *data[1:]]))
    ended = cli.run("import", str(path))
    assert ended.code == 4
    assert f"{path}:2: 22 bytes at offset {len(data[0]):,}: not valid JSON\n" in ended.message
    assert "6 new facts recorded" in ended.message


def test_what_cannot_be_imported_is_refused(cli: Cli) -> None:
    odd = write_lines(cli.folder / "odd.jsonl", [{"hello": "world"}])
    known = ", ".join(FORMATS)
    for arguments, problem in (
        (["missing.jsonl"], "no file missing.jsonl"),
        ([str(odd)], f"{odd} is of no known format; the formats are {known}"),
        (["--format", "codex", "missing.jsonl"], "no file missing.jsonl"),
    ):
        ended = cli.run("import", *arguments)
        assert (ended.code, ended.sentence) == (3, problem)
    ended = cli.run("import", "--format", "cursor", str(odd))
    assert (ended.code, ended.usage_error) == (2, f"no format cursor; the formats are {known}")
    for command in ("import", "coverage"):  # not everything below the current folder
        ended = cli.run(command, str(odd), "")
        assert (ended.code, ended.usage_error) == (2, "PATH is empty; name a file or a folder")


def test_a_folder_or_a_pipe_with_the_name_of_a_session_is_passed_over(cli: Cli) -> None:
    folder = cli.folder / "in"
    session_file(folder)
    (folder / "b.jsonl").mkdir()
    os.mkfifo(folder / "c.jsonl")
    assert "6 new facts recorded" in cli.ok("import", str(folder)).message
    named = cli.run("import", str(folder / "c.jsonl"))
    assert (named.code, named.sentence) == (3, f"{folder / 'c.jsonl'} is not a regular file")


def test_a_path_that_cannot_be_imported_costs_only_itself(cli: Cli) -> None:
    path = session_file(cli.folder / "in")
    ended = cli.run("import", "missing.jsonl", str(path))
    assert ended.code == 3
    assert ended.message.startswith("tooltrail: no file missing.jsonl\n6 new facts recorded")


def test_a_file_of_a_folder_that_cannot_be_read_costs_only_itself(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked, _ = (session_file(cli.folder / "in", name=name) for name in ("a.jsonl", "b.jsonl"))
    plain: Any = Path.open

    def open_unlocked(path: Path, *arguments: Any, **more: Any) -> Any:
        if path == locked:
            raise PermissionError(13, "Permission denied")
        return plain(path, *arguments, **more)

    monkeypatch.setattr(Path, "open", open_unlocked)
    ended = cli.run("import", str(cli.folder / "in"))
    assert ended.code == ExitCode.UNAVAILABLE
    assert f"{locked} cannot be read: Permission denied\n" in ended.message
    assert len(cli.ok("log", "--json").records) == 2


@pytest.mark.parametrize("command", ["import", "coverage"])
@pytest.mark.parametrize("locked", ["in", "in/locked"])
def test_a_folder_that_cannot_be_read_is_reported(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, command: str, locked: str
) -> None:
    session_file(cli.folder / "in")
    unread = cli.folder / locked
    unread.mkdir(exist_ok=True)
    plain_scan, plain_open = os.scandir, Path.open

    def scan_unlocked(path: Any) -> Any:
        if path == str(unread):
            raise PermissionError(13, "Permission denied", path)
        return plain_scan(path)

    def open_unlocked(path: Path, *arguments: Any, **more: Any) -> Any:
        if path == unread:
            raise PermissionError(13, "Permission denied")
        return plain_open(path, *arguments, **more)

    monkeypatch.setattr(os, "scandir", scan_unlocked)
    monkeypatch.setattr(Path, "open", open_unlocked)
    ended = cli.run(command, str(cli.folder / "in"))
    assert ended.code == ExitCode.UNAVAILABLE
    assert f"tooltrail: {unread} cannot be read: Permission denied\n" in ended.message


def test_a_file_of_another_format_than_the_named_one_is_refused(cli: Cli) -> None:
    path = session_file(cli.folder / "in")
    ended = cli.run("import", "--format", "codex", str(path))
    assert (ended.code, ended.sentence) == (3, f"{path} has no session of the format codex")
    ended = cli.run("import", "--format", "codex", str(path.parent))
    assert ended.code == 3
    assert f"1 file of another format was skipped, such as {path}\n" in ended.message
    assert cli.ok("import", "--format", "claude-code", str(path)).lines[1:]
    assert cli.ok("import", "--format", "claude-code", str(path)).lines[1:]  # nothing is new


def test_an_archive_that_cannot_be_opened_is_named(cli: Cli) -> None:
    path = session_file(cli.folder / "in")
    cut = path.with_name("cut.eval")
    cut.write_bytes(b"PK\x03\x04 and no more")
    ended = cli.run("import", str(path.parent))
    assert ended.code == 4
    assert f"{cut}:1: 0 bytes at offset 0: the archive cannot be read\n" in ended.message
    path.unlink()
    ended = cli.run("import", str(path.parent))
    assert ended.code == 4
    assert f"{cut}:1: 0 bytes at offset 0: the archive cannot be read\n" in ended.message


def test_an_output_that_is_gone_is_in_the_report(cli: Cli) -> None:
    gone = {**BASH, "persistedOutputPath": "/gone/out.txt", "persistedOutputSize": 9000}
    lines = [LINES[0], claude_result(2, "t1", "out", gone, is_error=False)]
    path = write_lines(cli.folder / "s.jsonl", lines)
    ended = cli.ok("import", str(path))
    assert f"{path}: 1 incomplete output\n" in ended.message
    assert len(cli.ok("log", "--json", "--where", "lost > 0").records) == 1


def test_files_of_no_known_format_in_a_folder_are_counted(cli: Cli) -> None:
    folder = cli.folder / "in"
    path = session_file(folder)
    (folder / "empty.jsonl").touch()
    odd = folder / "odd.jsonl"
    odd.write_bytes(path.read_text().encode("utf-16"))
    note = f"1 file of no known format was skipped, such as {odd}\n"
    assert cli.ok("import", str(folder)).message.startswith(note)
    path.unlink()
    ended = cli.run("import", str(folder))
    assert (ended.code, ended.message.startswith(note)) == (3, True)


def test_skipped_files_are_not_kept_in_memory(cli: Cli) -> None:
    path = session_file(cli.folder / "in")
    for number in range(8):
        path.with_name(f"{number}.json").write_text(json.dumps({"a": "y" * 1_000_000}))
    tracemalloc.start()
    _, skipped = import_with_bar(cli.spool, [cli.folder / "in"], None, None)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (len(skipped), size < 4_000_000) == (8, True)


def test_credentials_are_replaced_unless_they_are_wanted(cli: Cli) -> None:
    token = "ghp" + "_" + "a1B2" * 9
    lines = [claude_call(1, "t1", "Bash", {"command": f"curl -H {token}"})]
    path = write_lines(cli.folder / "s.jsonl", lines)
    cli.ok("import", str(path))
    assert "curl -H [REDACTED:github-token]" in cli.ok("show").text
    other = write_lines(cli.folder / "t.jsonl", [{**lines[0], "sessionId": "other"}])
    cli.ok("import", "--no-redact", str(other))
    assert token in cli.ok("show").text


def test_only_files_that_changed_since_are_imported(cli: Cli) -> None:
    old, new = session_file(cli.folder / "in", name="old.jsonl"), session_file(cli.folder / "in")
    os.utime(old, (1_700_000_000, 1_700_000_000))
    rows = cli.ok("import", "--since", "1h", str(cli.folder / "in")).lines[1:]
    assert [row.split()[-1] for row in rows] == [str(new)]
    ended = cli.ok("import", "--since", "1h", str(old))
    assert (ended.text, ended.message) == (
        "",
        "left out 1 file that did not change since then\n0 new facts recorded, 0 known already\n",
    )


def test_following_imports_what_an_agent_writes(cli: Cli) -> None:
    path = write_lines(cli.folder / "s.jsonl", LINES[:1])
    write_lines(cli.folder / "other.jsonl", [{"a": 1}])
    with cli.start("import", "--follow", str(cli.folder)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"3 new facts of claude-code in {path}\n".encode()
        write_lines(path, LINES)
        assert process.stdout.readline() == f"3 new facts of claude-code in {path}\n".encode()
        until(lambda: len(cli.ok("log", "--json").records) == 2)
        process.send_signal(signal.SIGINT)
        process.communicate()
    assert process.returncode == -signal.SIGINT


def test_files_are_named_as_they_were_given(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    path = session_file(cli.folder / "in")
    with path.open("a") as file:
        file.write("null\n")
    monkeypatch.chdir(cli.folder)
    Path("link").symlink_to("in")
    ended = cli.ok("import", "link")
    assert ended.lines[1].split()[-1] == "link/s.jsonl"
    assert "\nlink/s.jsonl: 1 line of the unknown type null\n" in ended.message
    with cli.start("import", "--follow", "link", "--spool", "other") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"7 new facts of claude-code in link/s.jsonl\n"
        process.send_signal(signal.SIGINT)
        process.communicate()


def test_following_names_each_damaged_line_and_each_skipped_file_once(cli: Cli) -> None:
    (cli.folder / "in").mkdir()
    path = write_lines(cli.folder / "in" / "s.jsonl", LINES[:1])
    odd = write_lines(cli.folder / "in" / "odd.jsonl", [{"a": 1}])
    with cli.start("import", "--follow", str(cli.folder / "in")) as process:
        assert process.stdout is not None
        process.stdout.readline()
        data = path.read_bytes()
        path.write_bytes(data + b"garbage {\n" + json.dumps(LINES[1]).encode() + b"\n")
        process.stdout.readline()
        with path.open("ab") as file:
            file.write(json.dumps(LINES[2]).encode() + b"\n{half")
        write_lines(odd, [{"a": 1}] * 2)
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, messages = process.communicate()
    assert messages.decode().splitlines() == [
        f"1 file of no known format was skipped, such as {odd}",
        f"{path}:2: 9 bytes at offset {len(data):,}: not valid JSON",
    ]
