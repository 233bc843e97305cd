"""Errors of tools: one model for an exception, a refusal, a timeout or an unknown tool."""

from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, JsonValue, model_validator

from tooltrail.records._details_json import recordable
from tooltrail.records._model import Message, Record, Sentence


class ErrorKind:
    """The known kinds of error. The list is open: any `snake_case` word can be a kind.

    Grouped by topic: input, command, patch, web, task, runtime, structured output.
    """

    INVALID_TOOL_INPUT: Final = "invalid_tool_input"
    """The arguments are not JSON, or the tool does not accept them."""
    UNKNOWN_TOOL: Final = "unknown_tool"
    """No tool has this name."""
    TOOL_NOT_EXPOSED: Final = "tool_not_exposed"
    """The tool exists, but was not offered to this model."""
    TRUNCATED_TOOL_CALL: Final = "truncated_tool_call"
    """The model's output ended in the middle of the call."""

    WORKDIR_NOT_FOUND: Final = "workdir_not_found"
    """The working directory of a command does not exist."""
    COMMAND_SPAWN_FAILED: Final = "command_spawn_failed"
    """The command could not be started."""
    COMMAND_TIMED_OUT: Final = "command_timed_out"
    """A command did not end in time, and none of its output could be kept."""
    EXECUTION_ROOT_VIOLATION: Final = "execution_root_violation"
    """A folder is outside the one that the tool may work in."""

    PATCH_FAILED: Final = "patch_failed"
    """A patch is malformed, or does not apply for a reason that none of the kinds below covers."""
    CONTEXT_NOT_FOUND: Final = "context_not_found"
    """The lines that a patch or an edit should change are not in the file."""
    PATH_ESCAPE: Final = "path_escape"
    """A path leaves the folder that it must stay in."""
    MISSING_FILE: Final = "missing_file"
    """A file to change or delete does not exist."""
    EXISTING_FILE: Final = "existing_file"
    """A file to create already exists."""

    NETWORK_DENIED: Final = "network_denied"
    """The tool is not allowed to connect to this address."""
    INVALID_URL: Final = "invalid_url"
    """The text is not a URL, or the tool does not support its scheme."""
    RESPONSE_TOO_LARGE: Final = "response_too_large"
    """The response is longer than the tool accepts."""
    RATE_LIMITED: Final = "rate_limited"
    """The server limits the rate of requests."""

    TASK_NOT_FOUND: Final = "task_not_found"
    """No background task has this id."""
    TASK_NOT_RUNNING: Final = "task_not_running"
    """The background task has ended, and cannot be stopped or given input."""

    TOOL_EXECUTION_FAILED: Final = "tool_execution_failed"
    """The tool failed, and no other kind is more precise."""
    TOOL_TIMED_OUT: Final = "tool_timed_out"
    """The runtime stopped the tool because it reached its time limit."""
    PERMISSION_DENIED: Final = "permission_denied"
    """A person or a policy refused the call, which did not run: its invocation is `denied`."""
    CANCELLED: Final = "cancelled"
    """The caller stopped the call: its invocation is `cancelled`."""
    INTERRUPTED: Final = "interrupted"
    """The program that ran the call ended or was stopped: its invocation is `interrupted`."""
    OUTPUT_PERSISTENCE_FAILED: Final = "output_persistence_failed"
    """The tool ran, but its output could not be kept."""
    LOW_DISK_SPACE: Final = "low_disk_space"
    """A disk or a quota is full."""

    RESULT_NOT_SUBMITTED: Final = "result_not_submitted"
    """An agent ended without submitting the structured result that it must return."""
    RESULT_INVALID: Final = "result_invalid"
    """A structured result does not match its schema."""


def exact_bytes(text: str) -> bytes | None:
    """The bytes of a text with lone surrogates, which strict UTF-8 refuses; None for other text."""
    data = text.encode("utf-8", "surrogatepass")
    return None if data.decode("utf-8", "ignore") == text else data


class ToolError(Record):
    """The error of a tool, for the model and for the auditor.

    A failure is never lost because of its text: parts that cannot be recorded are replaced, and
    nothing is cut before the projection.

    Attributes:
        kind: a stable `snake_case` word; see `ErrorKind`.
        message: one sentence; a blank message becomes `(no message)`.
        details: any value that helps, kept up to 16 MiB; the projection bounds it. Bytes, integers
            of more than 2,048 bits and other objects become the text `<TYPE: TEXT>`, an object
            in at most 1,000 characters. Tuples and sets become lists. A mapping with keys that are
            not text becomes a list of pairs. Parts below 250 levels are counted.
        recovery_hint: what the model could do next.
        retryable: whether the same call may succeed later.
        exact_message: the message in UTF-8 with its lone surrogates, which `message` escapes; None
            if it has none. It is not a part of the JSON: see `CompleteOutput.failure`.
    """

    kind: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
    message: Message
    details: Annotated[JsonValue, BeforeValidator(recordable)] = None
    recovery_hint: Sentence | None = None
    retryable: bool = False
    exact_message: bytes | None = Field(default=None, exclude=True, repr=False)

    @model_validator(mode="before")
    @classmethod
    def _keep_surrogates(cls, given: Any) -> Any:
        match given:
            case {"message": str(message)}:
                return {"exact_message": exact_bytes(message), **given}
            case _:
                return given
