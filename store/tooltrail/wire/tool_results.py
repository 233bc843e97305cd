"""One tool result in a provider's JSON, as a block and as the complete output of its tool.

    output = complete_output_of("anthropic", "Read", {"type": "tool_result", "content": …})

For importers, which have a result without a conversation around it.
"""

from collections.abc import Callable

from tooltrail.records import (
    CompleteOutput,
    InvalidRecordError,
    ResultBlock,
    ResultStatus,
    complete_output_of_result,
)
from tooltrail.wire.formats import wire_format
from tooltrail.wire.members import JsonObject


def complete_output_of(
    format_name: str, tool_name: str, native: JsonObject, *, is_error: bool | None = None
) -> CompleteOutput:
    """Make the complete output of a tool from its result in a provider's JSON.

    Args:
        format_name: the name of the wire format.
        tool_name: the name that the model used.
        native: see `read_tool_result`.
        is_error: whether the tool failed, for a format that has no error flag (`openai`,
            `openai-responses`, `ollama`, `cohere`). None: read from the result; without a flag, a
            text that begins with `ERROR: ` is a failure.

    Raises:
        NotFoundError: no such format.
        InvalidRecordError: `native` is not one result of this format.
    """
    result = read_tool_result(format_name, native)
    if is_error is not None and is_error != result.is_error:
        status: ResultStatus = "error" if is_error else "ok"
        result = result.model_copy(update={"status": status})
    return complete_output_of_result(tool_name, result)


def read_tool_result(format_name: str, native: JsonObject) -> ResultBlock:
    """Read one tool result in a provider's JSON.

    Args:
        format_name: the name of the wire format.
        native: the smallest object that the format has for a result. `openai`, `ollama`, `cohere`:
            a message of role `tool`. `openai-responses`: an item such as `function_call_output`.
            `anthropic`: a `tool_result` block. `bedrock`: a block with a `toolResult`. `gemini`: a
            part with a `functionResponse`. `mcp`: a `CallToolResult`, or the response of JSON-RPC
            around it. `text-fallback`: a message.

    Raises:
        NotFoundError: no such format.
        InvalidRecordError: `native` is not one result of this format.
    """
    known = wire_format(format_name)
    if format_name == "mcp":
        from tooltrail.wire.mcp.results import read_result  # noqa: PLC0415  for this format alone

        return read_result(native)
    request: JsonObject = {"messages": [native]}
    if format_name in _REQUESTS:
        request = _REQUESTS[format_name](native)
    results = [
        result for message in known.read_history(request).messages for result in message.results
    ]
    if len(results) != 1:
        raise InvalidRecordError(f"expected one tool result of {format_name}, found {len(results)}")
    return results[0]


_REQUESTS: dict[str, Callable[[JsonObject], JsonObject]] = {
    "openai-responses": lambda native: {"input": [native]},
    "anthropic": lambda native: {"messages": [{"role": "user", "content": [native]}]},
    "bedrock": lambda native: {"messages": [{"role": "user", "content": [native]}]},
    "gemini": lambda native: {"contents": [{"role": "user", "parts": [native]}]},
}
"""The smallest request around a result, for formats where a result is not a message."""
