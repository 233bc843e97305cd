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


def test_a_part_of_an_id_has_four_characters(filled: Cli) -> None:
    for command in ("show", "session close"):
        ended = filled.run(*command.split(), "12")
        assert (ended.code, ended.stdout) == (3, b"")
        assert "named '12'; a part of an id has at least 4 characters" in ended.message


def test_a_condition_with_too_many_parts_is_refused_first(filled: Cli) -> None:
    names = ", ".join(f"tool{n}" for n in range(600))
    ended = filled.run("log", "--where", f"tool in ({names})")
    assert (ended.code, ended.stdout, "no tool" in ended.message) == (2, b"", False)
    assert "a condition has more than 500 parts" in ended.message


def test_an_empty_list_says_which_values_of_its_condition_no_call_has(filled: Cli) -> None:
    for command in ("log", "session ls"):
        missing = "tool = Bash and (signal = 9 or not signal = 9 and arguments.list[0] = 1)"
        ended = filled.ok(*command.split(), "--json", "--where", missing)
        said = [
            f"tooltrail: no call has a value of `{one}`" for one in ("signal", "arguments.list[0]")
        ]
        assert (ended.records, ended.message.splitlines()) == ([], said)
        ended = filled.ok(
            *command.split(), "--json", "--where", "duration > 24h and signal is null"
        )
        assert (ended.records, ended.message) == ([], said[0] + "\n")
        ended = filled.ok(*command.split(), "--json", "--where", "signal is null")
        assert (len(ended.records) > 0, ended.message) == (True, "")
