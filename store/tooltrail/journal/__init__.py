"""How facts enter: the append-only, hash-chained journal that all producers of a host share.

Importing this package loads the standard library and light modules of `tooltrail.records` only.
"""

from tooltrail.journal.frames import FIRST_HASH, Frame
from tooltrail.journal.log import Entry, JournalLog, Position
from tooltrail.journal.owners import Owner, is_alive, remove_owner
from tooltrail.journal.reading import (
    Cursor,
    Gap,
    cursor_behind,
    delete_segments,
    has_frames,
    read_journal,
    read_journal_id,
    sync_segment,
)

__all__ = [
    "FIRST_HASH",
    "Cursor",
    "Entry",
    "Frame",
    "Gap",
    "JournalLog",
    "Owner",
    "Position",
    "cursor_behind",
    "delete_segments",
    "has_frames",
    "is_alive",
    "read_journal",
    "read_journal_id",
    "remove_owner",
    "sync_segment",
]
