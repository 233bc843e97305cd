"""Every Python example of these documents runs, and runs again in the same folder."""

import re
from pathlib import Path

import pytest

PAGES = [
    (Path(__file__).parents[2] / name).read_text()
    for name in ("README.md", "docs/python.md", "docs/frameworks.md")
]
PRINTS = "\nIt prints\n\n```text\n"

EXAMPLES = [
    (block.partition("```\n")[0], block.partition("```\n")[2])
    for page in PAGES
    for block in page.split("```python\n")[1:]
]
"""The code of each example, and the text behind it."""

NAMES = [name for page in PAGES[1:] for name in re.findall(r"^## (.+)$", page, re.MULTILINE)]


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
        exec(compile(code, "an example", "exec"), {"__name__": "example"})
        printed = capsys.readouterr().out
        if behind.startswith(PRINTS):
            assert printed == behind.removeprefix(PRINTS).partition("```")[0]


def test_the_pages_have_examples_of_all_that_they_describe() -> None:
    assert len(EXAMPLES) >= len(NAMES) - 1
