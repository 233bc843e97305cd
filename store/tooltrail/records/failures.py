"""The errors that every runtime has: an exception, a refusal, a timeout, a call that cannot be run.

Each function words one of them for the model: what happened in one sentence, what could be done
next, and whether the same call may succeed later. What they repeat of others is whole, but for the
names of tools: it is the projection that bounds an error, and says what it left out.
"""

import difflib
import errno
from collections.abc import Iterable
from typing import cast

from pydantic import JsonValue

from tooltrail.records._argument_problems import SchemaProblem, refusal_details
from tooltrail.records._error_text import full_text, one_line, type_name
from tooltrail.records._exception_details import (
    control_flow_in,
    describe,
    is_cancellation,
    text_of,
    worded,
)
from tooltrail.records._model import TOOL_NAME_CHARS
from tooltrail.records.command_documents import seconds
from tooltrail.records.errors import UnavailableError
from tooltrail.records.tool_errors import ErrorKind, ToolError, exact_bytes

_SIMILAR = 3
"""Names that are proposed for an unknown one."""

_PASSING = (TimeoutError, ConnectionError, BlockingIOError, InterruptedError, UnavailableError)
"""What may be over when the same call is made again."""

_DISK_IS_FULL = (errno.ENOSPC, errno.EDQUOT)


def error_of_exception(error: BaseException) -> ToolError:
    """The error of an exception that a tool handler raised; given for whatever exception it is.

    Only what its type says beyond doubt has a kind of its own: a full disk is `low_disk_space`, a
    cancellation of asyncio `cancelled`, any other exception that is no `Exception` `interrupted`.
    Everything else is `tool_execution_failed`. That goes for `PermissionError`, which is a fault of
    the tool's environment, where `permission_denied` is the answer of somebody who was asked; for
    `TimeoutError`, which some part of the tool ran into, where the timeout of the call is
    `error_of_timeout`; and for `SystemExit`, since a tool cannot end the program.

    Its message has the whole text of the exception, which may be of many lines. Its details are
    `exception`, its type; `notes`, `causes`, `members` of a group, each with notes and frames of
    its own; `traceback`, without lines of source or local values; `reason`, of a cancellation or an
    interruption, and `raised`, the text of a group that holds one. `docs/contract.md` shows them.
    """
    control = control_flow_in(error)
    if control is not None:
        return _ended(control, error)
    message = worded(error)
    if isinstance(error, SystemExit):
        message = f"the tool tried to end the program ({message})"
    full = isinstance(error, OSError) and error.errno in _DISK_IS_FULL
    retryable = full or isinstance(error, _PASSING)
    return ToolError(
        kind=ErrorKind.LOW_DISK_SPACE if full else ErrorKind.TOOL_EXECUTION_FAILED,
        message=message,
        details=describe(error),
        recovery_hint=_hint(full=full, retryable=retryable),
        retryable=retryable,
        exact_message=exact_bytes(f"{type_name(error)}: {text_of(error)}"),
    )


def error_of_timeout(timeout_ms: int, cause: BaseException | None = None) -> ToolError:
    """The error of a call whose time was over.

    Args:
        timeout_ms: the time that it had.
        cause: what the tool raised when it was stopped, if that says more.
    """
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
    """The error of a call that somebody refused before it ran.

    Args:
        refused_by: who: `user`, or the name of a policy or a hook.
        reason: why, in one sentence.
    """
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

    Args:
        tool_name: the name that the model used.
        known: the names of the tools that the model may call. The details list all of them, and
            the hint proposes similar ones.
    """
    name = one_line(tool_name, TOOL_NAME_CHARS)
    names = sorted(known)
    similar = _similar(name, names)
    listed: list[JsonValue] = [one_line(one, TOOL_NAME_CHARS) for one in names]
    details: dict[str, JsonValue] = {"tool_name": name, "known": listed}
    hint = "call one of the tools that are offered"
    if similar:
        details["similar"] = [*similar]
        hint = f"did you mean {' or '.join(similar)}?"
    return ToolError(
        kind=ErrorKind.UNKNOWN_TOOL,
        message=f"there is no tool {name}",
        details=details,
        recovery_hint=hint,
    )


def error_of_unexposed_tool(tool_name: str) -> ToolError:
    """The error of a call of a tool that exists, but that was not offered to this model."""
    name = one_line(tool_name, TOOL_NAME_CHARS)
    return ToolError(
        kind=ErrorKind.TOOL_NOT_EXPOSED,
        message=f"the tool {name} is not offered here",
        details={"tool_name": name},
        recovery_hint="call one of the tools that are offered",
    )


def error_of_invalid_arguments(
    tool_name: str, refusal: Exception | Iterable[SchemaProblem] | str
) -> ToolError:
    """The error of a call whose arguments the tool does not take.

    It names the fields and says what is wanted there, and does not repeat the value, which may be
    a secret or huge. The words of a tool's own validator are repeated only if the refused value is
    one text or number, and no part of that value stands in the words.

    Args:
        tool_name: the name that the model used.
        refusal: what refused the arguments: pydantic's `ValidationError`, errors of a JSON Schema
            validator, the exception of a JSON parser, or a sentence. Of any other exception only
            the type is recorded.
    """
    name = one_line(tool_name, TOOL_NAME_CHARS)
    return ToolError(
        kind=ErrorKind.INVALID_TOOL_INPUT,
        message=f"input for {name} does not match the tool schema",
        details={"tool_name": name, **refusal_details(refusal)},
        recovery_hint=f"provide input for {name} that matches the published tool schema",
    )


def error_of_truncated_call(tool_name: str, arguments_raw: str) -> ToolError:
    """The error of a call in whose middle the model's output ended; it must not run.

    Args:
        tool_name: the name that the model used.
        arguments_raw: what there is of the arguments; they are counted, not repeated.
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
    """The error of a call that was stopped by whoever started it."""
    return ToolError(
        kind=ErrorKind.CANCELLED,
        message="the call was cancelled before it was done",
        details=_reason_details(reason) or None,
        recovery_hint="make the call again only when it is still wanted",
    )


def _ended(control: BaseException, error: BaseException) -> ToolError:
    """The error of what ended the call, and of everything that was raised together with it."""
    if is_cancellation(control):
        ended = error_of_cancellation(text_of(control))
    else:
        ended = error_of_interruption(worded(control))
    reason = cast("dict[str, JsonValue]", ended.details or {})
    return ended.model_copy(update={"details": reason | describe(error)})


def _hint(*, full: bool, retryable: bool) -> str:
    if full:
        return "make room on the disk, then make the call again"
    if retryable:
        return "make the same call again later, or choose another way"
    return "change the call, or choose another way"


def _similar(name: str, known: Iterable[str]) -> list[str]:
    """Nearest names first; upper and lower case count as the same."""
    by_folded = {one.casefold(): one for one in sorted(known, reverse=True)}
    nearest = difflib.get_close_matches(name.casefold(), by_folded, n=_SIMILAR)
    return [one_line(by_folded[folded], TOOL_NAME_CHARS) for folded in nearest]


def _reason_details(reason: str | None) -> dict[str, JsonValue]:
    text = full_text(reason or "")
    return {"reason": text} if text else {}
