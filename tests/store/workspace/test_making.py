"""Which tools a folder has."""

from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tooltrail.records import InvalidRecordError, NotFoundError
from tooltrail.workspace import workspace_tools

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
