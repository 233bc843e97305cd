"""What waits in the outboxes of a store, and what was dropped or put away."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from tooltrail.records import InvalidRecordError, UnavailableError
from tooltrail.store._engines.targets import parse_target
from tooltrail.store._outbox.journal import Journal
from tooltrail.store._outbox.known_stores import recall, recall_ids
from tooltrail.store.asides import distinct_spools
from tooltrail.store.entries import read_entry
from tooltrail.store.opening import spool_folder
from tooltrail.store.outbox import Outbox, outboxes_in

if TYPE_CHECKING:
    from tooltrail.store.store import Store


@dataclass(frozen=True, slots=True)
class ForeignOutbox:
    """What waits for another store in a spool that was looked into.

    Attributes:
        store_id: of that store.
        folder: of the outbox.
        entry_count: sessions, messages, calls and ends in it.
        is_known: whether a store with that id is remembered at some place in that spool; else it is
            gone from where it was, or somebody else's.
    """

    store_id: UUID
    folder: str
    entry_count: int
    is_known: bool

    def __str__(self) -> str:
        what = f"{self.entry_count:,} in {self.folder} wait for store {self.store_id}"
        if self.is_known:
            return f"{what}: repair there"
        return f"{what}, which is not known in that spool any more: gone for good, or moved"


@dataclass(frozen=True, slots=True)
class Backlog:
    """What was recorded while a store was away.

    Attributes:
        entry_count: sessions, messages, calls and ends that wait to be delivered.
        size: bytes of the journals.
        oldest_at: when the oldest of them was recorded; None when there is none.
        unreadable_count: lines that were cut or altered; a delivery puts them away.
        dropped_count: records that were dropped and counted, and not acknowledged.
        kept_count: entries that could not be delivered and were put away, the same.
        kept_in: the folders of these.
        foreign: what waits there for other stores.
    """

    entry_count: int = 0
    size: int = 0
    oldest_at: datetime | None = None
    unreadable_count: int = 0
    dropped_count: int = 0
    kept_count: int = 0
    kept_in: tuple[str, ...] = ()
    foreign: tuple[ForeignOutbox, ...] = ()


def find_backlog(store: "Store", *, also: Sequence[Path] = ()) -> Backlog:
    """Read through what waits for a store; what is delivered meanwhile may be counted or not.

    Args:
        store: which one.
        also: as for `repair`.

    Raises:
        UnavailableError: an outbox cannot be read.
    """
    return replace(
        _read_through(find_outboxes(store, also=also)), foreign=find_foreign(store, also=also)
    )


def find_backlog_of_place(
    database: str | Path, *, spool: Path | None = None, also: Sequence[Path] = ()
) -> Backlog:
    """What waits for the store of a database that is away, as far as it was met in this spool.

    Args:
        database: as for `open_store`.
        spool: the same.
        also: as for `repair`.

    Raises:
        InvalidRecordError: this is no place of a database.
        UnavailableError: an outbox cannot be read.
    """
    first = spool or spool_folder(database)
    known = recall(first, parse_target(database))
    return Backlog() if known is None else _read_through(_outboxes_of(known.id, first, also))


def _read_through(outboxes: Sequence[Outbox]) -> Backlog:
    journals = [outbox.journal for outbox in outboxes]
    entry_count = unreadable_count = 0
    oldest: list[datetime] = []
    try:
        for line in (line for journal in journals for line in journal.iter_lines()):
            if line.data is None:
                unreadable_count += 1
                continue
            entry_count += 1
            if not oldest:
                with suppress(InvalidRecordError):
                    oldest.append(read_entry(line.data).at)
        kept = {outbox: outbox.put_away.kept_count() for outbox in outboxes}
        return Backlog(
            entry_count,
            sum(map(_size_of, journals)),
            min(oldest, default=None),
            unreadable_count,
            sum(outbox.put_away.dropped_count() for outbox in outboxes),
            sum(kept.values()),
            tuple(str(one.put_away.kept) for one, count in kept.items() if count),
        )
    except OSError as error:
        raise UnavailableError(
            f"outbox {error.filename} cannot be read: {error.strerror}"
        ) from error


def waiting_ids(store: "Store", *, also: Sequence[Path] = ()) -> frozenset[UUID]:
    """The ids of all that waits for a store: nothing is known yet of how they began or ended.

    Whoever finds the program of a call gone before this is asked finds in it what that program had
    put there.

    Raises:
        UnavailableError: an outbox cannot be read.
    """
    found: set[UUID] = set()
    try:
        for outbox in find_outboxes(store, also=also):
            for line in outbox.journal.iter_lines():
                with suppress(InvalidRecordError):
                    found.add(read_entry(line.data or b"").id)
    except OSError as error:
        raise UnavailableError(
            f"outbox {error.filename} cannot be read: {error.strerror}"
        ) from error
    return frozenset(found)


def is_waiting(store: "Store", *, also: Sequence[Path] = ()) -> bool:
    """Whether anything waits for a store, without reading it."""
    return any(outbox.is_waiting() for outbox in find_outboxes(store, also=also))


def acknowledge_losses(store: "Store", *, also: Sequence[Path] = ()) -> tuple[Path, ...]:
    """Count no more what was dropped so far, or could not be delivered; nothing is deleted.

    Args:
        store: whose outboxes they are.
        also: as for `repair`.

    Returns:
        The folders that it was moved to, with what there was.

    Raises:
        UnavailableError: an outbox cannot be read or written.
    """
    try:
        moved = [outbox.put_away.acknowledge() for outbox in find_outboxes(store, also=also)]
    except OSError as error:
        raise UnavailableError(
            f"outbox {error.filename} cannot be changed: {error.strerror}"
        ) from error
    return tuple(folder for folder in moved if folder is not None)


def find_foreign(store: "Store", *, also: Sequence[Path] = ()) -> tuple[ForeignOutbox, ...]:
    """What waits for other stores in the spool of a store and in others.

    Raises:
        UnavailableError: an outbox cannot be read.
    """
    spools = distinct_spools(store.spool, *also)
    return tuple(one for spool in spools for one in _foreign_in(spool, store.info.id))


def _foreign_in(spool: Path, own: UUID) -> Iterator[ForeignOutbox]:
    known = recall_ids(spool)
    for store_id in outboxes_in(spool):
        if store_id == own:
            continue
        outbox = Outbox.of(spool, store_id)
        if count := _read_through([outbox]).entry_count:
            yield ForeignOutbox(store_id, str(outbox.journal.folder), count, store_id in known)


def find_outboxes(store: "Store", *, also: Sequence[Path] = ()) -> list[Outbox]:
    """The outboxes of a store that are there, in its spool and in others."""
    return _outboxes_of(store.info.id, store.spool, also)


def _outboxes_of(store_id: UUID, spool: Path, also: Sequence[Path]) -> list[Outbox]:
    outboxes = [Outbox.of(folder, store_id) for folder in distinct_spools(spool, *also)]
    return [outbox for outbox in outboxes if outbox.is_there()]


def _size_of(journal: Journal) -> int:
    size = 0
    for path in journal.files():
        with suppress(FileNotFoundError):
            size += path.stat().st_size
    return size
