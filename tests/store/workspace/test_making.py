"""Which tools a folder has."""

from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from pydantic import JsonValue
from tests.support.agents.calling import error_of

from tooltrail.records import InvalidRecordError, NotFoundError
from tooltrail.workspace import reading, workspace_tools

EVERY = {"fs:read", "fs:list", "fs:search", "fs:write", "fs:edit", "shell:run"}


def test_a_command_is_run_where_that_is_allowed_alone(tmp_path: Path) -> None:
    assert set(workspace_tools(tmp_path, allow_commands=True)) == EVERY - {"fs:write", "fs:edit"}
    assert set(workspace_tools(tmp_path, allow_commands=True, allow_writes=True)) == EVERY


def test_every_tool_is_described_by_a_schema_that_takes_nothing_else(tmp_path: Path) -> None:
    for tool in workspace_tools(tmp_path, allow_commands=True, allow_writes=True).values():
        parameters = tool.definition.parameters
        assert parameters is not None
        Draft202012Validator.check_schema(parameters)
        assert parameters["additionalProperties"] is False
        assert tool.definition.description


def test_a_workspace_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InvalidRecordError, match="file is not a folder"):
        workspace_tools(tmp_path / "file")
    with pytest.raises(NotFoundError, match="does not exist"):
        workspace_tools(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("fs:read", {"path": "nope"}, "FileNotFoundError: file nope does not exist"),
        ("fs:read", {"path": "a"}, "NotAFileError: a is a folder, not a file"),
        ("fs:read", {"path": "x/y"}, "NotADirectoryError: x is a file, not a folder"),
        ("fs:read", {"path": "x", "start_line": 9}, "ValueError: x has no line 9"),
        ("fs:list", {"path": "nope"}, "FileNotFoundError: folder nope does not exist"),
        ("fs:search", {"path": "nope", "pattern": "y"}, "ValueError: "),
        ("fs:write", {"path": ".git/x", "content": ""}, "PermissionError: "),
        ("fs:edit", {"path": "x", "old_text": "?", "new_text": ""}, "ValueError: "),
        ("shell:run", {"command": "\0"}, "ValueError: "),
    ],
)
def test_an_error_of_the_call_itself_has_no_traceback(
    tmp_path: Path, name: str, arguments: dict[str, JsonValue], message: str
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "x").write_text("text\n")
    tools = workspace_tools(tmp_path, allow_writes=True, allow_commands=True)
    error = error_of(tools[name], **arguments)
    assert message in error.message
    assert isinstance(error.details, dict)
    assert set(error.details) == {"exception"}


@pytest.mark.parametrize("fault", [InvalidRecordError("no"), ValueError("no")])
def test_a_fault_of_a_tool_keeps_its_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    def fail(*_: object) -> None:
        raise fault

    (tmp_path / "x").write_text("text\n")
    monkeypatch.setattr(reading, "spelled", fail)
    error = error_of(workspace_tools(tmp_path)["fs:read"], path="x")
    assert error.message.endswith("no")
    assert isinstance(error.details, dict)
    assert "traceback" in error.details
