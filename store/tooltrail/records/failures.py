"""The errors that every runtime has: an exception, a refusal, a timeout, a call that cannot be run.

Each function words one error for the model: what happened in one sentence, what could be done next,
and whether the same call may succeed later. Quoted texts are complete, except the names of tools:
the projection bounds an error later, and records what it left out.
"""

import difflib
import errno
import sys
from collections.abc import Iterable
from typing import cast

from pydantic import JsonValue

from tooltrail.records._argument_problems import refusal_details
from tooltrail.records._error_text import full_text, one_line, type_name
from tooltrail.records._exception_details import (
    control_flow_in,
    describe,
    text_of,
    worded,
)
from tooltrail.records.command_documents import seconds
from tooltrail.records.errors import UnavailableError
from tooltrail.records.plain_text import TOOL_NAME_CHARS
from tooltrail.records.tool_errors import ErrorKind, ToolError, exact_bytes

_PASSING = (TimeoutError, ConnectionError, BlockingIOError, InterruptedError, UnavailableError)
"""Exceptions whose cause may have passed when the same call is made again."""


def error_of_exception(error: BaseException) -> ToolError:
    """The error for an exception that a tool handler raised, whatever its type.

    Only an unambiguous type has its own kind: a full disk is `low_disk_space`, a cancellation by
    asyncio is `cancelled`, any other exception outside `Exception` is `interrupted`. All others are
    `tool_execution_failed`. These include `PermissionError`, a fault in the tool's environment
    (`permission_denied` means that a person or policy refused the call); `TimeoutError`, raised by
    some part of the tool (for the timeout of the call itself, see `error_of_timeout`); and
    `SystemExit`, since a tool cannot end the program.

    The message has the complete text of the exception. `docs/contract.md` describes the details.
    """
    control = control_flow_in(error)
    if control is not None:
        return _ended(control, error)
    message = worded(error)
    if isinstance(error, SystemExit):
        message = f"the tool tried to end the program ({message})"
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    retryable = full or isinstance(error, _PASSING)
    hint = "change the call, or choose another way"
    if retryable:
        hint = "make the same call again later, or choose another way"
    if full:
        hint = "make room on the disk, then make the call again"
    return ToolError(
        kind=ErrorKind.LOW_DISK_SPACE if full else ErrorKind.TOOL_EXECUTION_FAILED,
        message=message,
        details=describe(error),
        recovery_hint=hint,
        retryable=retryable,
        exact_message=exact_bytes(f"{type_name(error)}: {text_of(error)}"),
    )


def error_of_timeout(timeout_ms: int, cause: BaseException | None = None) -> ToolError:
    """The error of a call that reached its time limit, and what the tool raised when stopped."""
    details: dict[str, JsonValue] = {"timeout_ms": timeout_ms}
    if cause is not None:
        details |= {"raised": worded(cause), **describe(cause)}
    return ToolError(
        kind=ErrorKind.TOOL_TIMED_OUT,
        message=f"the tool timed out after {seconds(timeout_ms)}",
        details=details,
        recovery_hint="do less in one call, or give it more time; what it did so far may remain",
        retryable=True,
    )


def error_of_refusal(*, refused_by: str, reason: str | None = None) -> ToolError:
    """The error of a call that was refused before it ran, by `user` or the named policy or hook."""
    by, why = full_text(refused_by), _reason_details(reason)
    sentence = f"the call was refused by {by}" + (f": {why['reason']}" if why else "")
    return ToolError(
        kind=ErrorKind.PERMISSION_DENIED,
        message=" ".join(sentence.split()),
        details={"refused_by": by, **why},
        recovery_hint="do not make the same call again; ask, or choose another way",
    )


def error_of_unknown_tool(tool_name: str, known: Iterable[str]) -> ToolError:
    """The error of a call of a tool that does not exist.

    The details list the names of all `known` tools, which the model may call, and the hint proposes
    similar ones.
    """
    name, names = one_line(tool_name, TOOL_NAME_CHARS), sorted(known)
    by_folded = {one.casefold(): one for one in reversed(names)}
    similar = [by_folded[near] for near in difflib.get_close_matches(name.casefold(), by_folded)]
    hint = f"did you mean {' or '.join(similar)}?"
    return ToolError(
        kind=ErrorKind.UNKNOWN_TOOL,
        message=f"there is no tool {name}",
        details={"tool_name": name, "known": [*names]},
        recovery_hint=hint if similar else "call one of the tools that are offered",
    )


def error_of_unexposed_tool(tool_name: str) -> ToolError:
    """The error of a call of a tool that exists but was not offered to this model."""
    name = one_line(tool_name, TOOL_NAME_CHARS)
    return ToolError(
        kind=ErrorKind.TOOL_NOT_EXPOSED,
        message=f"the tool {name} is not offered here",
        details={"tool_name": name},
        recovery_hint="call one of the tools that are offered",
    )


def error_of_invalid_arguments(tool_name: str, refusal: Exception | str) -> ToolError:
    """The error of a call whose arguments the tool does not accept.

    The error names the fields and what they must contain. It never repeats the value, which may be
    a secret or huge. The message of a tool's own validator is repeated only if the refused value is
    a single text or number, and no part of that value occurs in the message.

    Args:
        tool_name: the name that the model used.
        refusal: the `ValidationError` of pydantic or of a JSON Schema validator, the exception of a
            JSON parser, or a sentence. Of any other exception only the type is recorded.
    """
    name = one_line(tool_name, TOOL_NAME_CHARS)
    return ToolError(
        kind=ErrorKind.INVALID_TOOL_INPUT,
        message=f"input for {name} does not match the tool schema",
        details={"tool_name": name, **refusal_details(refusal)},
        recovery_hint=f"provide input for {name} that matches the published tool schema",
    )


def error_of_truncated_call(tool_name: str, arguments_raw: str) -> ToolError:
    """The error of a call that was cut off with the model's output; it must not run.

    The received part of the arguments is counted, not repeated.
    """
    name = one_line(tool_name, TOOL_NAME_CHARS)
    return ToolError(
        kind=ErrorKind.TRUNCATED_TOOL_CALL,
        message=f"the call of {name} was cut off before its arguments ended",
        details={"tool_name": name, "received_char_count": len(arguments_raw)},
        recovery_hint="make a shorter call, or spread the work over several calls",
    )


def error_of_interruption(reason: str | None = None) -> ToolError:
    """The error of a call whose program ended or was stopped while it ran."""
    return ToolError(
        kind=ErrorKind.INTERRUPTED,
        message="the call was interrupted before it was done",
        details=_reason_details(reason) or None,
        recovery_hint="look at what it did before you make the call again",
        retryable=True,
    )


def error_of_cancellation(reason: str | None = None) -> ToolError:
    """The error of a call that its caller stopped."""
    return ToolError(
        kind=ErrorKind.CANCELLED,
        message="the call was cancelled before it was done",
        details=_reason_details(reason) or None,
        recovery_hint="make the call again only when it is still wanted",
    )


def _ended(control: BaseException, error: BaseException) -> ToolError:
    """The error for the exception that ended the call, and everything raised together with it."""
    # Not imported: it brings in sockets and processes, which records do without.
    asyncio = sys.modules.get("asyncio")
    if asyncio is not None and isinstance(control, asyncio.CancelledError):
        ended = error_of_cancellation(text_of(control))
    else:
        ended = error_of_interruption(worded(control))
    group = {} if control is error else {"raised": worded(error)}
    reason = cast("dict[str, JsonValue]", ended.details or {})
    return ended.model_copy(update={"details": {**reason, **group, **describe(error)}})


def _reason_details(reason: str | None) -> dict[str, JsonValue]:
    text = full_text(reason or "")
    return {"reason": text} if text else {}
