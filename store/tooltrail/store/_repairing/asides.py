"""Takes what was set aside for a store into it, folder by folder."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from uuid import UUID

from tooltrail.artifacts import exclusive_spool, is_spool, remove_dead_owners, spooled_streams
from tooltrail.records import (
    InvalidRecordError,
    InvocationFinishedError,
    NotFoundError,
    TooltrailError,
    UnavailableError,
)
from tooltrail.records.canonical_json import encode
from tooltrail.store._outbox.known_invocations import KnownInvocation, find_known_invocation
from tooltrail.store._repairing.repaired import RepairedFolder, as_interrupted, clear, put_away
from tooltrail.store._repairing.spooled import remove_staging
from tooltrail.store._repairing.taking_in import (
    StartedMeanwhileError,
    is_for,
    look_into,
    refuse_another,
    take_in,
)
from tooltrail.store.asides import RECORD_FILE, AsideFolder, AsideRecord, iter_asides
from tooltrail.store.store import Store


def repair_asides(store: Store, spool: Path, *, dry_run: bool) -> list[RepairedFolder]:
    """Take in what was set aside in a spool for this store; see `repair`.

    Raises:
        UnavailableError: the spool cannot be read.
    """
    if not is_spool(spool):
        return []
    with exclusive_spool(spool):
        if not dry_run:
            remove_staging(spool)
        found = [_visit_aside(store, aside, dry_run=dry_run) for aside in iter_asides(spool)]
        if not dry_run:
            remove_dead_owners(spool)
    return [one for one in found if one is not None]


def iter_asides_for(store: Store, spools: Iterable[Path]) -> Iterator[AsideFolder]:
    """Every record in some spools that is for this store and can be read, running ones too.

    Raises:
        UnavailableError: a spool cannot be read.
    """
    for aside in chain.from_iterable(map(iter_asides, spools)):
        with suppress(InvalidRecordError, UnavailableError):
            record = aside.read()
            if record is not None and is_for(store, record):
                yield aside


def _visit_aside(store: Store, aside: AsideFolder, *, dry_run: bool) -> RepairedFolder | None:
    """None for one that is about to begin."""
    name = aside.id
    try:
        record = aside.read()
        if record is None:
            return _without_record(store, aside, dry_run=dry_run)
        if not is_for(store, record):
            return RepairedFolder(name, "foreign", reason=f"it is for {record.store}")
        if aside.is_running:
            return RepairedFolder(name, "running")
        return _taken_in(store, record, aside, dry_run=dry_run)
    except (InvalidRecordError, NotFoundError) as error:
        return RepairedFolder(name, "unreadable", reason=f"{error}; left in {aside.path}")
    except TooltrailError as error:
        return RepairedFolder(name, "failed", reason=str(error))


def _without_record(store: Store, aside: AsideFolder, *, dry_run: bool) -> RepairedFolder | None:
    if aside.is_running:
        return None
    known = _known(store, aside.id)
    if known is not None and known.state != "started":
        # A repair was killed after it had recorded it, while it deleted the folder.
        return clear(store, known, aside.path, dry_run=dry_run)
    if spooled_streams(aside.path):
        reason = f"it has output and no record; left in {aside.path}"
        return RepairedFolder(aside.id, "unreadable", reason=reason)
    if not dry_run:
        put_away(aside.path, ())
    return RepairedFolder(aside.id, "cleared", reason="it never began")


def _taken_in(
    store: Store, record: AsideRecord, aside: AsideFolder, *, dry_run: bool
) -> RepairedFolder:
    known = _known(store, record.id)
    if known is not None and known.state != "started":
        # It comes last, so that whoever is killed in between leaves a folder that has one.
        untold = [] if _is_told(store, record) else [aside.path / RECORD_FILE]
        return clear(store, known, aside.path, dry_run=dry_run, untold=untold)
    note = ""
    if dry_run:
        if known is not None:
            refuse_another(record, known)
        files = look_into(record, aside)
    else:
        try:
            files, note = take_in(store, record, aside, known)
        except (InvocationFinishedError, StartedMeanwhileError):
            # Another repair was quicker, or the commit of its start comes through only now.
            return _taken_in(store, record, aside, dry_run=dry_run)
        put_away(aside.path, [file.path for file in files if file.problem])
    one = as_interrupted(record.id, files)
    one = replace(one, reason="; ".join(filter(None, (one.reason, note))))
    if record.complete_output is None:
        return one
    return replace(one, outcome="recorded", lost_bytes=0)


def _known(store: Store, name: UUID) -> KnownInvocation | None:
    with store.database.read() as connection:
        return find_known_invocation(connection, name)


def _is_told(store: Store, record: AsideRecord) -> bool:
    """Whether the store has the call that a record tells of, and the end if it tells of one.

    Raises:
        DamageError, UnavailableError: the store cannot be asked, or what it has is damaged.
    """
    stored = store.reader.invocation(record.id)
    call = (stored.summary.tool_name, stored.summary.family, stored.arguments)
    if call != (record.call.tool_name, record.family, record.call.arguments_bytes):
        return False
    if record.complete_output is None:
        return True
    return (stored.complete_json or "").encode() == encode(record.complete_output)
