"""Calls that have ended."""

from tooltrail.records import CommandOutput, CompleteOutput, StreamRecord, ToolCall, ToolError

BASH = ToolCall.of("Bash", {"command": "make"}, call_id="call 1")


def shell_call(command: str = "ls", call_id: str | None = None) -> ToolCall:
    return ToolCall.of("Bash", {"command": command}, call_id=call_id)


def made(stdout: bytes = b"made\n", stderr: bytes = b"", exit_status: int = 0) -> CompleteOutput:
    """The output of a command, completely in memory."""
    result = CommandOutput(
        command="make",
        exit_status=exit_status,
        stdout=StreamRecord.from_bytes("stdout", stdout),
        stderr=StreamRecord.from_bytes("stderr", stderr),
    )
    return CompleteOutput.success("Bash", result)


def failed(kind: str = "tool_execution_failed") -> CompleteOutput:
    return CompleteOutput.failure("Bash", ToolError(kind=kind, message="no", details={"n": 1}))
