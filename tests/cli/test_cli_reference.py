"""The reference in docs/cli.md is made from the commands, and follows house style."""

import re

import click
from tests.support.cli_reference import (
    DOCUMENT,
    MARK,
    commands,
    reference,
    shared_options,
    spelled,
)

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
    shared = " ".join(sections.pop("Shared options").split())
    assert set(sections) == {name for name, _, _ in commands()}
    for name, command, context in commands():
        section = sections[name]
        if f"The same as `tooltrail {context.info_name}`" in section:
            section = sections[f"tooltrail {context.info_name}"]
        shown = " ".join(section.split())
        also = re.findall(r"  Also (.+), and --help\.\n", section)
        groups = also[0].split(", ") if also else []
        elsewhere = [spelled(one) for group in groups for one in shared_options()[group]]
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                place = shared if spelled(parameter) in elsewhere else shown
                assert all(spelling in place for spelling in parameter.opts), name
                assert " ".join((parameter.help or "?").split()) in place, (name, parameter.opts)


def test_the_help_is_plain_english() -> None:
    for text in TEXTS:
        assert not BANNED.findall(text)
        for sentence in re.split(r"(?<=[.:;])\s+", " ".join(text.split())):
            assert len(sentence.split()) <= 26, sentence
