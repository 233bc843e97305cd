"""In which order a file of an outbox is delivered: many entries of one session at once.

Several sessions that record at the same time wait line by line in turn, and to write each line in a
transaction of its own takes longer than to record it did. So a part of the file is sorted by
session first. What is of one session stays in its order, and a session comes behind the one that
started it, as that begins before it. A window ends before whatever hangs on an entry in it that is
of another session.
"""

from collections.abc import Generator, Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

from tooltrail.store._outbox.journal_lines import Line
from tooltrail.store._recording.batches import MOST, MOST_BYTES
from tooltrail.store.entries import CallEnded, Entry, SessionOpened

MOST_IN_WINDOW = 2048
"""Entries that are sorted at a time, unless they have `MOST_BYTES` before: eight transactions of
one session, or more of several."""


class One(NamedTuple):
    """An entry, and the line that it stands in."""

    line: Line
    entry: Entry


def iter_windows(ones: Iterable[One]) -> Generator[list[One]]:
    """What can be sorted by session, as it comes."""
    window = _Window()
    for one in ones:
        if window.is_full() or window.is_needed_by(one.entry):
            yield window.ones
            window = _Window()
        window.add(one)
    if window.ones:
        yield window.ones


def batches_of(window: Iterable[One], names: Mapping[UUID, UUID]) -> list[list[One]]:
    """What goes into one transaction each: entries of one session, in their order.

    Args:
        window: some that may be sorted.
        names: of their sessions; two may turn out to be the same.
    """
    sessions: dict[UUID, list[list[One]]] = {}
    for one in window:
        name = one.entry.session
        batches = sessions.setdefault(names.get(name, name), [])
        # A session begins in a transaction of its own, or at the beginning of one.
        is_next = isinstance(one.entry, SessionOpened) or not batches
        if is_next or batches[-1][0].entry.session != name or len(batches[-1]) == MOST:
            batches.append([])
        batches[-1].append(one)
    return [batch for batches in sessions.values() for batch in batches]


class _Window:
    def __init__(self) -> None:
        self.ones: list[One] = []
        self._size = 0
        self._opened: set[UUID] = set()
        self._keys: dict[str, UUID] = {}

    def is_full(self) -> bool:
        return len(self.ones) == MOST_IN_WINDOW or self._size >= MOST_BYTES

    def is_needed_by(self, entry: Entry) -> bool:
        """Whether what is in it must be delivered first.

        Of two records with one key the first counts. And one of another session may be what an
        idempotency key names, whose place among the sessions is known only when it is looked up.
        """
        match entry:
            case SessionOpened(idempotency_key=str(key), parent=parent):
                return key in self._keys or parent in self._opened
            case CallEnded(idempotency_key=str(key), session=session):
                return self._keys.get(key, session) != session
            case _:
                return False

    def add(self, one: One) -> None:
        entry = one.entry
        self.ones.append(one)
        self._size += len(one.line.raw)
        if isinstance(entry, SessionOpened):
            self._opened.add(entry.id)
        if isinstance(entry, SessionOpened | CallEnded) and entry.idempotency_key is not None:
            self._keys.setdefault(entry.idempotency_key, entry.session)
