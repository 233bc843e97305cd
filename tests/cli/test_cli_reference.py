"""The reference in docs/cli.md is made from the commands, and follows house style."""

import re

import click
from tests.support.cli_reference import DOCUMENT, MARK, commands, reference

REGENERATE = "docs/cli.md is stale; run: .venv/bin/python -m tests.support.cli_reference"

BANNED = re.compile(
    r"\b(told|tells?|whoever|nobody|anew|meanwhile|patience|as it is|what is (known|there))\b",
    re.IGNORECASE,
)
"""Private metaphors and pronouns that the help does without."""

TEXTS = [
    "\n".join(
        [
            command.help or "",
            (command.epilog or "").partition("\b")[0],  # without the examples
            *(one.help or "" for one in command.params if isinstance(one, click.Option)),
        ]
    )
    for _, command, _ in commands()
]


def test_the_reference_in_the_docs_says_what_the_help_says() -> None:
    _, mark, written = DOCUMENT.read_text().partition(MARK)
    assert mark
    assert written == reference(), REGENERATE


def test_every_command_and_every_option_is_in_the_reference() -> None:
    _, _, written = DOCUMENT.read_text().partition(MARK)
    sections = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", written, re.MULTILINE | re.DOTALL))
    assert set(sections) == {name for name, _, _ in commands()}
    for name, command, context in commands():
        shown = " ".join(sections[name].split())
        for parameter in command.get_params(context):
            if isinstance(parameter, click.Option):
                assert all(spelling in shown for spelling in parameter.opts), name
                assert " ".join((parameter.help or "?").split()) in shown, (name, parameter.opts)


def test_the_help_is_plain_english() -> None:
    for text in TEXTS:
        assert not BANNED.findall(text)
        for sentence in re.split(r"(?<=[.:;])\s+", " ".join(text.split())):
            assert len(sentence.split()) <= 26, sentence
