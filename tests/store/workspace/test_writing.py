"""`fs:write` and `fs:edit` on real folders."""

import os
import shutil
import stat
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.agents.calling import error_of, result_of, text_of

from tooltrail.agents import AgentTool
from tooltrail.records import FileMutationOutput, Hunk, ToolError
from tooltrail.workspace import workspace_tools
from tooltrail.workspace._diffs import unified_diff


def tools(root: Path) -> dict[str, AgentTool]:
    return workspace_tools(root, allow_writes=True)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def write(root: Path, path: str, content: str) -> FileMutationOutput:
    return result_of(FileMutationOutput, tools(root)["fs:write"], path=path, content=content)


def edit(root: Path, path: str, old: str, new: str, *, every: bool = False) -> FileMutationOutput:
    return result_of(
        FileMutationOutput,
        tools(root)["fs:edit"],
        path=path,
        old_text=old,
        new_text=new,
        replace_all=every,
    )


def refusal(root: Path, name: str, **arguments: str) -> str:
    return error_of(tools(root)[name], **arguments).message


def test_a_folder_cannot_be_changed_unless_that_is_allowed(tmp_path: Path) -> None:
    assert set(workspace_tools(tmp_path)) == {"fs:read", "fs:list", "fs:search"}
    assert set(tools(tmp_path)) == {"fs:read", "fs:list", "fs:search", "fs:write", "fs:edit"}
    changing = {name for name, tool in tools(tmp_path).items() if tool.has_side_effects}
    assert changing == {"fs:write", "fs:edit"}


def test_a_new_file_is_written_with_its_folders_and_its_diff(tmp_path: Path) -> None:
    output = write(tmp_path, "a/b/x.txt", "one\ntwo")
    assert (tmp_path / "a" / "b" / "x.txt").read_bytes() == b"one\ntwo"
    (change,) = output.changed_files
    assert (change.action, change.path) == ("add", "a/b/x.txt")
    assert change.hunks == (Hunk(old_start=0, old_lines=0, new_start=1, new_lines=2),)
    assert text_of(change.diff) == (
        "--- /dev/null\n+++ b/a/b/x.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n"
        "\\ No newline at end of file\n"
    )


def test_a_file_that_is_written_again_keeps_its_rights_and_leaves_nothing_behind(
    tmp_path: Path,
) -> None:
    file = tmp_path / "x.sh"
    file.write_text("old\n")
    file.chmod(0o4751)
    (change,) = write(tmp_path, "x.sh", "new\n").changed_files
    assert change.action == "modify"
    # Nobody becomes another user by what a model wrote.
    assert stat.S_IMODE(file.stat().st_mode) == 0o751
    assert text_of(change.diff) == "--- a/x.sh\n+++ b/x.sh\n@@ -1 +1 @@\n-old\n+new\n"
    assert names_in(tmp_path) == ["x.sh"]


def test_to_write_what_is_there_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("same")
    before = (tmp_path / "x").stat().st_ino
    assert write(tmp_path, "x", "same").changed_files == ()
    assert (tmp_path / "x").stat().st_ino == before
    (change,) = write(tmp_path, "empty", "").changed_files
    assert (change.action, change.hunks, text_of(change.diff)) == ("add", (), "")
    assert (tmp_path / "empty").read_bytes() == b""


def test_an_edit_replaces_a_text_that_is_there_once(tmp_path: Path) -> None:
    lines = [f"line {n}\n" for n in range(1, 21)]
    (tmp_path / "x").write_text("".join(lines))
    (change,) = edit(tmp_path, "x", "line 9\nline 10\n", "nine\n").changed_files
    assert (tmp_path / "x").read_text() == "".join([*lines[:8], "nine\n", *lines[10:]])
    assert change.hunks == (Hunk(old_start=6, old_lines=8, new_start=6, new_lines=7),)
    assert text_of(change.diff) == (
        "--- a/x\n+++ b/x\n@@ -6,8 +6,7 @@\n line 6\n line 7\n line 8\n-line 9\n-line 10\n+nine\n"
        " line 11\n line 12\n line 13\n"
    )


def test_an_edit_of_a_text_that_is_not_there_once_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"a b a\r\n")
    arguments = {"path": "x", "old_text": "a", "new_text": "c"}
    assert "is 2 times in x" in refusal(tmp_path, "fs:edit", **arguments)
    missing = refusal(tmp_path, "fs:edit", **{**arguments, "old_text": "z\n"})
    assert missing.endswith("old_text is not in x; its lines end in CR LF")
    missing = refusal(tmp_path, "fs:edit", **{**arguments, "old_text": "z\r\n"})
    assert missing.endswith("old_text is not in x")
    assert (tmp_path / "x").read_bytes() == b"a b a\r\n"
    edit(tmp_path, "x", "a", "c", every=True)
    assert (tmp_path / "x").read_bytes() == b"c b c\r\n"


def test_an_edit_of_a_text_that_overlaps_itself_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"  }\n  }\n  }\n")
    arguments = {"path": "x", "old_text": "  }\n  }\n", "new_text": "end\n"}
    assert "is in two overlapping places in x" in refusal(tmp_path, "fs:edit", **arguments)
    assert (tmp_path / "x").read_bytes() == b"  }\n  }\n  }\n"
    edit(tmp_path, "x", "  }\n  }\n", "end\n", every=True)
    assert (tmp_path / "x").read_bytes() == b"end\n  }\n"


def test_an_edit_needs_a_file(tmp_path: Path) -> None:
    arguments = {"path": "x", "old_text": "a", "new_text": "b"}
    assert refusal(tmp_path, "fs:edit", **arguments).endswith("file x does not exist")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("../x", "cannot contain `..`"),
        ("/tmp/x", "the path is absolute; give it relative to the workspace"),
        (".", "the path names the workspace itself, which is a folder"),
        (".git/hooks/pre-commit", ".git/hooks/pre-commit belongs to git and cannot be written"),
        ("a/.GIT", "a/.GIT belongs to git and cannot be written"),
        ("link/x", "link is a symbolic link, not a folder"),
        ("file", "file is a symbolic link, not a file"),
        ("pipe", "pipe is a pipe, not a file"),
        ("folder", "folder is a folder, not a file"),
        ("plain/x", "plain is a file, not a folder"),
    ],
)
def test_what_is_not_to_be_written_is_not_touched(tmp_path: Path, path: str, expected: str) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (outside / "x").write_text("safe")
    (root / "link").symlink_to(outside)
    (root / "file").symlink_to(outside / "x")
    (root / "folder").mkdir()
    (root / "plain").touch()
    os.mkfifo(root / "pipe")
    assert refusal(root, "fs:write", path=path, content="bad").endswith(expected)
    assert names_in(root) == ["file", "folder", "link", "pipe", "plain"]
    assert names_in(outside) == ["x"]
    assert (outside / "x").read_text() == "safe"


def test_a_text_that_is_no_utf_8_is_refused(tmp_path: Path) -> None:
    tool = tools(tmp_path)["fs:write"]
    error = tool.handler({"path": "x", "content": "\ud800"})
    assert isinstance(error, ToolError)
    assert error.message.startswith("ValueError: the text cannot be written as UTF-8: ")
    assert names_in(tmp_path) == []


def test_a_write_that_does_not_come_to_its_end_leaves_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("old")
    code = (
        "import resource, sys\n"
        "from tooltrail.workspace import workspace_tools\n"
        "tool = workspace_tools(sys.argv[1], allow_writes=True)['fs:write']\n"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try: tool.handler({'path': 'x', 'content': 'n' * 5000})\n"
        "except OSError as error: print(error.errno)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "27\n"
    assert (tmp_path / "x").read_text() == "old"
    assert names_in(tmp_path) == ["x"]


def test_edits_at_the_same_time_are_all_there(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("".join(f"<{n}>\n" for n in range(16)))
    tool = tools(tmp_path)["fs:edit"]

    def replace(number: int) -> None:
        tool.handler({"path": "x", "old_text": f"<{number}>", "new_text": f"[{number}]"})

    threads = [threading.Thread(target=replace, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "x").read_text() == "".join(f"[{n}]\n" for n in range(16))


def test_links_that_come_and_go_while_files_are_written_lead_nowhere(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder in (root, outside):
        (folder / "folder").mkdir(parents=True)
        (folder / "folder" / "x").write_text("a")
    (outside / "file").write_text("a")
    is_done = threading.Event()

    def swap() -> None:
        while not is_done.is_set():
            (root / "folder").rename(root / "aside")
            (root / "folder").symlink_to(outside / "folder")
            (root / "folder").unlink()
            (root / "aside").rename(root / "folder")
            with suppress(FileExistsError):
                (root / "file").symlink_to(outside / "file")
            (root / "file").unlink()

    swapper = threading.Thread(target=swap)
    swapper.start()
    edit_tool, write_tool = tools(root)["fs:edit"], tools(root)["fs:write"]
    counts = {"edited": 0, "written": 0}
    try:
        for old, new in [("a", "b"), ("b", "a")] * 150:
            with suppress(OSError, ValueError):
                edit_tool.handler({"path": "folder/x", "old_text": old, "new_text": new})
                counts["edited"] += 1
            with suppress(OSError):
                write_tool.handler({"path": "file", "content": "b"})
                counts["written"] += 1
    finally:
        is_done.set()
        swapper.join()
    assert min(counts.values()) > 0
    assert (outside / "folder" / "x").read_text() == "a"
    assert (outside / "file").read_text() == "a"


contents = st.lists(
    st.sampled_from([b"a", b"b", b"\n", b"\r\n", b"c\n", b"\x00"]), max_size=30
).map(b"".join)


@given(contents, contents)
def test_the_diff_makes_the_new_content_of_the_old_one(old: bytes, new: bytes) -> None:
    diff, hunks = unified_diff("x", old, new)
    assert (diff == b"") == (old == new) == (hunks == ())
    assert applied(diff, old) == new


def test_a_change_of_many_lines_is_one_hunk_with_what_is_around_it() -> None:
    old = [b"same %d\n" % n for n in range(10)]
    many = [b"line %d\n" % n for n in range(5_000)]
    diff, hunks = unified_diff("x", b"".join(old), b"".join([*old[:5], *many, *old[5:]]))
    assert hunks == (Hunk(old_start=3, old_lines=6, new_start=3, new_lines=5_006),)
    assert applied(diff, b"".join(old)) == b"".join([*old[:5], *many, *old[5:]])


def applied(diff: bytes, old: bytes) -> bytes:
    """What a unified diff makes of a content, read as git does it."""
    source = [line + b"\n" for line in old.split(b"\n")]
    source[-1] = source[-1][:-1]
    result, position, last = list[bytes](), 0, b""
    for line in diff.split(b"\n")[2:-1]:
        if line.startswith(b"@@"):
            start, _, count = line.split(b" ")[1][1:].partition(b",")
            begin = int(start) - (count != b"0")
            result += source[position:begin]
            position = begin
        elif line.startswith(b"\\"):
            if last == b"+":
                result[-1] = result[-1].removesuffix(b"\n")
        elif line[:1] == b"+":
            result.append(line[1:] + b"\n")
        else:
            assert line[1:] == source[position].removesuffix(b"\n")
            if line[:1] == b" ":
                result.append(source[position])
            position += 1
        last = line[:1]
    return b"".join(result + source[position:])


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_git_takes_the_diffs(tmp_path: Path) -> None:
    old, new = b"a\nb\nc\nd\ne\nf\ng\nh\nlast", b"A\nb\nc\nd\ne\nf\ng\nh\nmore\nlast\n"
    (tmp_path / "x").write_bytes(old)
    diff, _ = unified_diff("x", old, new)
    subprocess.run(["git", "apply", "-"], input=diff, cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "x").read_bytes() == new


def test_a_file_that_is_too_large_to_be_changed_is_refused_with_advice(tmp_path: Path) -> None:
    with (tmp_path / "x").open("wb") as file:
        file.truncate((16 << 20) + 1)
    for name, arguments in (
        ("fs:write", {"content": "a"}),
        ("fs:edit", {"old_text": "a", "new_text": "b"}),
    ):
        message = error_of(tools(tmp_path)[name], path="x", **arguments).message
        assert message.endswith("smaller files; write a new file under another name")
