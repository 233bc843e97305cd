"""Takes what was set aside for a store into it, folder by folder."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from tooltrail.artifacts import exclusive_spool, remove_dead_owners, spooled_streams
from tooltrail.records import (
    InvalidRecordError,
    InvocationFinishedError,
    NotFoundError,
    TooltrailError,
    UnavailableError,
)
from tooltrail.store._repaired import RepairedFolder, as_interrupted, clear, put_away
from tooltrail.store._spooled import find_known, remove_staging
from tooltrail.store._taking_in import is_for, look_into, refuse_another, take_in
from tooltrail.store.asides import AsideFolder, AsideRecord, iter_asides
from tooltrail.store.store import Store


def repair_asides(store: Store, spool: Path, *, dry_run: bool) -> list[RepairedFolder]:
    """Take in what was set aside in a spool for this store; see `repair`.

    Raises:
        UnavailableError: the spool cannot be read.
    """
    if not spool.is_dir():
        return []
    with exclusive_spool(spool):
        if not dry_run:
            remove_staging(spool)
        found = [_visit_aside(store, aside, dry_run=dry_run) for aside in iter_asides(spool)]
        if not dry_run:
            remove_dead_owners(spool)
    return [one for one in found if one is not None]


def may_be_taken_in(store: Store, aside: AsideFolder) -> bool:
    """Whether a repair of this store would take it in."""
    if aside.is_running:
        return False
    with suppress(InvalidRecordError, UnavailableError):
        record = aside.read()
        return record is not None and is_for(store, record)
    return False


def _visit_aside(store: Store, aside: AsideFolder, *, dry_run: bool) -> RepairedFolder | None:
    """None for one that is about to begin."""
    name = aside.id
    try:
        record = aside.read()
        if record is None:
            return _without_record(aside, dry_run=dry_run)
        if not is_for(store, record):
            return RepairedFolder(name, "foreign", reason=f"it is for {record.store}")
        if aside.is_running:
            return RepairedFolder(name, "running")
        return _taken_in(store, record, aside, dry_run=dry_run)
    except (InvalidRecordError, NotFoundError) as error:
        return RepairedFolder(name, "unreadable", reason=f"{error}; left in {aside.path}")
    except TooltrailError as error:
        return RepairedFolder(name, "failed", reason=str(error))


def _without_record(aside: AsideFolder, *, dry_run: bool) -> RepairedFolder | None:
    if aside.is_running:
        return None
    if spooled_streams(aside.path):
        reason = f"it has output and no record; left in {aside.path}"
        return RepairedFolder(aside.id, "unreadable", reason=reason)
    if not dry_run:
        put_away(aside.path, ())
    return RepairedFolder(aside.id, "cleared", reason="it never began")


def _taken_in(
    store: Store, record: AsideRecord, aside: AsideFolder, *, dry_run: bool
) -> RepairedFolder:
    with store.database.read() as connection:
        known = find_known(connection, record.id)
    if known is not None and known.state != "started":
        return clear(store, known, aside.path, dry_run=dry_run)
    if known is not None:
        refuse_another(store, record, known)
    note = ""
    if dry_run:
        files = look_into(record, aside)
    else:
        try:
            files, note = take_in(store, record, aside)
        except InvocationFinishedError:
            # Another repair was quicker.
            return _taken_in(store, record, aside, dry_run=dry_run)
        put_away(aside.path, [file.path for file in files if file.problem])
    one = as_interrupted(record.id, files)
    one = replace(one, reason="; ".join(filter(None, (one.reason, note))))
    if record.complete_output is None:
        return one
    return replace(one, outcome="recorded", lost_bytes=0)
