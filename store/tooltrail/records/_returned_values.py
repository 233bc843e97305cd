"""What a tool handler returned, as the complete output of its tool."""

import inspect
from collections.abc import Coroutine
from contextlib import suppress
from typing import cast

from pydantic import JsonValue

from tooltrail.records._error_text import type_name
from tooltrail.records.envelope import CompleteOutput, FamilyOutput
from tooltrail.records.errors import InvalidRecordError
from tooltrail.records.families import GenericOutput
from tooltrail.records.tool_errors import ErrorKind, ToolError


def output_of(value: object, tool_name: str) -> CompleteOutput:
    """The complete output of a tool whose handler returned `value`.

    A complete output of this tool, a result of a family, a `ToolError`, text, bytes, a JSON value
    or nothing. Any other value is a failure: what it is would not be in the record. A coroutine
    that nobody awaits is closed.
    """
    if isinstance(value, CompleteOutput) and value.tool_name == tool_name:
        return value
    result: FamilyOutput | ToolError
    if inspect.isawaitable(value):
        close_if_coroutine(value)
        result = _unrecordable(value, "it is to be awaited, and nobody awaits it")
    else:
        result = _result_of(value)
    if isinstance(result, ToolError):
        return CompleteOutput.failure(tool_name, result)
    return CompleteOutput.success(tool_name, result)


def close_if_coroutine(value: object) -> None:
    """Close a coroutine that is not to run; its own exceptions on the way are left behind."""
    if isinstance(value, Coroutine):
        with suppress(Exception):
            cast("Coroutine[object, object, object]", value).close()


def _result_of(value: object) -> FamilyOutput | ToolError:
    match value:
        case FamilyOutput() | ToolError():
            return value
        case None:
            return GenericOutput.of()
        case str() | bytes():
            return GenericOutput.of(value)
        case bool() | int() | float() | list() | dict():
            return _structured(cast("JsonValue", value))
        case CompleteOutput():
            return _unrecordable(value, "the output of another tool")
        case _:
            return _unrecordable(value, f"it is of type {type_name(value)}")


def _structured(value: JsonValue) -> FamilyOutput | ToolError:
    try:
        return GenericOutput.of(structured=value)
    except InvalidRecordError as error:
        return _unrecordable(value, str(error))


def _unrecordable(value: object, reason: str) -> ToolError:
    return ToolError(
        kind=ErrorKind.TOOL_EXECUTION_FAILED,
        message=f"the tool returned a value that cannot be recorded: {reason}",
        details={"returned": type_name(value)},
        recovery_hint="choose another way; the tool itself must be mended",
    )
