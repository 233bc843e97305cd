"""Complete outputs as the tests write them, in one word."""

from pydantic import JsonValue

from tooltrail.records import CompleteOutput, GenericOutput


def returned(
    tool_name: str, *content: str | bytes, structured: JsonValue = None, summary: str | None = None
) -> CompleteOutput:
    """The output of a tool without a family of its own."""
    result = GenericOutput.of(*content, structured=structured)
    return CompleteOutput.success(tool_name, result, summary)
