"""Command lines of tooltrail in texts: found, and parsed as the program parses them."""

import re
import shlex
from collections.abc import Sequence

import click
from tests.support.cli_reference import commands

from tooltrail.cli._app import app
from tooltrail.cli._exec_options import read_request
from tooltrail.cli._hook import is_event

_NESTED = re.compile(r"\$\((tooltrail [^)]*)\)")
_OF_SHELL = {"<", ">", "|", "&&", ";"}


def words_of(line: str) -> list[str]:
    """The words of the command in a line of a shell, without `tooltrail`."""
    nested = _NESTED.search(line)
    words = shlex.split(nested[1] if nested else line, comments=True)
    words = words[words.index("tooltrail", 1 if words[0] != "tooltrail" else 0) + 1 :]
    if "mcp" in line.split()[:2]:  # `claude mcp add tooltrail -- tooltrail mcp`
        words = shlex.split(line.rpartition("tooltrail ")[2])
    end = next((n for n, word in enumerate(words) if word in _OF_SHELL), len(words))
    return words[:end]


def parse(words: Sequence[str]) -> click.Context:
    """Parse the words after `tooltrail`; raises `click.UsageError` or `UsageProblem`."""
    paths = {tuple(path.split()[1:]): command for path, command, _ in commands()}
    path = next(tuple(words[:n]) for n in (2, 1) if tuple(words[:n]) in paths)
    rest = list(words[len(path) :])
    if path == ("exec",):
        assert read_request(rest, {}) is not None
    if path == ("hook",):  # read without click
        assert is_event(rest)
        rest = ["status"]
    return paths[path].make_context(" ".join(path), rest, **app.context_settings)
