"""A tool checks what it is called with by its own schema."""

import subprocess
import sys
from typing import Any

import pytest
from jsonschema import ValidationError
from tests.support.agents.calling import error_of, output_of

from tooltrail.agents import AgentTool
from tooltrail.records import ErrorKind, ToolDefinition


def echo(arguments: dict[str, Any]) -> object:
    return arguments


async def echo_later(arguments: dict[str, Any]) -> object:
    return arguments


class EchoingLater:
    async def __call__(self, arguments: dict[str, Any]) -> object:
        return arguments


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 1}, "deep": {"$ref": "#/$defs/text"}},
    "required": ["n"],
    "$defs": {"text": {"type": "string"}},
    "additionalProperties": False,
}
TOOL = AgentTool(
    ToolDefinition(name="echo", parameters=SCHEMA), handler=echo, has_side_effects=False
)


def test_arguments_that_fit_are_given_to_the_handler() -> None:
    assert TOOL.parse({"n": 1, "deep": "x"}) == {"n": 1, "deep": "x"}
    assert output_of(TOOL, {"n": 2}).error is None


def test_arguments_that_do_not_fit_are_told_by_their_place_and_not_by_their_value() -> None:
    error = error_of(TOOL, n="secret")
    assert error.kind == ErrorKind.INVALID_TOOL_INPUT
    assert error.details == {
        "tool_name": "echo",
        "problems": [{"path": "n", "message": 'does not satisfy type: "integer"'}],
    }


def test_of_several_errors_that_of_the_largest_part_is_told() -> None:
    with pytest.raises(ValidationError, match="'n' is a required property"):
        TOOL.parse({"deep": 5})


def test_arguments_that_are_no_object_are_refused_whatever_the_schema_says() -> None:
    anything = AgentTool(ToolDefinition(name="any", parameters={}), echo, has_side_effects=False)
    with pytest.raises(TypeError, match="must be a JSON object"):
        anything.parse([1])
    assert anything.parse({"x": None}) == {"x": None}


def test_a_tool_without_parameters_takes_none() -> None:
    plain = AgentTool(ToolDefinition(name="plain"), echo, has_side_effects=False)
    assert plain.parse({}) == {}
    with pytest.raises(ValidationError):
        plain.parse({"x": 1})


def test_a_schema_elsewhere_is_never_fetched() -> None:
    schema: dict[str, Any] = {"$ref": "http://127.0.0.1:1/schema.json"}
    tool = AgentTool(ToolDefinition(name="far", parameters=schema), echo, has_side_effects=False)
    with pytest.raises(Exception, match="Unresolvable"):
        tool.parse({})


@pytest.mark.parametrize(
    ("handler", "expected"), [(echo, False), (echo_later, True), (EchoingLater(), True)]
)
def test_a_handler_that_is_to_be_awaited_is_told_from_one_that_is_not(
    handler: Any, expected: bool
) -> None:
    definition = ToolDefinition(name="x")
    assert AgentTool(definition, handler, has_side_effects=False).is_awaited is expected


def test_without_jsonschema_the_error_names_the_extra() -> None:
    code = (
        "import sys; sys.modules['jsonschema'] = None\n"
        "from tooltrail.agents import AgentTool\n"
        "from tooltrail.records import ToolDefinition\n"
        "AgentTool(ToolDefinition(name='x'), print, False).parse({})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].endswith("pip install 'tooltrail[agents]'")
