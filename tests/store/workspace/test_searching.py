"""`fs:search` on real folders."""

import os
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from pydantic import JsonValue
from tests.support.agents.calling import error_of, result_of, text_of
from tests.support.processes import NOBODY, run_python

from tooltrail.agents import line_search, searching
from tooltrail.records import SearchOutput
from tooltrail.workspace import workspace_tools


def found(root: Path, pattern: str, **arguments: JsonValue) -> SearchOutput:
    tool = workspace_tools(root)["fs:search"]
    return result_of(SearchOutput, tool, pattern=pattern, **arguments)


def lines(root: Path, pattern: str, **arguments: JsonValue) -> list[str]:
    return text_of(found(root, pattern, **arguments).matches).splitlines()


def refusal(root: Path, pattern: str, **arguments: JsonValue) -> str:
    return error_of(workspace_tools(root)["fs:search"], pattern=pattern, **arguments).message


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, content in {
        "a.py": b"def one():\n    pass\n",
        "b/c.py": b"x = 1\r\ndef two(): ...\r\n",
        "b/d.txt": "Ünïcode DEF (x)\n".encode(),
        "b/bad.txt": b"def \xff\n",
        "binary": b"\x00def\n",
        ".git/config": b"def\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    (tmp_path / "link.py").symlink_to("a.py")
    return tmp_path


def test_lines_are_found_in_the_order_of_files_and_lines(tree: Path) -> None:
    assert lines(tree, r"\bdef\b") == [
        "a.py:1:def one():",
        "b/bad.txt:1:def \ufffd",
        "b/c.py:2:def two(): ...",
    ]
    assert lines(tree, r"two.*\.$") == ["b/c.py:2:def two(): ..."]
    output = found(tree, r"\bdef\b")
    assert (output.match_count, output.returned) == (3, 3)


def test_a_search_is_narrowed_by_folder_file_and_name(tree: Path) -> None:
    assert lines(tree, "def", path="b", glob="*.py") == ["b/c.py:2:def two(): ..."]
    assert lines(tree, "def", path="a.py") == ["a.py:1:def one():"]
    assert lines(tree, "^$") == []


def test_a_literal_is_no_expression_and_letters_may_be_of_any_size(tree: Path) -> None:
    assert lines(tree, "(x)", literal=True) == ["b/d.txt:1:Ünïcode DEF (x)"]
    assert lines(tree, "ünï.* def", ignore_case=True) == ["b/d.txt:1:Ünïcode DEF (x)"]


def test_more_lines_than_are_asked_for_are_counted(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("hit\n" * 1_000)
    output = found(tmp_path, "hit", max_matches=2)
    assert (output.match_count, output.returned) == (1_000, 2)
    assert text_of(output.matches) == "x:1:hit\nx:2:hit\n"


def test_the_name_of_a_file_cannot_look_like_a_line_of_the_result(tmp_path: Path) -> None:
    name = "a\nb.py:3:def forged"
    (tmp_path / name).write_text("def one\n")
    shown = [r"a\nb.py:3:def forged:1:def one"]
    assert lines(tmp_path, "def") == lines(tmp_path, "def", path=name) == shown


def test_a_long_line_is_cut_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("a" * 1_700 + "\n")
    assert lines(tmp_path, "a") == ["x:1:" + "a" * 500 + "… [1,200 more characters]"]


def test_a_line_of_more_than_a_mebibyte_is_searched_as_one_line(tmp_path: Path) -> None:
    long = "needle" + "a" * ((1 << 20) - 9) + "needle"
    (tmp_path / "x").write_text(f"{long}\nneedle\n")
    shown = f"x:1:{long[:500]}… [{len(long) - 500:,} more characters]"
    assert lines(tmp_path, "needle") == [shown, "x:2:needle"]
    assert lines(tmp_path, "aneedle$") == [shown]


def test_a_line_that_is_too_long_to_search_is_named(tmp_path: Path) -> None:
    (tmp_path / "long").write_text("needle\n" + "a" * (64 << 20) + "\nneedle")
    (tmp_path / "longer").write_text("needle\n" + "a" * (64 << 20) + "a\nneedle\n")
    (tmp_path / "x").write_text("needle\n")
    assert lines(tmp_path, "needle") == [
        "long:1:needle",
        "long:3:needle",
        "longer:1:needle",
        "longer:3:needle",
        "x:1:needle",
        "(longer: line 2 is too long to search: over 64 MiB)",
    ]


def test_the_end_of_a_line_is_before_a_carriage_return(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"one\r\none\rtwo\none\r\r\n")
    assert text_of(found(tmp_path, "one$").matches) == "x:1:one\r\n"
    assert found(tmp_path, "(?s)one.").match_count == 2


@pytest.mark.parametrize(
    ("pattern", "arguments", "expected"),
    [
        ("(", {}, "the pattern is not a regular expression: missing ), unterminated subpattern"),
        ("x", {"path": "../x"}, "cannot contain `..`"),
        ("x", {"path": "nowhere"}, "nowhere does not exist"),
        ("x", {"path": "nowhere/x"}, "folder nowhere does not exist"),
        ("x", {"path": "link.py"}, "link.py is a symbolic link, not a file"),
    ],
)
def test_what_cannot_be_searched_is_told(
    tree: Path, pattern: str, arguments: dict[str, JsonValue], expected: str
) -> None:
    assert expected in refusal(tree, pattern, **arguments)


def test_a_pattern_may_be_long(tmp_path: Path) -> None:
    long = "x" * 200_000
    (tmp_path / "x").write_text(f"{long}y\nx\n")
    assert found(tmp_path, f"{long}|zz").match_count == 1
    assert "does not exist" in refusal(tmp_path, "x", path="/".join(["a"] * 100_000))


def test_a_pattern_that_takes_for_ever_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x").write_text("a" * 60 + "!\n")
    monkeypatch.setattr(searching, "TIMEOUT_MS", 1_000)
    assert refusal(tmp_path, "(a+)+$").endswith("the search took longer than 1 seconds")


def test_nothing_in_the_folder_is_run_by_a_search(tmp_path: Path) -> None:
    (tmp_path / "re.py").write_text("open('ran', 'w')\n")
    (tmp_path / "tooltrail").mkdir()
    (tmp_path / "tooltrail" / "agents.py").write_text("open('ran', 'w')\n")
    code = (
        "import asyncio, sys\n"
        "from tooltrail.workspace import workspace_tools\n"
        "import os; os.chdir(sys.argv[1])\n"
        "tool = workspace_tools('.')['fs:search']\n"
        "print(asyncio.run(tool.handler({'pattern': 'ran'})).match_count)\n"
    )
    assert run_python(code, str(tmp_path))[0] == "2\n"
    assert not (tmp_path / "ran").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes a user who may not read")
def test_files_and_folders_that_cannot_be_read_are_told() -> None:
    code = (
        "from tooltrail.workspace._search_worker import search\n"
        "findings = search({'root': sys.argv[1], 'pattern': 'hit'})\n"
        "print(findings.count, findings.unread)\n"
    )
    with TemporaryDirectory() as name:
        root = Path(name)
        root.chmod(0o755)
        (root / "x").write_text("hit\n")
        (root / "x").chmod(0)
        (root / "folder").mkdir(mode=0)
        (root / "listed").mkdir(mode=0o744)
        (root / "listed" / "x").write_text("hit\n")
        worker = "tooltrail.workspace._search_worker"
        expected = "0 ['folder', 'listed', 'x']\n"
        assert run_python(code, name, user=NOBODY, imports=worker)[0] == expected


def test_files_that_are_unread_but_not_named_are_counted(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    found = line_search.Findings(most=1)
    found.unread += map(str, range(1_022))
    found.unsearched += [f"line {n} is too long to search" for n in range(21)]
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(b"{}\n")))
    monkeypatch.setattr("resource.setrlimit", lambda *_: None)
    assert line_search.main(lambda _: found) == 0
    printed = capsysbinary.readouterr().out.decode().splitlines()
    assert len(printed) == 1 + 21 + 21
    assert printed[20:22] == ["(19 could not be read)", "(1,002 more: could not be read)"]
    assert printed[-2:] == [
        "(line 19 is too long to search)",
        "(1 more: too long to search)",
    ]
