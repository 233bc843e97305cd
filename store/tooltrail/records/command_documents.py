"""Describes the end of a command in words and as JSON, without the slow import of pydantic models.

The documents equal those of `CompleteOutput` and `CommandOutput`; a test compares them.
"""

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

from tooltrail.records.canonical_json import encode_simple
from tooltrail.records.facts import StreamFact
from tooltrail.records.frozen import Frozen

_SIGNALS = {
    1: "SIGHUP",
    2: "SIGINT",
    3: "SIGQUIT",
    4: "SIGILL",
    5: "SIGTRAP",
    6: "SIGABRT",
    8: "SIGFPE",
    9: "SIGKILL",
    11: "SIGSEGV",
    13: "SIGPIPE",
    14: "SIGALRM",
    15: "SIGTERM",
}
"""Signals that have the same number everywhere. The host's own table would produce different bytes
on different systems."""

_SUMMARY_CHARS: Final = 200
"""See `tooltrail.records.envelope.SUMMARY_CHARS`."""

_STREAMS: Final = ("stdout", "stderr", "combined", "order")
STREAM_MEMBERS: Final = [name for name in StreamFact.member_types if name != "spooled"]
_members_of: Final = attrgetter(*STREAM_MEMBERS)


class CommandEnd(Frozen):
    """How a command ended; see `tooltrail.records.CommandOutput` for its members."""

    command: str
    cwd: str | None
    exit_status: int | None
    signal: int | None
    timed_out: bool
    timeout_ms: int | None


def worded_end(end: Mapping[str, Any], by_itself: str) -> str:
    """Words for how a command ended: a timeout, a signal, or `by_itself` for an exit status.

    Args:
        end: the members of a command that ended, complete or projected; see `CommandEnd`.
        by_itself: the words for a command that exited with a status.
    """
    timeout_ms, signal = end.get("timeout_ms"), end.get("signal")
    if end.get("timed_out") and timeout_ms is not None:
        return f"timed out after {seconds(timeout_ms)}"
    if signal is not None:
        name = f" ({_SIGNALS[signal]})" if signal in _SIGNALS else ""
        return f"killed by signal {signal}{name}"
    return "ended, its exit status is not known" if end["exit_status"] is None else by_itself


def seconds(duration_ms: int) -> str:
    """A duration in seconds, exactly: `1.5 s`."""
    whole, rest = divmod(duration_ms, 1000)
    return f"{whole}.{rest:03}".rstrip("0").rstrip(".") + " s"


def ended_document(tool_name: str, end: CommandEnd, streams: Iterable[StreamFact]) -> bytes:
    """Canonical JSON of the complete output of a command that ran.

    The streams are `stdout`, `stderr` and `order`, or `combined` alone.
    """
    recorded = {stream.role: stream_members(stream) for stream in streams}
    result = {"disposition": "completed", **vars(end), **dict.fromkeys(_STREAMS), **recorded}
    summary = f"command {worded_end(result, f'exited with status {end.exit_status}')}"
    return output_document(tool_name, summary, result=result)


def failed_document(
    tool_name: str, kind: str, message: str, argv: Sequence[str], cwd: str | None
) -> bytes:
    """Canonical JSON of the complete output of a command that could not be started."""
    # Few commands need these, and importing them takes longer than the rest of this module.
    from tooltrail.records._error_text import one_line  # noqa: PLC0415
    from tooltrail.records._text_cuts import spelled_out  # noqa: PLC0415

    error = {
        "kind": kind,
        "message": spelled_out(message),
        "details": {"argv": list(argv), "cwd": cwd},
        "recovery_hint": None,
        "retryable": False,
    }
    return output_document(tool_name, one_line(message, _SUMMARY_CHARS), error=error)


def output_document(
    tool_name: str, summary: str, *, result: object = None, error: object = None, **others: object
) -> bytes:
    """Canonical JSON of a complete output."""
    return encode_simple(
        {
            "tool_name": tool_name,
            "status": "success" if error is None else "error",
            "summary_text": summary,
            "result": result,
            "error": error,
            **others,
        }
    )


def stream_members(stream: StreamFact) -> dict[str, Any]:
    """The JSON of a stream in a complete output."""
    return dict(zip(STREAM_MEMBERS, _members_of(stream), strict=True))
