"""How a tool fails: one shape for an exception, a refusal, a timeout or an unknown tool."""

from typing import Annotated, Final

from pydantic import Field, JsonValue

from tooltrail.records._model import Record, Sentence


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


class ToolError(Record):
    """What went wrong, for the model and for the auditor.

    Attributes:
        kind: a stable `snake_case` word, see `ErrorKind`.
        message: one sentence.
        details: any JSON value that helps; bounded when it is projected.
        recovery_hint: what the model could do next.
        retryable: whether the same call may succeed later.
    """

    kind: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
    message: Annotated[Sentence, Field(min_length=1)]
    details: JsonValue = None
    recovery_hint: Sentence | None = None
    retryable: bool = False
