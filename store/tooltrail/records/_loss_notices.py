"""What a preview says of bytes that the capture of its stream could not keep."""

from tooltrail.records._error_text import one_line
from tooltrail.records._text_cuts import shorten
from tooltrail.records.streams import StreamRecord

REASON_CHARS = 200
"""Longest reason that a preview or an omission repeats."""


def loss_notice(stream: StreamRecord, limit: int | None = None) -> str:
    """The line that says how much was lost and why; empty when nothing was.

    It begins with a newline, as the stream may have lost the one before.

    Args:
        stream: what was kept.
        limit: characters, for which the reason is shortened or left out. How much was lost is
            said even where that alone is longer.
    """
    if stream.loss_reason is None:
        return ""
    lost = stream.produced_size - stream.size
    beginning = f"\n[output incomplete: the last {lost:,} bytes were not kept"
    reason = one_line(stream.loss_reason, REASON_CHARS)
    if limit is not None:
        reason = shorten(reason, limit - len(f"{beginning}: ]\n"))
    return f"{beginning}: {reason}]\n" if reason else f"{beginning}]\n"
