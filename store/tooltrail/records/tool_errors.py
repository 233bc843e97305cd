"""How a tool fails: one shape for an exception, a refusal, a timeout or an unknown tool."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Final, cast

from pydantic import BeforeValidator, Field, JsonValue

from tooltrail.records import canonical_json
from tooltrail.records._model import Message, Record, Sentence
from tooltrail.records._text_cuts import shorten
from tooltrail.records.errors import InvalidRecordError

_REPLACED_CHARS = 800
"""Characters that are kept of details that are no JSON; they fit into an error's budget."""


class ErrorKind:
    """The kinds of error in one place. The list is open: any `snake_case` word is a kind."""

    INVALID_TOOL_INPUT: Final = "invalid_tool_input"
    UNKNOWN_TOOL: Final = "unknown_tool"
    TOOL_NOT_EXPOSED: Final = "tool_not_exposed"
    TRUNCATED_TOOL_CALL: Final = "truncated_tool_call"
    WORKDIR_NOT_FOUND: Final = "workdir_not_found"
    COMMAND_SPAWN_FAILED: Final = "command_spawn_failed"
    COMMAND_TIMED_OUT: Final = "command_timed_out"
    EXECUTION_ROOT_VIOLATION: Final = "execution_root_violation"
    TOOL_EXECUTION_FAILED: Final = "tool_execution_failed"
    PERMISSION_DENIED: Final = "permission_denied"
    CANCELLED: Final = "cancelled"
    INTERRUPTED: Final = "interrupted"
    OUTPUT_PERSISTENCE_FAILED: Final = "output_persistence_failed"
    LOW_DISK_SPACE: Final = "low_disk_space"


def _recordable(details: object) -> object:
    reason = None
    if canonical_json.is_deeper_than(details, canonical_json.MAX_EMBEDDED_DEPTH):
        reason = f"nested deeper than {canonical_json.MAX_EMBEDDED_DEPTH} levels"
    else:
        try:
            canonical_json.encode(details)
        except InvalidRecordError as error:
            reason = str(error)
    if reason is None:
        return details
    return {"omitted": True, "reason": reason, "preview": _beginning(details, _REPLACED_CHARS)}


def _beginning(value: object, limit: int) -> str:
    text = ""
    for lexeme in _lexemes(value):
        text += lexeme
        if len(text) > limit:
            break
    return shorten(text, limit)


def _lexemes(value: object) -> Iterator[str]:
    """A value of any depth, even one that contains itself, as JSON would have it."""
    levels = [(iter([("", value)]), "")]
    while levels:
        members, end = levels[-1]
        member = next(members, None)
        if member is None:
            levels.pop()
            yield end
            continue
        prefix, part = member
        if isinstance(part, dict):
            yield prefix + "{"
            levels.append((_named_members(cast("Mapping[object, object]", part)), "}"))
        elif isinstance(part, list | tuple):
            yield prefix + "["
            levels.append((_members(cast("Sequence[object]", part)), "]"))
        else:
            yield prefix + _scalar(part)


def _named_members(value: Mapping[object, object]) -> Iterator[tuple[str, object]]:
    for n, (key, member) in enumerate(value.items()):
        yield f"{',' if n else ''}{_scalar(key)}:", member


def _members(value: Sequence[object]) -> Iterator[tuple[str, object]]:
    return (("," if n else "", member) for n, member in enumerate(value))


def _scalar(value: object) -> str:
    try:
        return canonical_json.encode_text(value)
    except InvalidRecordError:
        return f"<{type(value).__name__}>"


class ToolError(Record):
    """What went wrong, for the model and for the auditor.

    A failure is never lost for the way it is worded: what cannot be recorded is replaced.

    Attributes:
        kind: a stable `snake_case` word, see `ErrorKind`.
        message: one sentence; a blank one becomes `(no message)`.
        details: any JSON value that helps; bounded when it is projected. One that canonical JSON
            refuses, nested too deep for instance, becomes `{omitted, reason, preview}`, where
            the preview is at most 800 characters of it.
        recovery_hint: what the model could do next.
        retryable: whether the same call may succeed later.
    """

    kind: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
    message: Message
    details: Annotated[JsonValue, BeforeValidator(_recordable)] = None
    recovery_hint: Sentence | None = None
    retryable: bool = False
