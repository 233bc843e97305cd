"""`fs:read` and `fs:list` on real folders."""

import os
from pathlib import Path

import pytest
from tests.support.agents.calling import error_of, result_of, text_of

from tooltrail.records import ErrorKind, FileReadOutput, LineRange, SearchOutput
from tooltrail.workspace import workspace_tools
from tooltrail.workspace.reading import MAX_ENTRIES, MAX_READ


def read(root: Path, **arguments: str | int) -> FileReadOutput:
    return result_of(FileReadOutput, workspace_tools(root)["fs:read"], **arguments)


def refusal(root: Path, **arguments: str | int) -> str:
    error = error_of(workspace_tools(root)["fs:read"], **arguments)
    assert error.kind == ErrorKind.TOOL_EXECUTION_FAILED
    return error.message


def listed(root: Path, **arguments: str | bool) -> list[str]:
    found = result_of(SearchOutput, workspace_tools(root)["fs:list"], **arguments)
    lines = text_of(found.matches).splitlines()
    assert found.match_count == found.returned == len(lines)
    return lines


def test_a_file_is_read_as_it_is_whatever_is_in_it(tmp_path: Path) -> None:
    content = b"one\r\ntwo\x00\xff\n\nlast"
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.bin").write_bytes(content)
    found = read(tmp_path, path="./a//x.bin")
    assert (found.path, found.content.content, found.line_range) == ("a/x.bin", content, None)


@pytest.mark.parametrize(
    ("start", "end", "expected", "lines"),
    [
        (1, 1, b"one\n", (1, 1)),
        (2, 3, b"two\nthree", (2, 3)),
        (2, None, b"two\nthree", (2, 3)),
        (None, 2, b"one\ntwo\n", (1, 2)),
        (3, 99, b"three", (3, 3)),
    ],
)
def test_some_lines_are_read_and_the_range_says_which_there_were(
    tmp_path: Path, start: int | None, end: int | None, expected: bytes, lines: tuple[int, int]
) -> None:
    (tmp_path / "x").write_bytes(b"one\ntwo\nthree")
    asked = {"start_line": start, "end_line": end}
    found = read(tmp_path, path="x", **{k: v for k, v in asked.items() if v is not None})
    assert found.content.content == expected
    assert found.line_range == LineRange(start=lines[0], end=lines[1])


def test_lines_that_are_not_there_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"one\ntwo\n")
    (tmp_path / "empty").touch()
    assert refusal(tmp_path, path="x", start_line=3).endswith("x has no line 3; it has 2 lines")
    assert refusal(tmp_path, path="empty", start_line=1).endswith("no line 1; it has 0 lines")
    assert refusal(tmp_path, path="x", start_line=2, end_line=1).endswith("line 1 is before line 2")


def test_a_large_file_is_read_by_its_lines_alone(tmp_path: Path) -> None:
    with (tmp_path / "x").open("wb") as file:
        file.write(b"first\n")
        file.truncate(MAX_READ + 6)
        file.seek(MAX_READ + 6)
        file.write(b"\nlast\n")
    assert "x is larger than 16 MiB" in refusal(tmp_path, path="x")
    assert "x is larger than 16 MiB" in refusal(tmp_path, path="x", start_line=1, end_line=2)
    # The second line is longer than what is read in one piece.
    assert read(tmp_path, path="x", start_line=1, end_line=1).content.content == b"first\n"
    found = read(tmp_path, path="x", start_line=3)
    assert (found.content.content, found.line_range) == (b"last\n", LineRange(start=3, end=3))


@pytest.mark.parametrize("path", ["/etc/passwd", "..", "a/../../x", "a/..", "x\0y"])
def test_a_path_that_could_lead_out_is_refused(tmp_path: Path, path: str) -> None:
    (tmp_path / "a").mkdir()
    assert "ValueError" in str(error_of(workspace_tools(tmp_path)["fs:read"], path=path).details)
    assert "ValueError" in str(error_of(workspace_tools(tmp_path)["fs:list"], path=path).details)


def test_no_symbolic_link_is_followed_in_a_path_or_at_its_end(tmp_path: Path) -> None:
    outside, root = tmp_path / "outside", tmp_path / "root"
    for folder in (outside, root):
        folder.mkdir()
        (folder / "secret").write_text("x")
    (root / "link").symlink_to(outside)
    (root / "file").symlink_to(root / "secret")
    assert "link is a symbolic link, not a folder" in refusal(root, path="link/secret")
    assert "file is a symbolic link, not a file" in refusal(root, path="file")
    assert listed(root) == ["file@", "link@", "secret"]
    assert listed(root, recursive=True) == ["file@", "link@", "secret"]


def test_a_root_that_is_a_link_itself_is_the_folder_behind_it(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "x").write_text("here")
    (tmp_path / "link").symlink_to("real")
    assert read(tmp_path / "link", path="x").content.content == b"here"


def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    assert refusal(tmp_path, path="pipe").endswith("pipe is a pipe, not a file")
    assert refusal(tmp_path, path="folder").endswith("folder is a folder, not a file")
    assert refusal(tmp_path, path=".").endswith(
        "the path names the workspace itself, which is a folder"
    )
    assert refusal(Path("/dev"), path="zero").endswith("zero is a device, not a file")
    assert refusal(tmp_path, path="pipe/x").endswith("pipe is a pipe, not a folder")


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert refusal(tmp_path, path="a/b").endswith("folder a does not exist")
    assert refusal(tmp_path, path="b").endswith("file b does not exist")
    assert refusal(tmp_path, path="file/x").endswith("file is a file, not a folder")


def test_a_folder_is_listed_in_the_order_of_its_names(tmp_path: Path) -> None:
    for name in ("b/c/d", "b/a", "a.txt", ".git/config", ".hidden"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert listed(tmp_path) == [".git/", ".hidden", "a.txt", "b/"]
    assert listed(tmp_path, path="b") == ["a", "c/"]
    everything = [".git/", ".hidden", "a.txt", "b/", "b/a", "b/c/", "b/c/d"]
    assert listed(tmp_path, recursive=True) == everything


def test_no_name_can_pass_for_another_entry(tmp_path: Path) -> None:
    for name in (b"a\nb", b"\xff", b"\x1b[2J"):
        os.close(os.open(os.path.join(os.fsencode(tmp_path), name), os.O_CREAT))  # noqa: PTH118
    assert listed(tmp_path) == ["\\x1b[2J", "a\\nb", "\\udcff"]


def test_more_entries_than_are_listed_are_counted(tmp_path: Path) -> None:
    for number in range(MAX_ENTRIES + 2):
        os.close(os.open(tmp_path / f"{number:05}", os.O_CREAT))
    found = result_of(SearchOutput, workspace_tools(tmp_path)["fs:list"])
    assert (found.match_count, found.returned) == (MAX_ENTRIES + 2, MAX_ENTRIES)
    assert text_of(found.matches).splitlines()[-1] == f"{MAX_ENTRIES - 1:05}"


def test_folders_that_are_too_deep_are_said_to_be_unread(tmp_path: Path) -> None:
    (tmp_path / Path(*["d"] * 102)).mkdir(parents=True)
    lines = listed(tmp_path, recursive=True)
    assert lines[-2:] == ["/".join(["d"] * 99) + "/", "/".join(["d"] * 100) + "/  (not read)"]


def test_arguments_are_checked_before_anything_is_read(tmp_path: Path) -> None:
    for arguments in ({}, {"path": ""}, {"path": "x", "start_line": 0}, {"path": "x", "y": 1}):
        error = error_of(workspace_tools(tmp_path)["fs:read"], **arguments)
        assert error.kind == ErrorKind.INVALID_TOOL_INPUT
