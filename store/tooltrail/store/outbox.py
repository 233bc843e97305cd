"""What is recorded while a store cannot be reached: entries of a journal, delivered later.

A producer that only appends needs nothing of a store but its id and a folder: importing this module
imports no database, no pydantic and no migrations. See `_outbox.journal` for the files.

    outbox = Outbox.of(spool, store_id)
    session = SessionOpened(title="a hook")
    outbox.append(session)
    outbox.append(MessageAdded(session=session.id, role="user", text="hello"))

What `append` has returned from is durable, and delivered once: an entry is known by its id.
"""

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Self
from uuid import UUID

from tooltrail.records.canonical_json import encode
from tooltrail.records.errors import UnavailableError
from tooltrail.store._outbox.dropped_sessions import DroppedSessions
from tooltrail.store._outbox.journal import Journal
from tooltrail.store._outbox.journal_lines import Progress
from tooltrail.store._outbox.put_away import PutAway
from tooltrail.store.entries import (
    KIND_NAMES,
    CallEnded,
    CallStarted,
    EndedStream,
    Entry,
    MessageAdded,
    SessionEnded,
    SessionOpened,
    SpooledContent,
    complete_output_json,
    entry_json,
)
from tooltrail.store.spools import OUTBOX_PREFIX

__all__ = [
    "CallEnded",
    "CallStarted",
    "EndedStream",
    "MessageAdded",
    "Outbox",
    "SessionEnded",
    "SessionOpened",
    "SpooledContent",
    "complete_output_json",
    "outboxes_in",
]

_NAME = re.compile(rf"{OUTBOX_PREFIX}([0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}})")


class Outbox:
    """A journal that records are appended to. Safe to share between threads, processes and forks.

    Attributes:
        journal: its files.
        put_away: what is not delivered.
        progress: of a delivery by this process.
    """

    def __init__(self, folder: Path) -> None:
        self.journal = Journal(folder)
        self.put_away = PutAway(folder)
        self.progress = Progress()
        self._dropped = DroppedSessions(self.put_away)

    @classmethod
    def of(cls, spool: Path, store_id: UUID) -> Self:
        """That of a store, in one of its spools."""
        return cls(spool / f"{OUTBOX_PREFIX}{store_id}")

    def append(self, entry: Entry) -> None:
        """Keep an entry for the next process that can deliver it; durable when this returns.

        Raises:
            OSError: the journal cannot be written; nothing was added.
            InvalidRecordError: a value is no JSON.
        """
        self.journal.append(entry_json(entry))

    def is_waiting(self) -> bool:
        """Whether there is anything to deliver, by one `stat`; also when nobody can tell."""
        try:
            return self.journal.is_waiting()
        except OSError:
            return True

    def is_there(self) -> bool:
        """Whether anything was ever put there."""
        try:
            return self.journal.folder.is_dir()
        except OSError:
            return True

    def count_dropped(self, entry: Entry, reason: str) -> None:
        """Count an entry that is kept nowhere; the count is durable when this returns.

        Raises:
            OSError: it cannot be counted.
        """
        told = {"kind": KIND_NAMES[type(entry)], "id": str(entry.id), "at": entry.at.isoformat()}
        self.put_away.count_dropped(encode({**told, "reason": reason}))

    def was_dropped(self, session: UUID) -> bool:
        """Whether a session was dropped and counted when it was to be opened.

        Raises:
            OSError: the count cannot be read.
        """
        return self._dropped.has(str(session))

    def retry_kept(self) -> int:
        """Let wait again what could not be delivered, and can be read; how many entries.

        Raises:
            OSError: whatever the file system says.
            UnavailableError: another process delivers, and did so for half a minute.
        """
        if not self.put_away.kept_count():
            return 0
        # A delivery that refused one again between its append and its removal from where it was
        # would put it into the same place.
        with self.journal.delivering(wait=True) as is_ours:
            if not is_ours:
                raise UnavailableError(
                    f"{self.put_away.kept} cannot be retried: {self.journal.deliverer()} is"
                    f" delivering what waits in {self.journal.folder}"
                )
            return self.put_away.retry(self.journal.append)

    def joined(self, session: UUID) -> UUID:
        """The session that one turned out to be by its idempotency key, or the same."""
        return UUID(self.journal.joined(str(session)))

    def join(self, session: UUID, other: UUID) -> None:
        """Remember that a session is another one, durably.

        Raises:
            OSError: whatever the file system says.
        """
        self.journal.join(str(session), str(other))


def outboxes_in(spool: Path) -> list[UUID]:
    """The stores that have an outbox in a spool; none where it cannot be read."""
    with suppress(OSError):
        names = sorted(os.listdir(spool))  # noqa: PTH208  names are all that is wanted
        return [UUID(found[1]) for found in map(_NAME.fullmatch, names) if found]
    return []
