"""Ends the records of invocations whose process was killed, with all of their output that is left.

Whole frames of the spool are published and then committed, and only then does the folder go: a
repair can itself be killed at any moment, and the next one goes on. It acts on folders of this
spool alone, of processes that are gone (see `tooltrail.artifacts.SpoolOwner`): an invocation
that is `started` and is not in it runs on another machine or with another spool, or its
process could make none. Nobody can tell these apart from here, so they are counted and left.

What cannot be put into the store is never deleted: it moves to `kept/<invocation id>/`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal
from uuid import UUID

from tooltrail.artifacts import (
    SpoolFolder,
    exclusive_spool,
    is_spooled,
    iter_spool_folders,
    remove_dead_owners,
    remove_spool_folder,
    spooled_streams,
)
from tooltrail.records import InvocationFinishedError, TooltrailError, UnavailableError
from tooltrail.store._clock import now
from tooltrail.store._maintenance import record_finished_run
from tooltrail.store._postponed import is_stored
from tooltrail.store._spooled import (
    KnownInvocation,
    SpoolFile,
    find_known,
    find_known_for_sure,
    interrupt,
    known_ids,
    look_at,
    remove_staging,
    started_ids,
    store_waiting,
)
from tooltrail.store.store import Store

KEPT = "kept"
"""Folder of the spool for files that could not be stored as they are."""

_ASIDE = "aside-"

RepairOutcome = Literal["interrupted", "cleared", "stored", "kept", "running", "unknown", "failed"]


@dataclass(frozen=True, slots=True)
class RepairedFolder:
    """What became of one invocation in the spool, or in a dry run would.

    Attributes:
        invocation_id: of the invocation.
        outcome: `interrupted`: its record was ended, with the output that is left. `cleared`: all
            that was in it is in the store already, or the call never began; it was removed.
            `kept`: the same, but for files that are not in the store, and were moved. `stored`:
            its record had ended while the artifact sink was away, and its output, which had
            waited, is stored now. `running`: its process lives. `unknown`: this store has no such
            invocation. `failed`: it could not be repaired now and is as it was.
        recovered_bytes: plain bytes that were put into the store.
        lost_bytes: plain bytes, at the least, of frames that cannot be decoded.
        reason: one sentence where there is something to say, else empty.
    """

    invocation_id: UUID
    outcome: RepairOutcome
    recovered_bytes: int = 0
    lost_bytes: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What a repair did, or in a dry run would do.

    Attributes:
        folders: every invocation of this store in the spool, the oldest first.
        elsewhere_count: invocations that have not ended and are not in this spool.
        aside_count: records that no store could take, which wait in this spool.
    """

    folders: tuple[RepairedFolder, ...]
    elsewhere_count: int
    aside_count: int


def recoverable(store: Store) -> list[UUID]:
    """The invocations that `repair` would do something about, the oldest first.

    Lists the spool and asks for the locks of its owners; the database only when one of them is
    gone.

    Raises:
        UnavailableError: the spool or the store cannot be read.
    """
    dead = [f.invocation_id for f in iter_spool_folders(store.spool) if _may_be_repaired(f, store)]
    known = set(known_ids(store, dead))
    return [invocation_id for invocation_id in dead if invocation_id in known]


def repair(store: Store, *, dry_run: bool = False) -> RepairReport:
    """End the records of all invocations of this spool whose process is gone.

    Idempotent. Of several repairs of one spool one works and the others wait. Running invocations
    are left alone, and so is whatever another store shares this spool with. A folder that cannot
    be repaired does not keep the others from it. On a full disk it uses the room that is held back
    there; what needs more is as it was, and can be repaired later.

    Args:
        store: whose spool it is.
        dry_run: look, and change nothing.

    Raises:
        UnavailableError: the spool cannot be read or the store not be asked.
    """
    if not store.spool.is_dir():
        return RepairReport((), len(started_ids(store)), 0)
    began_at = now()
    if not dry_run and store.reserve.is_needed():
        store.make_room()
    with exclusive_spool(store.spool):
        if not dry_run:
            remove_staging(store.spool)
        folders = list(iter_spool_folders(store.spool))
        # Asked for after the folders: an invocation is in its spool before it is started.
        started = started_ids(store)
        found = [one for folder in folders if (one := _visit(store, folder, dry_run=dry_run))]
        if not dry_run:
            remove_dead_owners(store.spool)
        elsewhere = started - {folder.invocation_id for folder in folders}
        asides = sum(1 for entry in store.spool.iterdir() if entry.name.startswith(_ASIDE))
    report = RepairReport(tuple(found), len(elsewhere), asides)
    if not dry_run:
        _leave_account(store, began_at, report)
        store.reserve.hold()
    return report


def _leave_account(store: Store, began_at: datetime, report: RepairReport) -> None:
    """A row for a repair that has done something; it comes last, so that a killed one has none."""
    done = [one for one in report.folders if one.outcome not in ("running", "unknown", "failed")]
    if not done:
        return
    record_finished_run(
        store.database,
        "repair",
        began_at,
        object_count=len(done),
        stored_bytes=sum(one.recovered_bytes for one in done),
        report={
            "folders": [
                {
                    "invocation_id": str(one.invocation_id),
                    "outcome": one.outcome,
                    "recovered_bytes": one.recovered_bytes,
                    "lost_bytes": one.lost_bytes,
                }
                for one in done
            ]
        },
    )


def _may_be_repaired(folder: SpoolFolder, store: Store) -> bool:
    return not folder.is_running and folder.store_id in (None, str(store.info.id))


def _visit(store: Store, folder: SpoolFolder, *, dry_run: bool) -> RepairedFolder | None:
    """None for a folder of another store."""
    name = folder.invocation_id
    try:
        if folder.is_running:
            is_ours = folder.store_id == str(store.info.id)
            return RepairedFolder(name, "running") if is_ours else None
        with store.database.read() as connection:
            known = find_known(connection, name)
        if known is None:
            return _never_begun(store, folder, dry_run=dry_run)
        if known.state == "started":
            return _interrupt(store, known, folder.path, dry_run=dry_run)
        return _clear(store, known, folder.path, dry_run=dry_run)
    except TooltrailError as error:
        return RepairedFolder(name, "failed", reason=str(error))


def _never_begun(store: Store, folder: SpoolFolder, *, dry_run: bool) -> RepairedFolder | None:
    if folder.store_id not in (None, str(store.info.id)):
        return None
    name = folder.invocation_id
    if spooled_streams(folder.path):
        return RepairedFolder(name, "unknown", reason=f"this store does not know {folder.path}")
    if not dry_run:
        if folder.store_id is not None and find_known_for_sure(store, name) is not None:
            # Its commit came through after all.
            return _visit(store, folder, dry_run=dry_run)
        _put_away(folder.path, ())
    return RepairedFolder(name, "cleared", reason="it never began")


def _interrupt(
    store: Store, known: KnownInvocation, folder: Path, *, dry_run: bool
) -> RepairedFolder:
    if dry_run:
        return _interrupted(known, [look_at(*file) for file in spooled_streams(folder).items()])
    try:
        files = interrupt(store, known, folder)
    except InvocationFinishedError:
        # Its commit came through after all.
        return _clear(store, known, folder, dry_run=dry_run)
    _put_away(folder, [file.path for file in files if file.problem])
    return _interrupted(known, files)


def _interrupted(known: KnownInvocation, files: Sequence[SpoolFile]) -> RepairedFolder:
    problems = [file.problem for file in files if file.problem]
    return RepairedFolder(
        known.id,
        "interrupted",
        recovered_bytes=sum(file.size for file in files if file.role != "order"),
        lost_bytes=sum(file.lost_size for file in files if file.role != "order"),
        reason="; ".join(problems),
    )


def _clear(store: Store, known: KnownInvocation, folder: Path, *, dry_run: bool) -> RepairedFolder:
    files = [look_at(*file) for file in spooled_streams(folder).items()]
    streams = store.reader.invocation(known.id).streams
    stored = {(stream.role, stream.digest) for stream in streams if is_stored(store, stream)}
    expected = {(s.role, s.digest) for s in streams if s.postponed_reason is not None} - stored
    waiting = [f for f in files if (f.role, f.digest) in expected]
    if waiting and not dry_run:
        store_waiting(store, known, waiting)
    stored |= {(file.role, file.digest) for file in waiting}
    kept = [f for f in files if f.problem or (f.size and (f.role, f.digest) not in stored)]
    if not dry_run:
        _put_away(folder, [file.path for file in kept])
    if waiting and not kept:
        size = sum(file.size for file in waiting if file.role != "order")
        return RepairedFolder(known.id, "stored", size, reason="the artifact sink had been away")
    if not kept:
        return RepairedFolder(known.id, "cleared", reason="its record had ended already")
    roles = ", ".join(file.role for file in kept)
    return RepairedFolder(known.id, "kept", reason=f"not in the store: {roles}")


def _put_away(folder: Path, kept: Iterable[Path]) -> None:
    """Move some files of a folder aside and delete the rest of it."""
    try:
        for file in kept:
            target = folder.parent / KEPT / folder.name / file.relative_to(folder)
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file.replace(target)
    except OSError as error:
        raise UnavailableError(f"{folder} cannot be put away: {error.strerror}") from error
    remove_spool_folder(folder)
    if is_spooled(folder):
        raise UnavailableError(f"{folder} cannot be removed")
