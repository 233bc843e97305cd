"""Where sessions are looked for, and what one odd file or value costs."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.importers.sources import (
    claude_call,
    claude_line,
    claude_result,
    import_one,
    messages_in,
    opened,
    write_lines,
)

from tooltrail.importers import codex, usual_folders
from tooltrail.importers.events import Event, Line

LINES = [claude_call(1, "t", "Bash", {"command": "make"}), claude_result(2, "t", "built")]


@pytest.mark.parametrize(
    ("folder", "variable", "base"),
    [
        (".claude/projects", "CLAUDE_CONFIG_DIR", ".claude"),
        (".codex/sessions", "CODEX_HOME", ".codex"),
        (".copilot/session-state", "COPILOT_HOME", ".copilot"),
        (".gemini/tmp", "GEMINI_CLI_HOME", "."),
        (".pi/agent/sessions", "PI_CODING_AGENT_DIR", ".pi/agent"),
        (".pi/agent/sessions", "PI_CODING_AGENT_SESSION_DIR", ".pi/agent/sessions"),
    ],
)
def test_the_usual_folder_of_an_agent_can_be_moved(
    tmp_path: Path, folder: str, variable: str, base: str
) -> None:
    expected = tmp_path / folder
    expected.mkdir(parents=True)
    assert usual_folders({}, tmp_path) == [expected]
    assert usual_folders({}, tmp_path / "elsewhere") == []
    assert usual_folders({variable: str(tmp_path / base)}, tmp_path / "elsewhere") == [expected]


@pytest.mark.parametrize("error", [TypeError, RecursionError])
def test_a_line_that_a_reader_does_not_expect_costs_only_itself(
    error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = codex.Reader.read

    def read(reader: codex.Reader, line: Line) -> Iterator[Event]:
        if line.value.get("odd"):
            raise error("unhashable type")
        yield from plain(reader, line)

    monkeypatch.setattr(codex.Reader, "read", read)
    head = {"type": "session_meta", "payload": {"id": "s"}}
    said = {"type": "response_item", "payload": {"type": "message", "role": "user", "content": "a"}}
    path = write_lines(tmp_path / "a.jsonl", [head, {"odd": 1}, said])
    imported = import_one(tmp_path, path)
    assert imported.counts["messages"] == 1
    (damaged,) = imported.damaged
    assert (damaged.number, damaged.is_cut) == (2, False)
    assert damaged.damage == "a value of an unexpected type (unhashable type)"


def test_content_that_is_an_object_is_kept(tmp_path: Path) -> None:
    content = {"type": "text", "text": "hello"}
    import_one(tmp_path, write_lines(tmp_path / "a.jsonl", [claude_line("user", content, 1)]))
    with opened(tmp_path) as reader:
        (message,) = messages_in(reader)
    assert message.text == "hello"
