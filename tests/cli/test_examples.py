"""The examples of help texts, the commands in messages, and man pages."""

import ast
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.cli import Cli
from tests.support.cli_reference import commands
from tests.support.command_lines import parse, words_of
from tests.support.man_pages import write_pages
from tests.support.recording import run_command

import tooltrail.cli
import tooltrail.store
from tooltrail.cli._app import COMMANDS, NAMES
from tooltrail.cli._examples import FIRST, LINES

EXAMPLES = [*FIRST, *LINES]
READING = (
    *("artifact ls", "artifact verify", "cat @last", "completion", "db check", "db current"),
    *("gc", "head -n", "help", "log --", "redact", "repair", "session ls", "retries"),
    *("show @last", "stat"),
    *("tail -n", "tools ls --session", "transcript", "verify"),
)
"""Examples that only read, and so run in any store."""
MISSING = re.compile("sha256:|exit 1|@running|!=0")
SOURCES = [Path(one) for wing in (tooltrail.cli, tooltrail.store) for one in wing.__path__]
HINT = re.compile(r"(?:`|see: )tooltrail ([a-z][^`]*?)(?:`|$)")


def test_every_command_is_in_one_group_and_has_a_module() -> None:
    grouped = [name for group in COMMANDS.values() for name in group]
    assert sorted(grouped) == NAMES == sorted(set(grouped))
    folder = Path(tooltrail.cli.__path__[0]) / "commands"
    modules = {path.stem.removesuffix("_command") for path in folder.glob("*_command.py")}
    of_artifact = {"cat", "grep", "head", "tail"}  # the same below `artifact`
    own = {name.replace("-", "_") for name in NAMES} - of_artifact
    assert own == modules - {"relocate"}


def test_every_help_text_ends_with_one_to_four_examples(nowhere: Cli) -> None:
    for path in ("tooltrail", *(path for path, _, _ in commands())):
        text = nowhere.ok(*path.split()[1:], "--help").text.partition("  Examples:\n")[2]
        shown = [line.strip() for line in text.partition("\n\n")[0].splitlines()]
        assert set(shown) <= set(EXAMPLES), path
        assert 1 <= len(shown) <= 4, path


def test_every_example_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("agents/reviewer.yml", "agent.yml", "new/agent.yml", "old/agent.yml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "src").mkdir()
    monkeypatch.setenv("TOOLTRAIL_SESSION", "nightly-build")
    for line in EXAMPLES:
        assert len(line) <= 76
        parse(words_of(line))


def test_the_examples_that_read_work_in_a_store(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with cli.open() as store, store.open_session(name="nightly-build", agent="claude-code") as one:
        run_command(one, b"an error\n" * 9_000, b"warning: no error\n")
    ran = 0
    for line in dict.fromkeys(EXAMPLES):
        words = words_of(line)
        if " ".join(words).startswith(READING) and not MISSING.search(line):
            ran += 1
            cli.ok(*words)
    assert ran > len(READING)


def texts(source: str) -> Iterator[str]:
    """The texts in a source without docstrings, with `x` for what is filled in."""
    tree = ast.parse(source)
    skipped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield "" if id(node) in skipped else node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(
                str(one.value) if isinstance(one, ast.Constant) else "x" for one in node.values
            )


def hints() -> set[str]:
    """The commands in the messages of the sources."""
    sources = (path.read_text() for folder in SOURCES for path in folder.rglob("*.py"))
    return {found[1] for one in sources for text in texts(one) for found in HINT.finditer(text)}


def test_every_command_in_a_message_is_accepted() -> None:
    found = hints()
    assert {"init", "db upgrade", "verify", "status", "transcript x"} <= found
    for hint in found:
        parse(shlex.split(hint))


def test_man_pages_say_what_the_help_says(tmp_path: Path, nowhere: Cli) -> None:
    write_pages(tmp_path)
    assert len(list(tmp_path.glob("tooltrail*.1"))) == 1 + sum(1 for _ in commands())
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    for page in sorted(tmp_path.iterdir()):
        done = subprocess.run(
            ["groff", "-Kutf8", "-man", "-ww", "-Tutf8", "-rLL=200n", "-P-cbou", page],
            capture_output=True,
            check=True,
            text=True,
        )
        assert done.stderr == "", page.name
        words = page.stem.split("-", 1)[1:] and page.stem.removeprefix("tooltrail-")
        if words in NAMES:
            help_text = nowhere.ok(words, "--help").text
            for line in re.findall(r"^    (tooltrail .*)$", help_text, re.MULTILINE):
                assert line in done.stdout
            for option in re.findall(r"^  (-[-\w, ]+\w)", help_text, re.MULTILINE):
                assert option.split()[-1] in done.stdout
