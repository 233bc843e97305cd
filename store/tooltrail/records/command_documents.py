"""Complete outputs of commands as JSON, without models, for a program that starts for one command.

The same documents as those of `CompleteOutput` and `CommandOutput`; a test compares them.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from tooltrail.records._command_words import worded_end
from tooltrail.records.call_facts import StreamFact
from tooltrail.records.canonical_json import encode
from tooltrail.records.frozen import Frozen

_SUMMARY_CHARS: Final = 200
"""See `tooltrail.records.envelope.SUMMARY_CHARS`."""

_STREAMS: Final = ("stdout", "stderr", "combined", "order")


class CommandEnd(Frozen):
    """How a command ended.

    Attributes:
        command: what was run, as a shell would spell it.
        cwd: the folder that it was to run in.
        exit_status: 0 to 255; None when a signal ended it, or when it is not known.
        signal: number of the signal that ended it.
        timed_out: whether it was ended because its time was over.
        timeout_ms: the time that it had; given when `timed_out`.
    """

    command: str
    cwd: str | None
    exit_status: int | None
    signal: int | None
    timed_out: bool
    timeout_ms: int | None


def ended_document(tool_name: str, end: CommandEnd, streams: Iterable[StreamFact]) -> bytes:
    """Canonical JSON of the complete output of a command that ran.

    Args:
        tool_name: that is recorded.
        end: how the command ended.
        streams: what it printed: `stdout`, `stderr` and `order`, or `combined` alone.
    """
    result: dict[str, object] = {
        "disposition": "completed",
        "command": end.command,
        "cwd": end.cwd,
        "exit_status": end.exit_status,
        "signal": end.signal,
        "timed_out": end.timed_out,
        "timeout_ms": end.timeout_ms,
        **dict.fromkeys(_STREAMS),
        **{stream.role: _stream_members(stream) for stream in streams},
    }
    summary = f"command {worded_end(end, f'exited with status {end.exit_status}')}"
    return _document(tool_name, summary, result=result)


def failed_document(
    tool_name: str, kind: str, message: str, argv: Sequence[str], cwd: str | None
) -> bytes:
    """Canonical JSON of the complete output of a command that could not be started."""
    # Not every command needs it, and importing it takes longer than the rest of this module.
    from tooltrail.records._error_text import one_line  # noqa: PLC0415
    from tooltrail.records._text_cuts import spelled_out  # noqa: PLC0415

    error: dict[str, object] = {
        "kind": kind,
        "message": spelled_out(message),
        "details": {"argv": list(argv), "cwd": cwd},
        "recovery_hint": None,
        "retryable": False,
    }
    return _document(tool_name, one_line(message, _SUMMARY_CHARS), error=error)


def _document(
    tool_name: str,
    summary: str,
    *,
    result: Mapping[str, Any] | None = None,
    error: Mapping[str, Any] | None = None,
) -> bytes:
    return encode(
        {
            "tool_name": tool_name,
            "status": "success" if error is None else "error",
            "summary_text": summary,
            "result": result,
            "error": error,
        }
    )


def _stream_members(stream: StreamFact) -> dict[str, object]:
    return {name: getattr(stream, name) for name in StreamFact.member_names if name != "spooled"}
