"""Tool calls as logs of agents hold them, in the words of the records.

A reader says what a call was and, as far as the log tells all that a family needs, its typed
result. What came back as text is there in any case, so that no call is left out.
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
"""The kinds of errors by what agents say of them."""


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One tool call with what came back.

    Attributes:
        tool_name: as the model spelled it.
        arguments: as the log has them.
        texts: what came back, as text; none when nothing did.
        typed: the result as a family has it; None when the log does not tell all of it.
        error: how it failed; None when it did not.
    """

    tool_name: str
    arguments: Any
    texts: tuple[str, ...] = ()
    typed: FamilyOutput | None = None
    error: ToolError | None = None


def complete(call: RecordedCall, families: FamilyRegistry) -> tuple[Family, CompleteOutput]:
    """The complete output of a call, and the family that takes it.

    A result that has not what the family of its tool needs goes to `generic`, as it came.
    """
    family = families.of_tool(call.tool_name)
    if call.error is not None:
        return family, CompleteOutput.failure(call.tool_name, call.error)
    result = call.typed
    if not isinstance(result, family.result_types):
        family, result = families.named("generic"), GenericOutput.of(*call.texts)
    return family, CompleteOutput.success(call.tool_name, result)


def interrupted(tool_name: str, arguments: Any) -> RecordedCall:
    """A call of which the log has no result."""
    error = ToolError(kind=ErrorKind.INTERRUPTED, message="the log has no result of this call")
    return RecordedCall(tool_name, arguments, error=error)


def failed(
    tool_name: str, arguments: Any, text: str, kind: str | None = None, details: Any = None
) -> RecordedCall:
    """A call that failed; the kind is told from the text when it is not given."""
    known = (kind for phrase, kind in _KINDS.items() if phrase in text)
    kind = kind or next(known, ErrorKind.TOOL_EXECUTION_FAILED)
    error = ToolError(kind=kind, message=text, details=details)
    return RecordedCall(tool_name, arguments, (text,), error=error)


def ended(
    status: int | None, output: str, command: str | None, cwd: str | None = None
) -> CommandOutput | None:
    """A command with one combined stream; a status of None is not known.

    Returns:
        None when the status is one that no record takes.
    """
    if status is not None and not 0 <= status <= MAX_EXIT_STATUS:
        return None
    combined = stream("combined", output)
    return CommandOutput(exit_status=status, combined=combined, command=command, cwd=cwd)


def stream(role: str, text: str) -> StreamRecord:
    """A text of a log as the bytes that it was."""
    return StreamRecord.from_bytes(role, encoded(text))


def encoded(text: str) -> bytes:
    """UTF-8, in which a lone surrogate that JSON escaped stays what it is."""
    return text.encode("utf-8", "surrogatepass")


def as_object(value: Any) -> Entry | None:
    """A JSON value when it is an object, else None."""
    return cast("Entry", value) if isinstance(value, dict) else None


def as_list(value: Any) -> Sequence[Any]:
    """A JSON value when it is a list, else an empty one."""
    return cast("Sequence[Any]", value) if isinstance(value, list) else ()


def documents(data: bytes) -> Iterator[Entry]:
    """The JSON objects of a log with one on each line; lines that were spliced hold several.

    The rest of a line that is cut is left out.
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
"""What an entry is, the id of its call, and the entry."""


def paired(events: Iterable[Event]) -> Iterator[tuple[Entry, Entry | None]]:
    """Each call with its result, None for a call without one; results without a call are left out.

    An id that comes again begins a new call. The first result may stand before its call.
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
