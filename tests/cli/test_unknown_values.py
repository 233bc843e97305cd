"""A value of a filter that no record has is named on stderr, with the nearest values."""

import pytest
from tests.support.cli import Cli
from tests.support.recording import fail_tool, run_command, run_tool


@pytest.fixture
def filled(cli: Cli) -> Cli:
    with cli.open() as store, store.open_session(name="nightly-build", agent="codex") as session:
        run_command(session, b"out\n")
        run_tool(session, "text")
        fail_tool(session, "permission_denied")
    return cli


@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        ("--tool", "bsh", "no tool `bsh`; nearest: `Bash`, `Read`"),
        ("--family", "comand", "no family `comand`; nearest: `command`, `file_read`"),
        ("--agent", "claude", "no agent `claude`; nearest: `codex`"),
        ("--error-kind", "denied", "no error kind `denied`; nearest: `permission_denied`"),
        ("--tool", "a\nb\x1b[2J", "no tool `a\ufffdb\ufffd[2J`; nearest: `Read`, `Bash`"),
    ],
)
def test_a_value_that_no_record_has_is_named(
    filled: Cli, option: str, value: str, sentence: str
) -> None:
    ended = filled.ok("log", option, value, "--json")
    assert (ended.records, ended.sentence) == ([], sentence)


def test_a_value_that_a_record_has_is_not_named(filled: Cli) -> None:
    names = ("--tool", "Bash", "--agent", "codex", "--family", "command", "--session", "@last")
    ended = filled.ok("log", "--json", *names)
    assert (len(ended.records), ended.message) == (1, "")
    once = filled.ok("log", "--tool", "Bash", "--tool", "Baz", "--where", "tool = Baz")
    assert once.sentence.startswith("no tool `Baz`;")


def test_a_fact_that_waits_counts(filled: Cli) -> None:
    assert filled.exec("--tool", "make", "--", "true").code == 0
    assert filled.ok("log", "--tool", "make").message == ""
