"""Runs tool handlers safely: whatever a handler does, exactly one complete output is recorded.

    invoke(handler, call, record)              a handler that is an ordinary function
    await ainvoke(handler, call, record)       an ordinary handler, or one that is awaited
    invoke(handlers, call, record)             a table of handlers, by the name of their tool

`record` is called exactly once, with a success or a failure, before control returns to the caller.
Exceptions that must not be swallowed are raised again after that: `CancelledError`,
`KeyboardInterrupt`, `GeneratorExit`, and all others outside `Exception`. The only exception is
`SystemExit`, which becomes a failure, since a tool must not be able to end the agent.
"""

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from types import NoneType
from typing import Any, TypeAlias, TypeVar, cast

from pydantic import JsonValue

from tooltrail.records._argument_problems import SchemaProblem
from tooltrail.records._error_text import type_name
from tooltrail.records._exception_details import control_flow_in, worded
from tooltrail.records.envelope import CompleteOutput, FamilyOutput
from tooltrail.records.errors import InvalidRecordError, check_type
from tooltrail.records.failures import (
    error_of_exception,
    error_of_invalid_arguments,
    error_of_refusal,
    error_of_timeout,
    error_of_truncated_call,
    error_of_unknown_tool,
)
from tooltrail.records.families.generic import GenericOutput
from tooltrail.records.tool_calls import ToolCall
from tooltrail.records.tool_errors import ErrorKind, ToolError

RecordedT = TypeVar("RecordedT")

Handlers: TypeAlias = Callable[[Any], object] | Mapping[str, Callable[[Any], object]]
"""One handler, or a table of handlers by the name of their tool."""

MAX_TIMEOUT_MS = 366 * 24 * 3600 * 1000
"""A year. A longer time is probably a mistake, and event loops do not support every integer."""


def invoke(
    handler: Handlers,
    call: ToolCall,
    record: Callable[[CompleteOutput], RecordedT],
    *,
    parse: Callable[[JsonValue], Any] | None = None,
) -> RecordedT:
    """Parse the arguments of a call, run its handler, and return what `record` makes of the output.

    The handler may return a `CompleteOutput` of this tool, a result of a family, a `ToolError`,
    text, bytes, a JSON value or nothing. Any other value is a failure, and so is every exception.
    An awaitable is a failure too: it needs `ainvoke`.

    Args:
        handler: accepts the parsed arguments. A mapping is a table of handlers: the call runs the
            handler under its `tool_name`. A name that is not in the table is recorded as a failure
            of kind `unknown_tool`, which lists the names in the table.
        call: the arguments are read as JSON, blank ones as `{}`; those of a custom tool are text.
            A call that the model did not finish, or that the provider runs itself, does not run.
        record: called exactly once, for example `Invocation.finish`. Its exceptions reach the
            caller. If another exception must be raised again, the exception of `record` becomes
            a note of that one.
        parse: makes the handler's argument from the JSON value, for example
            `Arguments.model_validate`. If it raises `ValueError`, `TypeError`, `LookupError` or a
            JSON Schema error, the arguments are invalid. Without it they must be an object.

    Raises:
        InvalidRecordError: `call` is not a `ToolCall`. Nothing is recorded.
    """
    check_type("call", call, ToolCall)
    try:
        output = _output_of(_run(handler, call, parse), call)
    except BaseException as error:  # noqa: BLE001  what must not be swallowed is raised again
        output = _failure_of(error, call, record)
    return record(output)


async def ainvoke(
    handler: Handlers,
    call: ToolCall,
    record: Callable[[CompleteOutput], RecordedT],
    *,
    parse: Callable[[JsonValue], Any] | None = None,
    timeout_ms: int | None = None,
) -> RecordedT:
    """Like `invoke`, but also for handlers that are awaited.

    An ordinary handler runs directly in the thread of the event loop, and no timeout stops it.
    If the task is cancelled, a failure of kind `cancelled` is recorded, and then the cancellation
    is raised again. asyncio also turns Ctrl-C into such a cancellation.

    The handlers of a table may be of both kinds. `record` is called in the thread of the event
    loop. `timeout_ms` is the time limit of an awaited handler; if the handler still returns a value
    when it is stopped, that value counts.

    Raises:
        ValueError: `timeout_ms` is no integer from 1 to a year, or `call` is not a `ToolCall`.
            Nothing is recorded.
    """
    check_type("call", call, ToolCall)
    check_type("timeout_ms", timeout_ms, int, NoneType)
    if timeout_ms is not None and not 1 <= timeout_ms <= MAX_TIMEOUT_MS:
        raise ValueError(f"timeout_ms must be from 1 to {MAX_TIMEOUT_MS:,}")
    try:
        value = _run(handler, call, parse)
        if inspect.isawaitable(value):
            value = await (value if timeout_ms is None else _in_time(value, timeout_ms))
        output = _output_of(value, call)
    except BaseException as error:  # noqa: BLE001  what must not be swallowed is raised again
        output = _failure_of(error, call, record)
    return record(output)


def _run(handler: Handlers, call: ToolCall, parse: Callable[[JsonValue], Any] | None) -> object:
    """What the handler returns, or why the call does not run."""
    if "incomplete" in call.flags:
        # The received part may be valid JSON by chance, but not what the model was going to ask.
        return error_of_truncated_call(call.tool_name, call.arguments_raw)
    if call.by_provider:
        reason = "the provider runs this tool itself"
        return error_of_refusal(refused_by="invoke", reason=reason)
    if isinstance(handler, Mapping):
        table: Mapping[str, Callable[[Any], object]] = cast("Any", handler)
        # Unlike indexing, `get` does not add missing keys to a `defaultdict`.
        found = table.get(call.full_name) or table.get(call.tool_name)
        if found is None:
            return error_of_unknown_tool(call.full_name, table)
        handler = found
    arguments = _parsed(call, parse)
    return arguments if isinstance(arguments, ToolError) else handler(arguments)


def _parsed(call: ToolCall, parse: Callable[[JsonValue], Any] | None) -> object:
    """The argument of the handler, or why there is none."""
    if call.parse_error is not None:
        return error_of_invalid_arguments(call.tool_name, call.parse_error)
    arguments = call.arguments
    if parse is None:
        if isinstance(arguments, dict) or call.kind == "custom":
            return arguments
        return error_of_invalid_arguments(call.tool_name, "the arguments must be a JSON object")
    try:
        return parse(arguments)
    except Exception as error:
        if isinstance(error, ValueError | TypeError | LookupError | SchemaProblem):
            return error_of_invalid_arguments(call.tool_name, error)
        raise


async def _in_time(started: Awaitable[object], timeout_ms: int) -> object:
    import asyncio  # noqa: PLC0415  it brings in sockets and processes, which records do without

    deadline = asyncio.timeout(timeout_ms / 1000)
    try:
        async with deadline:
            return await started
    except Exception as error:
        # A handler may have a timeout of its own. An outside cancellation at the same moment as
        # our timeout does not get here: asyncio raises it as a cancellation.
        if not deadline.expired():
            raise
        return error_of_timeout(timeout_ms, None if type(error) is TimeoutError else error)


def _failure_of(
    error: BaseException, call: ToolCall, record: Callable[[CompleteOutput], object]
) -> CompleteOutput:
    """The output of a call that raised. An exception that must propagate is recorded and raised."""
    output = CompleteOutput.failure(call.tool_name, error_of_exception(error))
    if control_flow_in(error) is None:
        return output
    try:
        record(output)
    except Exception as failure:  # noqa: BLE001  a cancellation must not become another exception
        with suppress(Exception):  # an exception that is a frozen dataclass cannot have notes
            error.add_note(f"not recorded: {worded(failure)}")
    raise error


def _output_of(value: object, call: ToolCall) -> CompleteOutput:
    """The complete output of a tool whose handler returned `value`."""
    if isinstance(value, CompleteOutput) and value.tool_name in {call.full_name, call.tool_name}:
        return value
    try:
        result = value if isinstance(value, ToolError) else _result_of(value)
    except InvalidRecordError as error:
        result = ToolError(
            kind=ErrorKind.TOOL_EXECUTION_FAILED,
            message=f"the tool returned a value that cannot be recorded: {error}",
            details={"returned": type_name(value)},
            recovery_hint="choose another way; the tool itself must be mended",
        )
    if isinstance(result, ToolError):
        return CompleteOutput.failure(call.tool_name, result)
    return CompleteOutput.success(call.tool_name, result)


def _result_of(value: object) -> FamilyOutput:
    match value:
        case FamilyOutput():
            return value
        case None:
            return GenericOutput.of()
        case str() | bytes():
            return GenericOutput.of(value)
        case bool() | int() | float() | list() | tuple() | dict():
            return GenericOutput.of(structured=cast("JsonValue", value))
        case CompleteOutput():
            raise InvalidRecordError("the output of another tool")
        case Awaitable():
            if isinstance(value, Coroutine):
                value.close()
            raise InvalidRecordError("it is a coroutine; call the tool with ainvoke")
        case _:
            raise InvalidRecordError(f"it is of type {type_name(value)}")
