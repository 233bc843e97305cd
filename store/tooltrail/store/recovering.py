"""Ends the records of invocations whose process was killed, with all of their output that is left.

Whole frames of the spool are published and then committed, and only then does the folder go: a
repair can itself be killed at any moment, and the next one goes on. It acts on folders of this
spool alone, of processes that are gone (see `tooltrail.artifacts.SpoolOwner`): an invocation
that is `started` and is not in it runs on another machine or with another spool, or its
process could make none. Nobody can tell these apart from here, so they are counted and left.

What cannot be put into the store is never deleted: it moves to `kept/<invocation id>/`, and what
was set aside to `kept/aside-<invocation id>/`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import UUID

from tooltrail.artifacts import (
    SpoolFolder,
    exclusive_spool,
    is_spool,
    remove_dead_owners,
    spooled_streams,
)
from tooltrail.journal.clock import now
from tooltrail.records import InvocationFinishedError, TooltrailError, UnavailableError
from tooltrail.store._outbox.delivering import Delivery, deliver
from tooltrail.store._outbox.known_invocations import (
    KnownInvocation,
    find_known_invocation,
    find_known_invocation_for_sure,
)
from tooltrail.store._repairing.answers import CutOffAnswer, take_in_answers
from tooltrail.store._repairing.asides import repair_asides
from tooltrail.store._repairing.repaired import RepairedFolder, as_interrupted, clear, put_away
from tooltrail.store._repairing.spooled import interrupt, look_at, remove_staging
from tooltrail.store._roots.maintenance import record_finished_run
from tooltrail.store.asides import distinct_spools
from tooltrail.store.backlog import find_backlog, find_foreign, find_outboxes, waiting_ids
from tooltrail.store.store import Store
from tooltrail.store.unsettled import find_open

_NOTHING_DONE = ("running", "waiting", "unknown", "foreign", "unreadable", "failed")


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What a repair did, or in a dry run would do.

    Attributes:
        folders: every invocation of this store in the spool, the oldest first, and after them each
            record that was set aside, for other stores too.
        elsewhere_count: invocations that have not ended and are in none of the spools.
        outbox: what became of the records that waited in outboxes.
        answers: those of models that were cut off by the end of their program; what had come of
            them is recorded, by way of the outbox.
    """

    folders: tuple[RepairedFolder, ...]
    elsewhere_count: int
    outbox: Delivery = field(default_factory=Delivery)
    answers: tuple[CutOffAnswer, ...] = ()


def repair(
    store: Store, *, dry_run: bool = False, also: Sequence[Path] = (), retry_kept: bool = False
) -> RepairReport:
    """End the records of all invocations of this spool whose process is gone.

    Records that were set aside or put into the outbox while this store was away are taken into it,
    those of the outbox first, and what had come of a model's answer.

    Idempotent. Of several repairs of one spool one works and the others wait. Running invocations
    are left alone, and so is whatever another store shares this spool with. A folder that cannot
    be repaired does not keep the others from it. On a full disk it uses the room that is held back
    there; what needs more is as it was, and can be repaired later.

    Args:
        store: whose spool it is.
        dry_run: look, and change nothing.
        also: other spools in which records may have been set aside or wait in the outbox, or in
            which answers were cut off; nothing else there is touched.
        retry_kept: deliver behind what waits what could not be delivered before, and can be read;
            nothing in a dry run.

    Raises:
        UnavailableError: the spool cannot be read or the store not be asked.
    """
    began_at = now()
    store.confirm()
    if not dry_run and store.reserve.is_needed():
        store.make_room()
    answers = take_in_answers(store, also, dry_run=dry_run)
    # The sessions of what was set aside may be among them.
    busy = _retry_kept(store, also) if retry_kept and not dry_run else ""
    outbox = _drain(store, also, dry_run=dry_run)
    outbox.failure = outbox.failure or busy
    # First, since one of these can be the end of what is started in the spool.
    asides: list[RepairedFolder] = []
    for spool in distinct_spools(store.spool, *also):
        asides += repair_asides(store, spool, dry_run=dry_run)
    found, elsewhere_count = _repair_folders(store, also, dry_run=dry_run)
    report = RepairReport((*found, *asides), elsewhere_count, outbox, tuple(answers))
    if not dry_run:
        _leave_account(store, began_at, report)
        store.reserve.hold()
    return report


def _drain(store: Store, also: Sequence[Path], *, dry_run: bool) -> Delivery:
    """Deliver what waits in all outboxes of the store, or count it."""
    whole = Delivery()
    outboxes = find_outboxes(store, also=also)
    for outbox in () if dry_run else outboxes:
        done = deliver(store, outbox, others=outboxes)
        whole.add(done)
        whole.kept += done.kept
        whole.failure = whole.failure or done.failure
    whole.notes += _foreign_notes(store, also)
    if dry_run or whole.failure:
        try:
            whole.waiting_count = find_backlog(store, also=also).entry_count
        except UnavailableError as error:
            # It keeps nothing else from being repaired.
            whole.failure = whole.failure or str(error)
    return whole


def _retry_kept(store: Store, also: Sequence[Path]) -> str:
    """Why something was not retried now, which keeps nothing else from being repaired; or empty."""
    failure = ""
    for outbox in find_outboxes(store, also=also):
        try:
            outbox.retry_kept()
        except OSError as error:
            folder = outbox.put_away.kept
            raise UnavailableError(f"{folder} cannot be retried: {error.strerror}") from error
        except UnavailableError as error:
            failure = str(error)
    return failure


def _foreign_notes(store: Store, also: Sequence[Path]) -> list[str]:
    """What waits for others, which nobody else may tell of."""
    try:
        return [f"records of the outbox left: {one}" for one in find_foreign(store, also=also)]
    except UnavailableError as error:
        return [str(error)]


def _repair_folders(
    store: Store, also: Sequence[Path], *, dry_run: bool
) -> tuple[list[RepairedFolder], int]:
    if not is_spool(store.spool):
        return [], len(find_open(store, also=also).elsewhere)
    with exclusive_spool(store.spool):
        if not dry_run:
            remove_staging(store.spool)
        opened = find_open(store, also=also)
        waiting = _Waiting(store, also)
        found = [_visit(store, folder, waiting, dry_run=dry_run) for folder in opened.folders]
        if not dry_run:
            remove_dead_owners(store.spool)
    return [one for one in found if one is not None], len(opened.elsewhere)


def _leave_account(store: Store, began_at: datetime, report: RepairReport) -> None:
    """A row for a repair that has done something; it comes last, so that a killed one has none."""
    done = [one for one in report.folders if one.outcome not in _NOTHING_DONE]
    outbox = report.outbox
    answers = [one for one in report.answers if not one.problem]
    if not done and not answers and not outbox.delivered_count and not outbox.kept:
        return
    record_finished_run(
        store.database,
        "repair",
        began_at,
        object_count=len(done) + outbox.delivered_count,
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
            ],
        }
        | _answers_account(answers)
        | _outbox_account(outbox),
    )


def _answers_account(answers: Sequence[CutOffAnswer]) -> dict[str, Any]:
    """What the account of a repair says of cut-off answers, if there were any."""
    told = [{"message_id": str(one.message_id), "byte_count": one.byte_count} for one in answers]
    return {"answers": told} if told else {}


def _outbox_account(outbox: Delivery) -> dict[str, Any]:
    """What the account of a repair says of the outbox, if there was anything in it."""
    if not outbox.delivered_count and not outbox.kept:
        return {}
    kept = [{"reason": one.reason, "kept_in": one.kept_in} for one in outbox.kept]
    counts = {"delivered": outbox.delivered_count, "known": outbox.known_count}
    return {"outbox": {**counts, "kept": kept}}


class _Waiting:
    """What waits in the outboxes, looked for when the first program is found to be gone."""

    def __init__(self, store: Store, also: Sequence[Path]) -> None:
        self._store = store
        self._also = also

    @cached_property
    def _ids(self) -> frozenset[UUID]:
        return waiting_ids(self._store, also=self._also)

    def __contains__(self, invocation_id: UUID) -> bool:
        """Whether the start of an invocation is yet to be delivered, or its end.

        Raises:
            UnavailableError: nobody can tell.
        """
        return invocation_id in self._ids


def _visit(
    store: Store, folder: SpoolFolder, waiting: _Waiting, *, dry_run: bool
) -> RepairedFolder | None:
    """None for a folder of another store."""
    name = folder.invocation_id
    try:
        if folder.is_running:
            is_ours = folder.store_id == str(store.info.id)
            return RepairedFolder(name, "running") if is_ours else None
        known = _known(store, name)
        if known is None or known.state == "started":
            if name in waiting:
                return RepairedFolder(name, "waiting", reason="its record waits in the outbox")
            # It may have been delivered just before it was looked for there.
            known = _known(store, name)
        return _settle(store, folder, known, waiting, dry_run=dry_run)
    except TooltrailError as error:
        return RepairedFolder(name, "failed", reason=str(error))


def _known(store: Store, name: UUID) -> KnownInvocation | None:
    with store.database.read() as connection:
        return find_known_invocation(connection, name)


def _settle(
    store: Store,
    folder: SpoolFolder,
    known: KnownInvocation | None,
    waiting: _Waiting,
    *,
    dry_run: bool,
) -> RepairedFolder | None:
    if known is None:
        return _never_begun(store, folder, waiting, dry_run=dry_run)
    if known.state == "started":
        return _interrupt(store, known, folder.path, dry_run=dry_run)
    return clear(store, known, folder.path, dry_run=dry_run)


def _never_begun(
    store: Store, folder: SpoolFolder, waiting: _Waiting, *, dry_run: bool
) -> RepairedFolder | None:
    if folder.store_id not in (None, str(store.info.id)):
        return None
    name = folder.invocation_id
    if spooled_streams(folder.path):
        return RepairedFolder(name, "unknown", reason=f"this store does not know {folder.path}")
    if not dry_run:
        if folder.store_id is not None and find_known_invocation_for_sure(store, name) is not None:
            # Its commit came through after all.
            return _visit(store, folder, waiting, dry_run=dry_run)
        put_away(folder.path, ())
    return RepairedFolder(name, "cleared", reason="it never began")


def _interrupt(
    store: Store, known: KnownInvocation, folder: Path, *, dry_run: bool
) -> RepairedFolder:
    if dry_run:
        return as_interrupted(
            known.id, [look_at(*file) for file in spooled_streams(folder).items()]
        )
    try:
        files = interrupt(store, known, folder)
    except InvocationFinishedError:
        # Its commit came through after all.
        return clear(store, known, folder, dry_run=dry_run)
    put_away(folder, [file.path for file in files if file.problem])
    return as_interrupted(known.id, files)
