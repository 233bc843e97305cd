"""`exec` on a terminal: the command has one too, and what it prints is one stream."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cli.process.harness import Terminal
from tests.support.cli import PROGRAM, Cli

Open = Callable[..., Terminal]

SCRIPT = 'test -t 1 && echo "is a terminal" || echo "is none"; echo err >&2; exit 3'


@pytest.fixture
def on_terminal(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Runs `exec` on a terminal of its own."""
    monkeypatch.setenv("TOOLTRAIL_DB", cli.database)
    opened: list[Terminal] = []

    def start(*arguments: str) -> Terminal:
        opened.append(Terminal(*PROGRAM, "exec", *arguments))
        return opened[-1]

    yield start
    for terminal in opened:
        terminal.close()


def roles(cli: Cli) -> list[str]:
    with cli.open() as store:
        return [one.role for one in store.reader.invocation("@last").streams]


def test_a_terminal_stays_a_terminal(cli: Cli, on_terminal: Open) -> None:
    terminal = on_terminal("--", "sh", "-c", SCRIPT)
    assert terminal.wait() == 3
    assert terminal.seen == b"is a terminal\r\nerr\r\n"
    assert roles(cli) == ["combined"]
    assert cli.ok("show", "--stream", "combined").stdout == terminal.seen
    receipt = cli.ok("show", "--surface", "receipt").text
    assert receipt.startswith("Process exited with code 3\n\noutput:\n")
    cli.ok("verify")


def test_never_keeps_two_streams(cli: Cli, on_terminal: Open) -> None:
    terminal = on_terminal("--tty", "never", "--", "sh", "-c", SCRIPT)
    assert terminal.wait() == 3
    assert terminal.seen == b"is none\r\nerr\r\n"
    assert roles(cli) == ["stdout", "stderr", "order"]


def test_always_gives_a_terminal_to_a_script(cli: Cli) -> None:
    ended = cli.exec("--tty", "always", "--", "sh", "-c", SCRIPT)
    assert (ended.code, ended.stdout, ended.stderr) == (3, b"is a terminal\r\nerr\r\n", b"")
    assert roles(cli) == ["combined"]


@pytest.mark.parametrize("line", ["echo data | {} cat", "{} echo data </dev/null"])
def test_input_that_is_no_terminal_does_not_double_line_ends(
    cli: Cli, on_terminal: Open, line: str
) -> None:
    command = line.format(f"{' '.join(PROGRAM)} exec --")
    terminal = Terminal("/bin/sh", "-c", command)
    assert terminal.wait() == 0
    terminal.close()
    assert terminal.seen == b"data\r\n"
    assert roles(cli) == ["combined"]


def test_output_that_goes_to_a_file_stays_apart(
    cli: Cli, on_terminal: Open, tmp_path: Path
) -> None:
    line = f"{' '.join(PROGRAM)} exec -- sh -c 'echo out; echo err >&2' 2> {tmp_path}/err"
    terminal = Terminal("/bin/sh", "-c", line)
    assert terminal.wait() == 0
    terminal.close()
    assert (terminal.seen, (tmp_path / "err").read_bytes()) == (b"out\r\n", b"err\n")
    assert roles(cli) == ["stdout", "stderr", "order"]
