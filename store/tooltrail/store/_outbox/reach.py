"""The outboxes of one store that a delivery can look into.

A session may wait in one spool and the one that started it in another, where two programs record
with two spools. What began first is written first, from wherever it waits: an entry is known by its
id, so that the delivery of its own outbox meets it later.
"""

from collections.abc import Sequence
from contextlib import suppress
from uuid import UUID

from tooltrail.records import InvalidRecordError
from tooltrail.store.entries import CallStarted, SessionOpened, read_entry
from tooltrail.store.outbox import Outbox


class Reach:
    """One outbox that is being delivered, and others of the same store beside it."""

    def __init__(self, outbox: Outbox, others: Sequence[Outbox] = ()) -> None:
        folder = outbox.journal.folder
        self._outboxes = [outbox, *(one for one in others if one.journal.folder != folder)]

    def __str__(self) -> str:
        return ", ".join(str(one.journal.folder) for one in self._outboxes)

    def joined(self, session: UUID) -> UUID:
        """The session that one turned out to be by its idempotency key, or the same."""
        names = (one.joined(session) for one in self._outboxes)
        return next((name for name in names if name != session), session)

    def is_waiting_elsewhere(self) -> bool:
        """Whether anything waits in the others."""
        return any(one.is_waiting() for one in self._outboxes[1:])

    def find_opening(self, session: UUID) -> tuple[Outbox, SessionOpened] | None:
        """How a session began that waits in one of the others, and in which."""
        name = str(session).encode()
        for outbox in self._outboxes[1:]:
            # What cannot be read now is for its own delivery to tell.
            with suppress(OSError):
                for line in outbox.journal.iter_lines():
                    if line.data is None or name not in line.data:
                        continue
                    with suppress(InvalidRecordError):
                        entry = read_entry(line.data)
                        if isinstance(entry, SessionOpened) and entry.id == session:
                            return outbox, entry
        return None

    def has_beginning(self, session: UUID) -> bool:
        """Whether a session begins in any of them, or nobody can tell since one cannot be read."""
        try:
            return any(
                line.data is not None and _may_begin(session, line.data)
                for outbox in self._outboxes
                for line in outbox.journal.iter_lines()
            )
        except OSError:
            return True


def _may_begin(session: UUID, data: bytes) -> bool:
    """Whether an entry is the beginning of a session, or one of a later version that names it."""
    if str(session).encode() not in data:
        return False
    try:
        entry = read_entry(data)
    except InvalidRecordError:
        return True
    match entry:
        case SessionOpened():
            return entry.id == session
        case CallStarted():
            return entry.session == session and entry.alone is not None
        case _:
            return False
