"""Tools for the files of a folder, which they never leave."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from tooltrail.agents import AgentTool, workspace_tools
from tooltrail.agents.workspace import beneath
from tooltrail.agents.workspace.file_tools import MAX_MATCHES
from tooltrail.records import (
    FileMutationOutput,
    FileReadOutput,
    PathEscapeError,
    SearchOutput,
    StreamRecord,
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "src").mkdir(parents=True)
    (folder / "a.txt").write_bytes(b"one\r\ntwo\nthree")
    (folder / "src" / "b.py").write_text("import os\nx = 1\n")
    (tmp_path / "secret").write_text("secret")
    return folder


@pytest.fixture
def tools(root: Path) -> dict[str, AgentTool]:
    return workspace_tools(root, allow_writes=True, allow_commands=True)


def call(tools: dict[str, AgentTool], name: str, **arguments: Any) -> Any:
    tool = tools[name]
    return tool.handler(tool.parse(arguments))


def content(record: StreamRecord | None) -> bytes:
    assert record is not None
    assert record.content is not None
    return record.content


def test_there_are_tools_that_write_only_where_that_is_allowed(root: Path) -> None:
    assert [*workspace_tools(root)] == ["fs:read", "fs:list", "fs:search"]
    assert [*workspace_tools(root, allow_writes=True)][3:] == ["fs:write", "fs:edit"]
    assert [*workspace_tools(root, allow_commands=True)][3:] == ["shell:run"]
    writing = workspace_tools(root, allow_writes=True, allow_commands=True)
    assert [name for name, tool in writing.items() if tool.has_side_effects] == [
        "fs:write",
        "fs:edit",
        "shell:run",
    ]


def test_a_file_is_read_as_it_is_or_by_its_lines(tools: dict[str, AgentTool]) -> None:
    whole = call(tools, "fs:read", path="a.txt")
    assert isinstance(whole, FileReadOutput)
    assert (content(whole.content), whole.line_range) == (b"one\r\ntwo\nthree", None)
    part = call(tools, "fs:read", path="a.txt", start_line=2, end_line=2)
    assert content(part.content) == b"two\n"
    assert (part.line_range.start, part.line_range.end) == (2, 2)
    assert content(call(tools, "fs:read", path="a.txt", start_line=3).content) == b"three"
    assert content(call(tools, "fs:read", path="a.txt", end_line=1).content) == b"one\r\n"
    assert content(call(tools, "fs:read", path="a.txt", start_line=9).content) == b""
    assert content(call(tools, "fs:read", path="./src/b.py").content) == b"import os\nx = 1\n"


def test_a_folder_is_listed(tools: dict[str, AgentTool]) -> None:
    assert call(tools, "fs:list") == "a.txt\nsrc/\n"
    assert call(tools, "fs:list", path="src") == "b.py\n"


def test_lines_are_found_by_text_and_by_expression(tools: dict[str, AgentTool], root: Path) -> None:
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("import")
    (root / "binary").write_bytes(b"import\0")
    (root / "latin").write_bytes(b"import \xe4\n")
    found = call(tools, "fs:search", pattern="import")
    assert isinstance(found, SearchOutput)
    assert content(found.matches) == b"latin:1: import \xe4\nsrc/b.py:1: import os\n"
    assert (found.match_count, found.returned) == (2, 2)
    assert call(tools, "fs:search", pattern="^x = [0-9]$", is_regex=True).match_count == 1
    assert call(tools, "fs:search", pattern="^x", path="src").match_count == 0
    with pytest.raises(ValueError, match="no regular expression"):
        call(tools, "fs:search", pattern="(", is_regex=True)


def test_all_matches_are_counted_and_some_given_back(
    tools: dict[str, AgentTool], root: Path
) -> None:
    (root / "many").write_text("match\n" * (MAX_MATCHES + 5))
    found = call(tools, "fs:search", pattern="match")
    assert (found.match_count, found.returned) == (MAX_MATCHES + 5, MAX_MATCHES)


def test_a_file_is_written_whole_and_keeps_its_rights(
    tools: dict[str, AgentTool], root: Path
) -> None:
    made = call(tools, "fs:write", path="new/deep/c.txt", content="\u00e4\n")
    assert isinstance(made, FileMutationOutput)
    assert (root / "new" / "deep" / "c.txt").read_bytes() == "\u00e4\n".encode()
    assert made.changed_files[0].action == "add"
    (root / "a.txt").chmod(0o640)
    changed = call(tools, "fs:write", path="a.txt", content="one\n")
    assert changed.changed_files[0].action == "modify"
    assert b"-two\n" in content(changed.changed_files[0].diff)
    assert stat.S_IMODE((root / "a.txt").stat().st_mode) == 0o640
    assert sorted(path.name for path in root.iterdir()) == ["a.txt", "new", "src"]


def test_a_text_is_replaced_where_it_stands_once(tools: dict[str, AgentTool], root: Path) -> None:
    edited = call(tools, "fs:edit", path="src/b.py", old="x = 1", new="x = 2")
    assert (root / "src" / "b.py").read_text() == "import os\nx = 2\n"
    assert b"+x = 2\n" in content(edited.changed_files[0].diff)
    for old in ("nowhere", "o"):
        with pytest.raises(ValueError, match="and not once"):
            call(tools, "fs:edit", path="src/b.py", old=old, new="")
    assert (root / "src" / "b.py").read_text() == "import os\nx = 2\n"


@pytest.mark.parametrize(
    "path", ["../secret", "/etc/passwd", "src/../../secret", "link", "way/secret", "a\0b"]
)
def test_no_path_leads_out_of_the_folder(
    tools: dict[str, AgentTool], root: Path, path: str
) -> None:
    (root / "link").symlink_to(root.parent / "secret")
    (root / "way").symlink_to(root.parent)
    for name, more in (
        ("fs:read", {}),
        ("fs:write", {"content": "x"}),
        ("fs:edit", {"old": "s", "new": ""}),
    ):
        with pytest.raises((PathEscapeError, OSError)):
            call(tools, name, path=path, **more)
    assert (root.parent / "secret").read_text() == "secret"
    assert call(tools, "fs:search", pattern="secret").match_count == 0


def test_a_link_that_is_put_in_the_way_between_look_and_use_is_not_followed(
    tools: dict[str, AgentTool], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whoever looks is told that it is no link; the opening itself has to refuse it.
    (root / "link").symlink_to(root.parent / "secret")
    (root / "way").symlink_to(root.parent)

    def sees_nothing(_name: str, _folder: int) -> None:
        return None

    monkeypatch.setattr(beneath, "_status", sees_nothing)
    for path in ("link", "way/secret"):
        with pytest.raises(OSError, match=r"[Ll]evels of symbolic links|Not a directory"):
            call(tools, "fs:read", path=path)


def test_what_is_no_regular_file_is_refused_and_not_waited_for(
    tools: dict[str, AgentTool], root: Path
) -> None:
    os.mkfifo(root / "pipe")
    for path in ("pipe", "src", ".", ""):
        for name, more in (("fs:read", {}), ("fs:write", {"content": "x"})):
            with pytest.raises(OSError):
                call(tools, name, path=path, **more)
    assert call(tools, "fs:search", pattern="x = 1").match_count == 1


def test_a_file_that_cannot_be_replaced_leaves_nothing_behind(
    tools: dict[str, AgentTool], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        call(tools, "fs:write", path="a.txt", content="new")
    assert (root / "a.txt").read_bytes() == b"one\r\ntwo\nthree"
    assert sorted(path.name for path in root.iterdir()) == ["a.txt", "src"]


def test_very_long_files_are_not_compared_line_by_line(
    tools: dict[str, AgentTool], root: Path
) -> None:
    (root / "long").write_text("x\n" * 15_000)
    changed = call(tools, "fs:write", path="long", content="y\n" * 15_000)
    assert content(changed.changed_files[0].diff) == (
        b"long: 15,000 lines became 15,000, too many to compare\n"
    )


@pytest.mark.parametrize(
    "arguments", [{}, {"path": 1}, {"path": "a", "more": 1}, {"path": "a", "start_line": 0}]
)
def test_arguments_that_the_tool_does_not_take_are_refused(
    tools: dict[str, AgentTool], arguments: dict[str, Any]
) -> None:
    from jsonschema import ValidationError

    with pytest.raises(ValidationError):
        call(tools, "fs:read", **arguments)
    with pytest.raises(ValueError, match="must be a JSON object"):
        tools["fs:read"].parse([])
