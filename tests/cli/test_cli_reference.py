from tests.support.cli_reference import DOCUMENT, MARK, reference


def test_the_reference_in_the_docs_says_what_the_help_says() -> None:
    _, mark, written = DOCUMENT.read_text().partition(MARK)
    assert mark
    assert written == reference(), "run: python -m tests.support.cli_reference"
