"""Completion in a shell: commands, options and the names of a store; never an error."""

import os
import pty
import re
import select
import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.support.cli import HANG_S, PROGRAM, Cli, kill_group
from tests.support.recording import run_command, run_tool

HOSTILE = ("$(touch x)", "`id`", "a b", "a;b", "*", "-rf", "~root", "x\x1b[2J", "a\nb", "'", "#x")


@pytest.fixture
def filled(cli: Cli) -> Cli:
    with cli.open() as store:
        with store.open_session(name="nightly-build", agent="codex") as session:
            for name in ("Bash", "Read", "mcp__files__read", *HOSTILE):
                run_tool(session, "text", tool=name)
            run_command(session, b"a line\n" * 30_000)
        for name in HOSTILE:
            store.open_session(name=name, agent=name).close()
        _ = store.reader  # ingests
    return cli


def completions(cli: Cli, *words: str, shell: str = "bash") -> Sequence[str]:
    """What a shell gets for the last of some words after `tooltrail`."""
    asked = {
        "_TOOLTRAIL_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": "\n".join(["tooltrail", *words]),
        "COMP_CWORD": words[-1] if shell == "fish" else str(len(words)),
    }
    ended = Cli(cli.database, {**cli.environment, **asked}).program()
    assert (ended.code, ended.message) == (0, "")
    return ended.text.split("\n")[:-1]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["tra"], ["plain,transcript"]),
        (["--d"], ["plain,--db"]),
        (["--db", "x"], ["file,x"]),
        (["help", "artifact", "re"], ["plain,relocate"]),
        (["completion", "z"], ["plain,zsh"]),
        (["exec", "--", "ma"], ["file,ma"]),
        (["exec", "--session", "nig"], ["plain,nightly-build"]),
        (["log", "--tool", ""], ["plain,Bash", "plain,Read", "plain,mcp__files__read"]),
        (["log", "--tool", "=", "B"], ["plain,Bash"]),
        (["log", "--agent", ""], ["plain,codex"]),
        (["log", "--family", "c"], ["plain,command"]),
        (["log", "--outcome", "ti"], ["plain,timeout"]),
        (["import", "--format", "cop"], ["plain,copilot-cli"]),
        (["session", "close", "ni"], ["plain,nightly-build"]),
        (["transcript", "--format", "mark"], ["plain,markdown"]),
        (["show", "@", "las"], ["plain,@last"]),
        (["show", "@", "last", ":", "Ba"], ["plain,Bash"]),
        (["show", "@", "ru"], ["plain,@running"]),
    ],
)
def test_words_are_completed(filled: Cli, words: list[str], found: list[str]) -> None:
    assert completions(filled, *words)[: len(found)] == found


def test_ids_are_completed_by_their_beginning_and_their_end(filled: Cli) -> None:
    (newest, *_) = filled.ok("log", "--json").records
    for given in (newest["id"][:8], newest["id"][-8:], newest["id"][-8:-4]):
        found = completions(filled, "show", given)
        assert {newest["id"], newest["id"][-8:]} & {one.removeprefix("plain,") for one in found}
    (artifact,) = filled.ok("artifact", "ls", "--json").records
    digits = artifact["digest"].removeprefix("sha256:")
    for words, name in (
        ([digits[:12]], digits),
        (["sha256", ":", digits[:12]], digits),  # bash keeps the text before the last colon
        (["sha256/"], artifact["path"]),
        ([artifact["path"][:12]], artifact["path"]),
    ):
        assert completions(filled, "artifact", "stat", *words) == [f"plain,{name}"]


def test_the_newest_session_is_completed_where_it_is_accepted(filled: Cli) -> None:
    assert completions(filled, "log", "--session", "@") == ["plain,@last"]
    for command in ("exec", "mcp-proxy"):
        assert completions(filled, command, "--session", "@") == [""]


def test_zsh_and_fish_get_descriptions(filled: Cli) -> None:
    name = "nightly-bu"
    assert completions(filled, "log", "--session", name, shell="zsh") == [
        *("plain", "nightly-build", "_")
    ]
    found = completions(filled, "ver", shell="fish")
    assert found == ["plain,verify\tcompare every record with the ledger"]


@pytest.mark.parametrize("option", [["--tool"], ["--agent"], ["--session"]])
def test_a_name_that_a_shell_would_run_is_not_completed(filled: Cli, option: list[str]) -> None:
    names = {one.removeprefix("plain,") for one in completions(filled, "log", *option, "")}
    assert names
    assert names.isdisjoint(HOSTILE)
    assert all(re.fullmatch(r"[\w@:-]+", name) for name in names)


def test_a_store_that_cannot_be_read_completes_nothing(filled: Cli, tmp_path: Path) -> None:
    bad = tmp_path / "bad.db"
    bad.write_bytes(b"not a database" * 1000)
    for database in (bad, tmp_path, tmp_path / "missing.db", Path("/dev/zero")):
        assert completions(filled, "--db", str(database), "log", "--tool", "B") == [""]
    assert not (tmp_path / "missing.db").exists()


def test_a_server_that_does_not_answer_does_not_block_the_shell(filled: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://me@127.0.0.1:{silent.getsockname()[1]}/trail"
        filled.environment["TOOLTRAIL_DB"] = url
        assert completions(filled, "log", "--tool", "B") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_valid(shell: str, nowhere: Cli) -> None:
    script = nowhere.ok("completion", shell).stdout
    assert b"_TOOLTRAIL_COMPLETE" in script
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run([shell, "-n"], input=script, capture_output=True, check=True)
    assert done.stderr == b""


class Terminal:
    """An interactive bash on a terminal, with the completion of tooltrail."""

    def __init__(self, cli: Cli, folder: Path) -> None:
        program = folder / "bin" / "tooltrail"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec {" ".join(PROGRAM)} "$@"\n')
        program.chmod(0o755)
        path = f"{program.parent}:{os.environ['PATH']}"
        more = {"INPUTRC": "/dev/null", "PATH": path, "TERM": "dumb", "PS1": "> ", "COLUMNS": "400"}
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen[bytes](
            ["bash", "--norc", "--noprofile", "-i"],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**cli.full_environment, **more},
            start_new_session=True,
        )
        os.close(theirs)

    def type(self, text: str, until: str) -> None:
        """Type, and wait until the terminal shows a text."""
        os.write(self._ours, text.encode())
        seen, end = "", time.monotonic() + HANG_S
        while until not in seen:
            assert time.monotonic() < end, seen
            if select.select([self._ours], [], [], 1)[0]:
                seen += os.read(self._ours, 65_536).decode(errors="replace").replace("\a", "")

    def close(self) -> None:
        kill_group(self.process)
        self.process.wait()
        os.close(self._ours)


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes_on_a_terminal(filled: Cli, tmp_path: Path) -> None:
    terminal = Terminal(filled, tmp_path)
    try:
        terminal.type('eval "$(tooltrail completion bash)"; echo rea""dy\n', "ready")
        for typed, seen in (
            ("tooltrail trans\t", "tooltrail transcript "),
            ("tooltrail log --tool mcp\t", "--tool mcp__files__read "),
            ("tooltrail log --tool=Rea\t", "--tool=Read "),
            ("tooltrail show @last:Ba\t", "@last:Bash "),
            ("tooltrail session close nig\t", "close nightly-build "),
            (f"tooltrail --db {filled.database[:-1]}\t", filled.database),
        ):
            terminal.type(typed, seen)
            terminal.type("\x15", "")  # empties the line
    finally:
        terminal.close()
