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
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias, TypeVar, cast

from pydantic import JsonValue

from tooltrail.records._argument_problems import SchemaProblem
from tooltrail.records._error_text import type_name
from tooltrail.records._exception_details import control_flow_in, worded
from tooltrail.records.canonical_json import read_json
from tooltrail.records.envelope import CompleteOutput, FamilyOutput
from tooltrail.records.errors import InvalidRecordError
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

_NOT_CARRIED = (
    "JSON in which a key stands twice, a number is beyond a double or not a number, "
    "or that is nested too deep"
)


class _CallRefusedError(Exception):
    """The call does not run, or was stopped; `tool_error` is the error to record."""

    def __init__(self, tool_error: ToolError) -> None:
        super().__init__(tool_error.message)
        self.tool_error = tool_error


def invoke(
    handler: Handlers,
    call: ToolCall,
    record: Callable[[CompleteOutput], RecordedT],
    *,
    parse: Callable[[JsonValue], Any] | None = None,
) -> RecordedT:
    """Parse the arguments of a call, run its handler, and record the output.

    The handler may return a `CompleteOutput` of this tool, a result of its family, a `ToolError`,
    text, bytes, a JSON value or nothing. Any other value is a failure, and so is every exception.
    An awaitable is a failure too; a coroutine is closed.

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

    Returns:
        The return value of `record`.

    Raises:
        TypeError: the handler is a coroutine function, which needs `ainvoke`. The handler did not
            run, and nothing is recorded.
    """
    table = _table_in(handler)
    one = handler if table is None else _found_in(table, call)
    if inspect.iscoroutinefunction(one) or inspect.iscoroutinefunction(type(one).__call__):
        raise TypeError(f"{one!r} is to be awaited: call it with ainvoke")
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

    Args:
        handler: see `invoke`; the handlers of a table may be of both kinds.
        call: see `invoke`.
        record: see `invoke`; called in the thread of the event loop.
        parse: see `invoke`.
        timeout_ms: time limit for an awaited handler, from 1 to `MAX_TIMEOUT_MS`; None for no
            limit. If the handler still returns a value when it is stopped, that value counts.

    Returns:
        The return value of `record`.

    Raises:
        ValueError: `timeout_ms` is out of range; the handler did not run, and nothing is recorded.
    """
    if timeout_ms is not None and not 1 <= timeout_ms <= MAX_TIMEOUT_MS:
        raise ValueError(f"timeout_ms must be from 1 to {MAX_TIMEOUT_MS}, or None for no end")
    try:
        value = _run(handler, call, parse)
        if inspect.isawaitable(value):
            value = await _awaited(value, timeout_ms)
        output = _output_of(value, call)
    except BaseException as error:  # noqa: BLE001  what must not be swallowed is raised again
        output = _failure_of(error, call, record)
    return record(output)


def _run(handler: Handlers, call: ToolCall, parse: Callable[[JsonValue], Any] | None) -> object:
    _refuse_unrunnable(call)
    run = _handler_in(handler, call)
    return run(_parsed(call, parse))


async def _awaited(started: Awaitable[object], timeout_ms: int | None) -> object:
    try:
        return await (started if timeout_ms is None else _awaited_in_time(started, timeout_ms))
    finally:
        _close_if_coroutine(started)  # outside a task the timeout fails, and it was never started


async def _awaited_in_time(started: Awaitable[object], timeout_ms: int) -> object:
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
        cause = None if type(error) is TimeoutError else error
        raise _CallRefusedError(error_of_timeout(timeout_ms, cause)) from error


def _failure_of(
    error: BaseException, call: ToolCall, record: Callable[[CompleteOutput], object]
) -> CompleteOutput:
    """The output of a call that raised. An exception that must propagate is recorded and raised."""
    if isinstance(error, _CallRefusedError):
        return CompleteOutput.failure(call.tool_name, error.tool_error)
    output = CompleteOutput.failure(call.tool_name, error_of_exception(error))
    if control_flow_in(error) is None:
        return output
    try:
        record(output)
    except Exception as failure:  # noqa: BLE001  a cancellation must not become another exception
        with suppress(Exception):  # an exception that is a frozen dataclass cannot have notes
            error.add_note(f"not recorded: {worded(failure)}")
    raise error


def _refuse_unrunnable(call: ToolCall) -> None:
    """Refuse a call that the model did not finish, or that its provider runs."""
    if "incomplete" in call.flags:
        # The received part may be valid JSON by chance, but not what the model was going to ask.
        raise _CallRefusedError(error_of_truncated_call(call.tool_name, call.arguments_raw))
    if call.by_provider:
        reason = "the provider runs this tool itself"
        raise _CallRefusedError(error_of_refusal(refused_by="invoke", reason=reason))


def _table_in(handler: object) -> Mapping[str, Callable[[Any], object]] | None:
    if isinstance(handler, Mapping):
        return cast("Mapping[str, Callable[[Any], object]]", handler)
    return None


def _handler_in(handler: Handlers, call: ToolCall) -> Callable[[Any], object]:
    """The handler of a call. A table may name a tool with its server (`disk___read`) or without."""
    table = _table_in(handler)
    if table is None:
        return cast("Callable[[Any], object]", handler)
    found = _found_in(table, call)
    if found is None:
        raise _CallRefusedError(error_of_unknown_tool(call.full_name, table))
    return found


def _found_in(
    table: Mapping[str, Callable[[Any], object]], call: ToolCall
) -> Callable[[Any], object] | None:
    # Unlike indexing, `get` does not add missing keys to a `defaultdict`.
    return table.get(call.full_name) or table.get(call.tool_name)


def _parsed(call: ToolCall, parse: Callable[[JsonValue], Any] | None) -> object:
    refused = partial(error_of_invalid_arguments, call.tool_name)
    arguments = _arguments(call, refused)
    if parse is None:
        if not isinstance(arguments, dict) and call.kind != "custom":
            raise _CallRefusedError(refused("the arguments must be a JSON object"))
        return arguments
    try:
        return parse(arguments)
    except Exception as error:
        if isinstance(error, ValueError | TypeError | LookupError | SchemaProblem):
            raise _CallRefusedError(refused(error)) from error
        raise


def _arguments(call: ToolCall, refused: Callable[[Exception | str], ToolError]) -> JsonValue:
    if call.kind == "custom":
        return call.arguments_raw
    try:
        # The model's text is not our canonical JSON: a mark in it is not converted.
        return read_json(call.arguments_raw if call.arguments_raw.strip() else "{}")
    except InvalidRecordError as error:
        syntax = isinstance(error.__cause__, json.JSONDecodeError)
        raise _CallRefusedError(refused(error if syntax else _NOT_CARRIED)) from error


def _output_of(value: object, call: ToolCall) -> CompleteOutput:
    """The complete output of a tool whose handler returned `value`.

    The value may be a complete output of this tool, a result of a family, a `ToolError`, text,
    bytes, a JSON value or nothing. Any other value is a failure, because it could not be recorded
    faithfully. A coroutine is closed.
    """
    if isinstance(value, CompleteOutput) and value.tool_name in {call.full_name, call.tool_name}:
        return value
    try:
        result = _result_of(value)
    except InvalidRecordError as error:
        result = _unrecordable(value, str(error))
    if isinstance(result, ToolError):
        return CompleteOutput.failure(call.tool_name, result)
    return CompleteOutput.success(call.tool_name, result)


def _close_if_coroutine(value: object) -> None:
    """Close a coroutine that must not run; exceptions that it raises then are ignored."""
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
            return GenericOutput.of(structured=cast("JsonValue", value))
        case CompleteOutput():
            reason = "the output of another tool"
        case _ if inspect.isawaitable(value):
            _close_if_coroutine(value)
            reason = "it is a coroutine; call the tool with ainvoke"
        case _:
            reason = f"it is of type {type_name(value)}"
    return _unrecordable(value, reason)


def _unrecordable(value: object, reason: str) -> ToolError:
    return ToolError(
        kind=ErrorKind.TOOL_EXECUTION_FAILED,
        message=f"the tool returned a value that cannot be recorded: {reason}",
        details={"returned": type_name(value)},
        recovery_hint="choose another way; the tool itself must be mended",
    )
