"""How much room there is on the disks of this machine that a store writes to."""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tooltrail.artifacts import CaptureLimits, DiskRoom, is_reachable_spool
from tooltrail.store._engines.disk import free_bytes
from tooltrail.store._engines.targets import SqliteTarget
from tooltrail.store.store import Store


@dataclass(frozen=True, slots=True)
class LocalRoom:
    """Room on the disks of one store, in bytes; None for what is not here or cannot be asked.

    Attributes:
        database_free: may be written to the disk of the database file.
        is_database_full: whether that is less than one record may take.
        is_reserve_missing: whether no room is held back there, and there is too little to do so.
        reserve_size: bytes that are held back there.
        spool: room on the disk of the spool.
        spool_size: bytes that the files of the spool take, whichever store they are of.
    """

    database_free: int | None
    is_database_full: bool
    is_reserve_missing: bool
    reserve_size: int
    spool: DiskRoom | None
    spool_size: int


def find_local_room(store: Store) -> LocalRoom:
    """Ask the disks of a store."""
    target = store.database.target
    return LocalRoom(
        free_bytes(target.path.parent) if isinstance(target, SqliteTarget) else None,
        store.reserve.is_needed(),
        store.reserve.is_out_of_reach(),
        store.reserve.size(),
        _spool_room(store),
        sum(map(_size_of, _files_of(store.spool))),
    )


def _spool_room(store: Store) -> DiskRoom | None:
    limits = CaptureLimits(free_bytes=store.limits.free_bytes)
    # The spool is made when it is first needed, on the disk of the folder that is there.
    there = filter(is_reachable_spool, (store.spool, *store.spool.parents))
    with suppress(OSError, StopIteration):
        return limits.disk_room(next(there))
    return None


def _files_of(spool: Path) -> list[Path]:
    return [Path(folder, name) for folder, _, names in os.walk(spool) for name in names]


def _size_of(file: Path) -> int:
    try:
        return file.lstat().st_size
    except OSError:  # its record was committed meanwhile
        return 0
