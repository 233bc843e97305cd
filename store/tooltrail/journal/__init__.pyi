from .frames import FIRST_HASH, Frame
from .log import Entry, JournalLog, Position
from .owners import Owner, is_alive, remove_owner
from .reading import (
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
