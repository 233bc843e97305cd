"""The complete outputs of imported calls as canonical JSON, without the slow import of models.

The documents equal those of `CompleteOutput`; a test compares them.
"""

from collections.abc import Sequence
from typing import Final

from tooltrail.importers import events
from tooltrail.records._error_text import one_line
from tooltrail.records.command_documents import (
    CommandEnd,
    ended_document,
    output_document,
    stream_members,
)
from tooltrail.records.facts import StreamFact

_MESSAGE_CHARS: Final = 1000
_SUMMARY_CHARS: Final = 200


def success_document(
    tool_name: str, output: events.Output, streams: Sequence[StreamFact], *, is_command: bool
) -> bytes:
    """The complete output of a tool that did its work."""
    if is_command:
        command, cwd, status = output.command or "", output.cwd, output.exit_status
        end = CommandEnd(command, cwd, status, signal=None, timed_out=False, timeout_ms=None)
        return ended_document(tool_name, end, streams)
    members = {one.role: stream_members(one) for one in streams}
    structured = members.pop("structured", None)
    content = [{"media_type": "text/plain", "stream": one} for one in members.values()]
    summary = f"tool returned {len(content)} content {'item' if len(content) == 1 else 'items'}"
    result = {"content": content, "structured": structured}
    return output_document(tool_name, summary, result=result)


def failure_document(tool_name: str, kind: str, text: str, streams: Sequence[StreamFact]) -> bytes:
    """The complete output of a tool that failed, with the output that its source has."""
    message = one_line(text, _MESSAGE_CHARS) or "(no message)"
    error = {
        "kind": kind,
        "message": message,
        "details": None,
        "recovery_hint": None,
        "retryable": False,
    }
    partial = {"partial_output": [stream_members(one) for one in streams]} if streams else {}
    return output_document(tool_name, one_line(message, _SUMMARY_CHARS), error=error, **partial)
