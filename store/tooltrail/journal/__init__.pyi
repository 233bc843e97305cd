from .answers import RecordedAnswer, RecordedStream, record_response, record_stream
from .ended_calls import EndedCall
from .frames import FIRST_HASH, Cursor, Frame
from .invocation import Finished, Invocation
from .log import Acknowledge, Entry, JournalLog
from .owners import Owner, is_alive, remove_owner
from .reading import (
    Gap,
    delete_segments,
    find_other_end,
    furthest_end,
    has_frames,
    has_later_frames,
    read_journal,
    read_journal_id,
    sync_segment,
)
from .recorder import Recorder
from .session import Session
from .tool_results import tool_results_message

__all__ = [
    "FIRST_HASH",
    "Acknowledge",
    "Cursor",
    "EndedCall",
    "Entry",
    "Finished",
    "Frame",
    "Gap",
    "Invocation",
    "JournalLog",
    "Owner",
    "RecordedAnswer",
    "RecordedStream",
    "Recorder",
    "Session",
    "delete_segments",
    "find_other_end",
    "furthest_end",
    "has_frames",
    "has_later_frames",
    "is_alive",
    "read_journal",
    "read_journal_id",
    "record_response",
    "record_stream",
    "remove_owner",
    "sync_segment",
    "tool_results_message",
]
