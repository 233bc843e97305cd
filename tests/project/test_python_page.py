"""Every example of docs/python.md runs, and runs again in the same folder."""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "python.md").read_text()
PRINTS = "\nIt prints\n\n```text\n"

EXAMPLES = [
    (block.partition("```\n")[0], block.partition("```\n")[2])
    for block in PAGE.split("```python\n")[1:]
]
"""The code of each example, and the text behind it."""

NAMES = re.findall(r"^## (.+)$", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("code", "behind"), EXAMPLES)
def test_an_example_runs_twice_and_prints_what_the_page_says(
    code: str,
    behind: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        exec(compile(code, "docs/python.md", "exec"), {"__name__": "example"})
        printed = capsys.readouterr().out
        if behind.startswith(PRINTS):
            assert printed == behind.removeprefix(PRINTS).partition("```")[0]


def test_the_page_has_examples_of_all_it_describes() -> None:
    assert len(EXAMPLES) >= len(NAMES) - 1
