"""What is not settled: running, killed, or with something that waits in a spool.

Each invocation is counted once, by what became of it.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import select

from tooltrail.artifacts import (
    SpoolFolder,
    is_spool,
    is_spooled,
    is_stream_spooled,
    iter_spool_folders,
    spooled_streams,
)
from tooltrail.records import UnavailableError
from tooltrail.store._recording.answer_journal import iter_answers
from tooltrail.store._repairing.asides import iter_asides_for
from tooltrail.store._repairing.spooled import started_ids
from tooltrail.store.asides import AsideFolder, distinct_spools
from tooltrail.store.backlog import waiting_ids
from tooltrail.store.store import Store
from tooltrail.store.tables import ArtifactRow, InvocationRow, OutputStreamRow

_MANY = 500
"""Ids in one query."""


@dataclass(frozen=True, slots=True)
class Repairable:
    """What `repair` would do something about: each invocation once, the oldest first.

    Attributes:
        killed: they have not ended, and their program is gone; those whose end waits in the outbox
            are not among them.
        waiting: they have ended, and output of theirs waits in the spool.
        leftover: they have ended, and nothing waits; only their folder is there still.
        set_aside: records whose program is gone or has ended them, and whose end is in no store
            yet; nor is their start, unless it was recorded and nobody said so.
        answers: messages, of answers that had not ended when their program did.
    """

    killed: tuple[UUID, ...] = ()
    waiting: tuple[UUID, ...] = ()
    leftover: tuple[UUID, ...] = ()
    set_aside: tuple[UUID, ...] = ()
    answers: tuple[UUID, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is anything to repair."""
        return any((self.killed, self.waiting, self.leftover, self.set_aside, self.answers))


@dataclass(frozen=True, slots=True)
class Unended:
    """How many invocations are open, or have output in the spool, and are nothing to repair here.

    Attributes:
        running: their program lives.
        elsewhere: in none of the spools that were looked into: they run with another spool or on
            another machine, or were killed there.
        unknown: their program is gone and there is output of theirs in the spool, but the store
            has no such invocation.
    """

    running: int
    elsewhere: int
    unknown: int


def find_repairable(store: Store, *, also: Sequence[Path] = ()) -> Repairable:
    """What `repair` would do something about.

    Lists the spools and asks for the locks of their owners; the database only when one is gone.

    Args:
        store: whose spool it is.
        also: as for `repair`.

    Raises:
        UnavailableError: a spool or the store cannot be read.
    """
    spools = _spools(store, also)
    dead = {folder.invocation_id for folder in _folders(store) if not folder.is_running}
    aside = {one.id for one in iter_asides_for(store, spools) if not one.is_running}
    # After they were found to be gone: what they have put into the outbox is seen then.
    kept = _waiting(store, also) if dead else frozenset[UUID]()
    states = dict(_states(store, sorted(dead | aside)))
    ended = sorted(name for name, state in states.items() if state != "started")
    waiting = {name for name, role in _postponed(store, ended) if _is_in(store.spool, name, role)}
    return Repairable(
        killed=tuple(sorted(n for n in dead - aside - kept if states.get(n) == "started")),
        waiting=tuple(name for name in ended if name in waiting),
        leftover=tuple(n for n in ended if n not in waiting and (n in aside or _is_left(store, n))),
        set_aside=tuple(sorted(aside.difference(ended))),
        answers=tuple(_answers(store, spools)),
    )


class Open(NamedTuple):
    """The invocations of a store that have not ended, and what is in spools of this machine.

    Attributes:
        folders: of the spool of the store, the oldest first.
        asides: records that were set aside for the store, in any of the spools.
        started: the invocations that have not ended.
        elsewhere: those of them that are in none of the spools, nor in an outbox there.
    """

    folders: tuple[SpoolFolder, ...]
    asides: tuple[AsideFolder, ...]
    started: frozenset[UUID]
    elsewhere: frozenset[UUID]


def find_open(store: Store, *, also: Sequence[Path] = ()) -> Open:
    """What is open, wherever it runs.

    Raises:
        UnavailableError: a spool or the store cannot be read.
    """
    spools = _spools(store, also)
    # In this order: an invocation is in its spool before it is started, and set aside before it
    # leaves the spool for that. So what is started all the while is in what was looked into.
    before = started_ids(store)
    folders = tuple(_listed(store.spool))
    asides = tuple(iter_asides_for(store, spools))
    kept = _waiting(store, also)
    started = started_ids(store)
    here = {folder.invocation_id for folder in folders} | {aside.id for aside in asides} | kept
    return Open(folders, asides, frozenset(started), frozenset((before & started) - here))


def find_unended(store: Store, *, also: Sequence[Path] = ()) -> Unended:
    """What has not ended and was not killed with this spool, and what nobody began.

    Args:
        store: whose spool it is.
        also: as for `repair`.

    Raises:
        UnavailableError: a spool or the store cannot be read.
    """
    found = find_open(store, also=also)
    folders = [folder for folder in found.folders if _may_be_of(store, folder)]
    here = {folder.invocation_id for folder in folders}
    running = {folder.invocation_id for folder in folders if folder.is_running}
    kept = _waiting(store, also) if here - running else frozenset[UUID]()
    known = dict(_states(store, sorted(here - running)))
    expected = running | known.keys() | kept
    unknown = [
        folder
        for folder in folders
        if folder.invocation_id not in expected and spooled_streams(folder.path)
    ]
    running.update(aside.id for aside in found.asides if aside.is_running)
    return Unended(len(running & found.started), len(found.elsewhere), len(unknown))


def _answers(store: Store, spools: Sequence[Path]) -> Iterator[UUID]:
    """Messages of cut-off answers; also of those whose file nobody can read."""
    for answer in (one for spool in spools for one in iter_answers(spool)):
        if not answer.is_running and answer.may_be_of(store.info.id):
            yield answer.id


def _waiting(store: Store, also: Sequence[Path]) -> frozenset[UUID]:
    """What waits in the outboxes, as far as these can be read."""
    with suppress(UnavailableError):
        return waiting_ids(store, also=also)
    return frozenset()


def _spools(store: Store, also: Sequence[Path]) -> list[Path]:
    """Those that are there."""
    return [spool for spool in distinct_spools(store.spool, *also) if is_spool(spool)]


def _folders(store: Store) -> Iterator[SpoolFolder]:
    """What is in the spool and may be of this store."""
    return (folder for folder in _listed(store.spool) if _may_be_of(store, folder))


def _listed(spool: Path) -> Iterator[SpoolFolder]:
    return iter_spool_folders(spool) if is_spool(spool) else iter(())


def _may_be_of(store: Store, folder: SpoolFolder) -> bool:
    return folder.store_id in (None, str(store.info.id))


def _states(store: Store, ids: Sequence[UUID]) -> Iterator[tuple[UUID, str]]:
    """The states of those that the store knows."""
    for some in _in_parts(ids):
        query = select(InvocationRow.id, InvocationRow.state).where(InvocationRow.id.in_(some))
        with store.database.read() as connection:
            yield from ((row.id, row.state) for row in connection.execute(query).all())


def _postponed(store: Store, ids: Sequence[UUID]) -> Iterator[tuple[UUID, str]]:
    """Invocation and role of the streams that are not stored yet."""
    for some in _in_parts(ids):
        query = (
            select(InvocationRow.id, OutputStreamRow.role)
            .join(OutputStreamRow, OutputStreamRow.invocation_key == InvocationRow.key)
            .where(
                InvocationRow.id.in_(some),
                OutputStreamRow.postponed_reason.is_not(None),
                OutputStreamRow.digest.not_in(select(ArtifactRow.digest)),
            )
        )
        with store.database.read() as connection:
            yield from ((row.id, row.role) for row in connection.execute(query).all())


def _is_left(store: Store, name: UUID) -> bool:
    """Whether its folder is still in the spool; a repair may have cleared it meanwhile."""
    return is_spooled(store.spool / str(name))


def _is_in(spool: Path, name: UUID, role: str) -> bool:
    return is_stream_spooled(spool / str(name), role)


def _in_parts(ids: Sequence[UUID]) -> Iterator[Sequence[UUID]]:
    return (ids[start : start + _MANY] for start in range(0, len(ids), _MANY))
