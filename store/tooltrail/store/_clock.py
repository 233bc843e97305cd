"""The clock and the ids of this process; see `tooltrail.journal.clock`."""

from tooltrail.journal.clock import new_id, now

__all__ = ["new_id", "now"]
