"""Screens on a terminal are those that a person has looked at; see tests/support/screens.py."""

import re

import pytest
from tests.support.cli import Cli
from tests.support.screens import COMMANDS, WIDTHS, golden_file, screen

ESCAPE = re.compile(r"\\e\[\d+m")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_screen_is_the_golden_one(story: Cli, command: str, width: int) -> None:
    shown, golden = screen(story, command, width), golden_file(width).read_text()
    assert shown in golden, f"look at the screen, then: python -m tests.support.screens\n{shown}"


@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_of_a_screen_is_wrapped(width: int) -> None:
    lines = ESCAPE.sub("", golden_file(width).read_text()).splitlines()
    assert len(lines) > 100
    assert [one for one in lines if len(one) > width] == []
