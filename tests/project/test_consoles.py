"""Every command that a document shows with `$` prints what the document says."""

from pathlib import Path

import pytest
from tests.support.console import (
    DOCUMENTS,
    ROOT,
    Document,
    outputs_of,
    without_numbers,
    write_outputs,
)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda one: one.name)
def test_every_command_prints_what_the_document_says(document: Document, tmp_path: Path) -> None:
    printed = outputs_of(document, tmp_path)
    for (command, expected), text in zip(document.steps, printed, strict=True):
        assert document.compared(text) == document.compared(expected), command


def test_every_document_with_a_command_is_run() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    names = (str(path.relative_to(ROOT)) for path in pages)
    assert {name for name in names if Document(name, (), str).steps} == {
        document.name for document in DOCUMENTS
    }


@pytest.mark.parametrize(("last", "is_rewritten"), [("0123456789ab", False), ("01234567", True)])
def test_a_page_is_of_one_run(tmp_path: Path, last: str, is_rewritten: bool) -> None:
    page = tmp_path / "page.md"
    steps = "```console\n$ echo 76543210\n{}\n$ echo sha256:ba9876543210\nsha256:{}\n```\n"
    page.write_text(text := steps.format("01234567", last))
    write_outputs(Document(str(page), (), without_numbers))
    run = steps.format("76543210", "ba9876543210")
    assert page.read_text() == (run if is_rewritten else text)


def test_the_tutorial_is_short() -> None:
    text = (ROOT / "docs" / "tutorial.md").read_text()
    assert len(text.splitlines()) <= 220
