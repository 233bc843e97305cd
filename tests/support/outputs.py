"""Short ways to write complete outputs in tests."""

from pydantic import JsonValue

from tooltrail.records import CompleteOutput, GenericOutput


def returned(
    tool_name: str, *content: str | bytes, structured: JsonValue = None, summary: str | None = None
) -> CompleteOutput:
    """The output of a tool without its own family."""
    result = GenericOutput.of(*content, structured=structured)
    return CompleteOutput.success(tool_name, result, summary)
