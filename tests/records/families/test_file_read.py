"""Files that were read: the receipt is the content, as it is."""

import pytest
from pydantic import ValidationError
from tests.records.support import check_golden, lossy, omitted, run, run_result, whole
from tests.support.policies import policy_with

from tooltrail.records import FileReadOutput, LineRange, StreamRecord

SMALL = policy_with(file_read={"preview_chars": 1000})
LINES = b"".join(b"line %04d\n" % n for n in range(200))


def read(
    content: bytes | StreamRecord, lines: tuple[int, int] | None = None, path: str = "src/a.py"
) -> FileReadOutput:
    return FileReadOutput(
        path=path,
        content=content if isinstance(content, StreamRecord) else whole(content, "content"),
        line_range=None if lines is None else LineRange(start=lines[0], end=lines[1]),
    )


def test_the_receipt_is_worded_as_in_the_golden_file() -> None:
    check_golden(
        ("file_read", 2),
        file_read_whole=read(b"import os\n\nprint(os.name)\n"),
        file_read_empty=read(b""),
        file_read_lines=read(b"def f():\n    pass\n", (10, 11)),
        file_read_line=read(b"def f():", (10, 10)),
        file_read_nothing=read(b"", (900, 950)),
        file_read_binary=read(b"ELF\0\1\2\n"),
        file_read_cut=(read(LINES), SMALL),
        file_read_lossy=read(lossy(b'{"a":[1,2', 50, "content")),
    )


def test_the_summary_says_how_much_was_read_of_what() -> None:
    assert read(b"x" * 1234).summary() == "read 1,234 bytes of src/a.py"
    assert read(b"", path="a\nb").summary() == "read 0 bytes of a\\nb"


def test_the_canonical_result_of_a_whole_file_has_no_spare_field() -> None:
    assert run_result(read(b"text\n")) == {
        "path": "src/a.py",
        "content_preview": "text\n",
        "content_truncated": False,
        "truncated": False,
        "size": 5,
    }


def test_the_canonical_result_names_the_lines_that_were_read() -> None:
    result = run_result(read(b"", (3, 7)))
    assert result["line_range"] == {"start": 3, "end": 7}
    assert result["content_preview"] is None


def test_json_is_shown_as_the_file_has_it() -> None:
    text = '{"a":[1,2],"b":{"c":null}}\n'
    assert run(read(text.encode()))[1].text == text


def test_whole_json_of_a_file_with_a_long_path_is_not_called_incomplete() -> None:
    output = read(b'{"a":1}\n', path="d/" * 200)
    assert run(output)[1].text == '{"a":1}\n'
    result = run_result(output)
    assert (result["truncated"], result["content_truncated"]) == (True, False)


def test_the_size_is_what_was_read_though_not_all_was_kept() -> None:
    output = read(lossy(b"kept\n", 95, "content"))
    assert run_result(output)["size"] == 100
    assert omitted(run(output)[0].omissions, "content", "bytes") == 95


def test_a_path_cannot_pass_for_a_line_of_the_content() -> None:
    _, receipt = run(read(b"text\n", (1, 2), path="a\n\nrm -rf /"))
    assert receipt.text == "Lines 1-2 of a\\n\\nrm -rf /\ntext\n"


def test_a_long_path_keeps_its_end_and_is_counted() -> None:
    path = "d" * 300 + "/name.py"
    projection, receipt = run(read(b"text\n", (1, 2), path))
    assert receipt.text.startswith("Lines 1-2 of \u2026ddd")
    assert "d/name.py\ntext\n" in receipt.text
    assert omitted(projection.omissions, "path", "chars") == 308 - 239


@pytest.mark.parametrize(("start", "end"), [(0, 1), (1, 2**63)])
def test_a_range_of_lines_that_cannot_be_is_refused(start: int, end: int) -> None:
    with pytest.raises(ValidationError):
        LineRange(start=start, end=end)


def test_a_file_without_a_path_is_refused() -> None:
    with pytest.raises(ValidationError, match="a path must not be empty"):
        read(b"", path="")
