"""What docs/contract.md says of families, budgets and tests is so."""

import re
from pathlib import Path

import pytest
from tests.support.corpus.formats import CORPUS
from tests.support.corpus_report import table as corpus_table

from tooltrail.records import DEFAULT_POLICY, default_families, policy_from_toml

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
DOCUMENT = (ROOT / "docs" / "contract.md").read_text()
FAMILIES = default_families()


def table(heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, without its first two lines."""
    section = DOCUMENT.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:]]


def test_every_test_that_proves_a_sentence_is_there() -> None:
    named = set(re.findall(r"([\w/]+\.py)::(\w+)", DOCUMENT))
    defined = {
        (file, name)
        for file in {file for file, _ in named}
        for name in re.findall(r"^(?:async )?def (\w+)\(", (TESTS / file).read_text(), re.MULTILINE)
    }
    assert named - defined == set()


def test_every_function_that_keeps_a_sentence_is_there() -> None:
    roots = (ROOT / name for name in ("artifacts", "cli", "migrations", "store"))
    files = [file for root in roots for file in root.rglob("*.py")]
    words = {word for file in files for word in re.findall(r"\w+", file.read_text())}
    places = re.findall(r"^\|[^|]*\|([^|]*)\|[^|]*::", DOCUMENT, re.MULTILINE)
    named = {name for place in places for name in re.findall(r"\.(\w+)`", place)}
    assert named - words - {"py", "md"} == set()


def test_every_sentence_names_a_place_and_a_test() -> None:
    rows = table("Sentence by sentence")
    assert len(rows) >= 50
    for row in rows:
        assert len(row) == 3
        assert all(row)
        assert "::" in row[2]


def test_every_family_is_listed_with_its_tools() -> None:
    listed = {row[0]: row[2] for row in table("Families")}
    assert set(listed) == {family.name for family in FAMILIES}
    for family in FAMILIES:
        if family.tool_names:
            assert set(listed[family.name].split(", ")) == family.tool_names


def test_every_budget_is_listed_with_its_numbers() -> None:
    listed = {row[0]: [int(cell.replace(",", "")) for cell in row[1:]] for row in table("Budgets")}
    assert listed == {
        name: [budget.preview_chars, budget.receipt_chars, budget.max_items]
        for name, budget in DEFAULT_POLICY.families.items()
    }


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of recorded sessions is not here")
def test_the_figures_of_real_tool_calls_are_those_of_the_families_today() -> None:
    section = DOCUMENT.partition("\n## Real tool calls\n")[2].partition("\n## ")[0]
    assert [line for line in section.splitlines() if line.startswith("|")] == [*corpus_table()]


def test_the_policy_that_is_shown_is_one() -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", DOCUMENT, re.DOTALL)
    policy = policy_from_toml(text, FAMILIES)
    command = FAMILIES.named("command")
    assert policy.family_of("my_shell", FAMILIES) is command
    assert policy.budget_of(command, "my_shell").preview_chars == 100_000
    assert policy.budget_of(command, "Bash").preview_chars == 16_000
