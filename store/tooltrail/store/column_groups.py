"""Groups of columns that one fact fills, for the ingester, the triggers and `verify`."""

from typing import Final

OPENING: Final = ("name", "parent_id", "title", "agent", "environment", "open_journal_key", "entry")
"""Columns of a session that its `session.opened` fills."""

CLOSING: Final = ("closed_at", "close_reason", "close_journal_key", "close_entry")
"""Columns of a session that its `session.closed` fills."""

ENDING: Final = (
    "state",
    "finished_at",
    "duration_ms",
    "error_kind",
    "exit_status",
    "signal",
    "timed_out",
    "output_size",
    "lost_size",
    "truncated",
    "end_journal_key",
    "end_entry",
)
"""Columns of an invocation that its `call.ended` fills."""

_RECEIPT: Final = ("receipt", "renderer", "renderer_version")

LATER_RECEIPT: Final = (*_RECEIPT, "receipt_journal_key", "receipt_entry")
"""Columns of `surfaces` that a later `call.ended` fills, if the first one had no receipt."""

OUTCOME: Final = ("output", "canonical", *_RECEIPT, "shown", "cut_size")
"""Columns of `surfaces` that a `call.ended` fills."""
