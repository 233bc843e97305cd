"""What waits in the spools of this machine until `repair` brings it into a store."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, get_args
from uuid import UUID

from tooltrail.artifacts import spooled_streams
from tooltrail.artifacts.spool_owner import names_in
from tooltrail.records import InvalidRecordError, UnavailableError
from tooltrail.store._repairing.taking_in import is_for
from tooltrail.store.asides import AsideFolder, AsideRecord, distinct_spools, iter_asides
from tooltrail.store.spools import KEPT_FOLDER
from tooltrail.store.store import Store

AsideState = Literal["ready", "unfinished", "running", "foreign", "unreadable"]
ASIDE_STATES: tuple[AsideState, ...] = get_args(AsideState)


@dataclass(frozen=True, slots=True)
class SetAside:
    """One record that no store could take.

    Attributes:
        invocation_id: of the invocation.
        state: `ready`: it is whole. `unfinished`: its program was killed before it ended.
            `running`: its program lives. `foreign`: it is for another store. `unreadable`: it was
            cut or altered, and nobody knows for which store it is.
        started_at: when the tool was started; None when that cannot be read.
        database: which store it is for; None when that cannot be read.
        path: of its folder.
    """

    invocation_id: UUID
    state: AsideState
    started_at: datetime | None
    database: str | None
    path: Path


def set_aside(store: Store, *, also: Sequence[Path] = ()) -> list[SetAside]:
    """The records that were set aside in a store's spool and in others, the oldest first.

    Args:
        store: whose spool it is.
        also: as for `repair`.

    Raises:
        UnavailableError: a spool cannot be read.
    """
    spools = distinct_spools(store.spool, *also)
    found = [_described(store, aside) for spool in spools for aside in iter_asides(spool)]
    return sorted((one for one in found if one is not None), key=lambda one: one.invocation_id)


def kept_folders(store: Store, *, also: Sequence[Path] = ()) -> list[Path]:
    """The folders, one for each invocation, of files that repairs have put away in spools.

    They are not in a store as they are; see `RepairedFolder.kept_in`.

    Args:
        store: whose spool it is.
        also: as for `repair`.

    Raises:
        UnavailableError: a spool cannot be read.
    """
    places = [spool / KEPT_FOLDER for spool in distinct_spools(store.spool, *also)]
    return [kept / name for kept in places for name in sorted(names_in(kept))]


def _described(store: Store, aside: AsideFolder) -> SetAside | None:
    """None for one that never began, or is about to."""
    try:
        record = aside.read()
        if record is None and not spooled_streams(aside.path):
            return None
    except (InvalidRecordError, UnavailableError):
        record = None
    if record is None:
        return SetAside(aside.id, "unreadable", None, None, aside.path)
    wanted = record.store.database
    return SetAside(aside.id, _state(store, aside, record), record.started_at, wanted, aside.path)


def _state(store: Store, aside: AsideFolder, record: AsideRecord) -> AsideState:
    if not is_for(store, record):
        return "foreign"
    if aside.is_running:
        return "running"
    return "unfinished" if record.complete_output is None else "ready"
