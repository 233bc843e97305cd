"""Tool calls from the logs of agents, as types of `tooltrail.records`.

A reader returns each call with its typed result, if the log contains everything that the family
needs. The text of the result is always included, so that no call is left out.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from tooltrail.records import (
    CommandOutput,
    CompleteOutput,
    ErrorKind,
    Family,
    FamilyOutput,
    FamilyRegistry,
    GenericOutput,
    StreamRecord,
    ToolError,
)

Entry = Mapping[str, Any]
"""A JSON object of a log."""

MAX_EXIT_STATUS = 255

_KINDS = {
    "The user doesn't want to proceed": ErrorKind.PERMISSION_DENIED,
    "Sibling tool call errored": ErrorKind.CANCELLED,
    "Command aborted": ErrorKind.CANCELLED,
    "String to replace not found": ErrorKind.CONTEXT_NOT_FOUND,
    "Failed to find expected lines": ErrorKind.CONTEXT_NOT_FOUND,
    "Could not find": ErrorKind.CONTEXT_NOT_FOUND,
    "does not exist": ErrorKind.MISSING_FILE,
    "introduced new syntax error": ErrorKind.PATCH_FAILED,
}
"""Kinds of errors by phrases in the messages of agents."""


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One tool call with its result.

    Attributes:
        tool_name: name of the tool, as the model spelled it.
        arguments: arguments in the log.
        texts: texts of the result; empty without a result.
        typed: typed result of a family; None if the log does not contain all of it.
        error: error of the call; None if the call did not fail.
    """

    tool_name: str
    arguments: Any
    texts: tuple[str, ...] = ()
    typed: FamilyOutput | None = None
    error: ToolError | None = None


def complete(call: RecordedCall, families: FamilyRegistry) -> tuple[Family, CompleteOutput]:
    """The complete output of a call, and its family.

    A result without everything that the family of the tool needs gets the family `generic`.
    """
    family = families.of_tool(call.tool_name)
    if call.error is not None:
        return family, CompleteOutput.failure(call.tool_name, call.error)
    result = call.typed
    if not isinstance(result, family.result_types):
        family, result = families.named("generic"), GenericOutput.of(*call.texts)
    return family, CompleteOutput.success(call.tool_name, result)


def interrupted(tool_name: str, arguments: Any) -> RecordedCall:
    """A call without a result in the log."""
    error = ToolError(kind=ErrorKind.INTERRUPTED, message="the log has no result of this call")
    return RecordedCall(tool_name, arguments, error=error)


def failed(
    tool_name: str, arguments: Any, text: str, kind: str | None = None, details: Any = None
) -> RecordedCall:
    """A call that failed; without `kind`, the kind is derived from the text."""
    known = (kind for phrase, kind in _KINDS.items() if phrase in text)
    kind = kind or next(known, ErrorKind.TOOL_EXECUTION_FAILED)
    error = ToolError(kind=kind, message=text, details=details)
    return RecordedCall(tool_name, arguments, (text,), error=error)


def ended(
    status: int | None, output: str, command: str | None, cwd: str | None = None
) -> CommandOutput | None:
    """A command with one combined stream; a status of None is unknown.

    Returns:
        None if a record cannot have this status.
    """
    if status is not None and not 0 <= status <= MAX_EXIT_STATUS:
        return None
    combined = stream("combined", output)
    return CommandOutput(exit_status=status, combined=combined, command=command, cwd=cwd)


def stream(role: str, text: str) -> StreamRecord:
    """A stream with the bytes of a text in a log."""
    return StreamRecord.from_bytes(role, encoded(text))


def encoded(text: str) -> bytes:
    """The text in UTF-8, in which a lone surrogate from JSON is kept."""
    return text.encode("utf-8", "surrogatepass")


def as_object(value: Any) -> Entry | None:
    """A JSON value if it is an object, else None."""
    return cast("Entry", value) if isinstance(value, dict) else None


def as_list(value: Any) -> Sequence[Any]:
    """A JSON value if it is a list, else an empty list."""
    return cast("Sequence[Any]", value) if isinstance(value, list) else ()


def documents(data: bytes) -> Iterator[Entry]:
    """The JSON objects of a log: one per line, or several if lines were joined by mistake.

    The incomplete rest of a line is left out.
    """
    decoder = json.JSONDecoder()
    for line in data.decode().split("\n"):
        rest = line.strip()
        while rest:
            try:
                entry, end = decoder.raw_decode(rest)
            except json.JSONDecodeError:
                break
            found = as_object(entry)
            if found is not None:
                yield found
            rest = rest[end:].lstrip()


Event = tuple[Literal["call", "result"], str, Entry]
"""The kind of an entry, the id of its call, and the entry."""


def paired(events: Iterable[Event]) -> Iterator[tuple[Entry, Entry | None]]:
    """Each call with its result, or None without a result; results without a call are left out.

    A repeated id begins a new call. The first result of an id may come before its call.
    """
    waiting: dict[str, Entry] = {}
    early: dict[str, Entry] = {}
    seen: set[str] = set()
    for kind, call_id, entry in events:
        call = waiting.pop(call_id, None)
        if call is not None:
            yield call, entry if kind == "result" else None
        if kind == "call":
            seen.add(call_id)
            waiting[call_id] = entry
        elif call_id not in seen:
            early[call_id] = entry
        if call_id in seen and call_id in early:
            yield waiting.pop(call_id), early.pop(call_id)
    for call in waiting.values():
        yield call, None
