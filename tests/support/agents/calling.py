"""Calling an agent's tools as a runtime does, without a store."""

import asyncio
from typing import TypeVar

from pydantic import JsonValue

from tooltrail.agents import AgentTool
from tooltrail.records import (
    CompleteOutput,
    FamilyOutput,
    StreamRecord,
    ToolCall,
    ToolError,
    ainvoke,
    canonical_json,
    default_families,
    invoke,
)

_ResultT = TypeVar("_ResultT", bound=FamilyOutput)


def output_of(tool: AgentTool, arguments: dict[str, JsonValue]) -> CompleteOutput:
    """The complete output of a call, successful or not."""
    call = ToolCall(
        tool_name=tool.name, call_id="1", arguments_raw=canonical_json.encode_text(arguments)
    )
    if tool.is_awaited:
        return asyncio.run(ainvoke(tool.handler, call, lambda o: o, parse=tool.parse))
    return invoke(tool.handler, call, lambda output: output, parse=tool.parse)


def result_of(kind: type[_ResultT], tool: AgentTool, **arguments: JsonValue) -> _ResultT:
    """The result of a call that succeeds; its type belongs to the family of the tool."""
    output = output_of(tool, arguments)
    assert isinstance(output.result, kind), output.error
    assert tool.family is not None
    assert kind in default_families().named(tool.family).result_types
    return output.result


def error_of(tool: AgentTool, **arguments: JsonValue) -> ToolError:
    """The error of a call that fails."""
    error = output_of(tool, arguments).error
    assert error is not None
    return error


def text_of(stream: StreamRecord | None) -> str:
    """The text of a short stream."""
    assert stream is not None
    assert stream.content is not None
    return stream.content.decode()
