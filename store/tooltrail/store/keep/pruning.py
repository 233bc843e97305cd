"""Pruning: deletes the objects of an artifact root that no record refers to.

A crash can leave such objects: an artifact is published before the commit that refers to it. Both
happen under the ingest lock. Pruning holds this lock exclusively, so that an unreferenced object
stays unreferenced. Recorders do not wait for the lock: they append to journals.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import UUID

from tooltrail.artifacts import ObjectStat
from tooltrail.artifacts.archive import DAMAGED
from tooltrail.artifacts.leftovers import iter_leftovers, remove_leftover
from tooltrail.journal.clock import new_id, now
from tooltrail.records.errors import InvalidRecordError, MissingArtifactError, UnavailableError
from tooltrail.store.engines.database import Database
from tooltrail.store.keep.maintenance import (
    Amount,
    Progress,
    append_account,
    is_artifact,
    with_references,
)
from tooltrail.store.locking import ingest_lock
from tooltrail.store.marks import refuse_other_roots
from tooltrail.store.roots import MARK_PREFIX

if TYPE_CHECKING:
    from tooltrail.store.store import Store

_DIGEST: Final = re.compile(rb"sha256:([0-9a-f]{64})")

DEFAULT_GRACE: Final = timedelta(hours=24)
"""Default age below which an object is kept, so that people can examine it."""


@dataclass(slots=True)
class PruningPlan:
    """The contents of an artifact root, and the objects to prune.

    Attributes:
        grace: age below which an object is kept.
        unreferenced: objects that no record refers to, older than the grace.
        leftovers: parts of objects that were never finished, older than the grace.
        referenced: objects that records refer to.
        young: objects that no record refers to, and parts, younger than the grace.
        damaged: damaged objects that were moved to a separate folder as evidence.
        foreign: files that Tooltrail did not make.
    """

    root: str
    grace: timedelta
    unreferenced: list[ObjectStat] = field(default_factory=list[ObjectStat])
    leftovers: list[ObjectStat] = field(default_factory=list[ObjectStat])
    referenced: Amount = field(default_factory=Amount)
    young: Amount = field(default_factory=Amount)
    damaged: Amount = field(default_factory=Amount)
    foreign: Amount = field(default_factory=Amount)

    @property
    def total(self) -> Amount:
        """Everything that would be deleted."""
        return total_of([*self.unreferenced, *self.leftovers])


@dataclass(slots=True)
class PruningReport:
    """The result of a run.

    Attributes:
        run_id: id of its maintenance fact.
        unreferenced: objects that were deleted.
        leftovers: parts that were deleted.
    """

    run_id: UUID
    unreferenced: Amount = field(default_factory=Amount)
    leftovers: Amount = field(default_factory=Amount)

    @property
    def total(self) -> Amount:
        """Everything that was deleted."""
        return self.unreferenced + self.leftovers


def total_of(stats: Sequence[ObjectStat]) -> Amount:
    """The amount of some objects."""
    return Amount(len(stats), sum(stat.stored_size for stat in stats))


def plan_pruning(
    store: "Store", grace: timedelta = DEFAULT_GRACE, *, on_progress: Progress | None = None
) -> PruningPlan:
    """Check every object of a store and list the objects to prune. Deletes nothing.

    Ingests the facts of the journal first, like every reader: they may refer to objects. Reads the
    names of all objects and looks up each in the database. Holds the objects to prune in memory.

    Args:
        store: the store.
        grace: age below which an object is kept; not negative.
        on_progress: see `Progress`.

    Raises:
        InvalidRecordError: the artifact root does not have the mark of this store only, or none of
            the artifacts of the store are in it.
        UnavailableError: the database or the root cannot be read, or facts cannot be ingested.
        DamageError: facts cannot be ingested, because the journal or its row is damaged.
    """
    _ = store.reader
    if store.lag is not None:
        raise store.lag
    store_id, sink = store.info.id, store.archive.sink
    refuse_other_roots(sink, store_id)
    plan = PruningPlan(sink.url, grace)
    planned_at, seen = now(), Amount()
    with store.database.read() as connection:
        ((known,),) = connection.query("SELECT count(*) FROM artifacts")
    for stat, is_referenced in _with_references(store.database, sink.list()):
        is_old = planned_at - stat.modified_at >= grace
        _sort_in(plan, stat, is_referenced=is_referenced, is_old=is_old)
        seen.add(stat.stored_size)
        if on_progress:
            on_progress(seen.count, seen.stored_bytes)
    for part in iter_leftovers(sink):
        if planned_at - part.modified_at >= grace:
            plan.leftovers.append(part)
        else:
            plan.young.add(part.stored_size)
    if known and not plan.referenced.count and (plan.unreferenced or plan.leftovers):
        # If all known artifacts are gone, the unreferenced ones may be the only copies left.
        raise InvalidRecordError(
            f"none of the {known:,} artifacts that the store refers to is in {plan.root}: "
            "all of them are lost, or this database is not the store's newest"
        )
    return plan


def _with_references(
    database: Database, stats: Iterable[ObjectStat]
) -> Iterator[tuple[ObjectStat, bool]]:
    """Like `with_references`. A rejected fact is evidence, and so is its output."""
    key, evidence = 0, set[bytes]()
    with database.read() as connection:
        # One at a time: a rejected fact may have many megabytes.
        sql = "SELECT key, data FROM rejected_facts WHERE key > ? ORDER BY key LIMIT 1"
        while row := connection.query_one(sql, (key,)):
            key = row[0]
            evidence.update(_DIGEST.findall(row[1]))
    for stat, is_named in with_references(database, stats):
        yield stat, is_named or Path(stat.path).stem.encode() in evidence


def _sort_in(plan: PruningPlan, stat: ObjectStat, *, is_referenced: bool, is_old: bool) -> None:
    if is_referenced:
        plan.referenced.add(stat.stored_size)
    elif stat.path.startswith(f"{DAMAGED}/"):
        plan.damaged.add(stat.stored_size)
    elif stat.path.startswith(MARK_PREFIX):
        return
    elif not is_artifact(stat.path):
        plan.foreign.add(stat.stored_size)
    elif is_old:
        plan.unreferenced.append(stat)
    else:
        plan.young.add(stat.stored_size)


def prune(
    store: "Store", plan: PruningPlan, *, on_progress: Progress | None = None
) -> PruningReport:
    """Delete the objects of a plan, unless a record refers to them by now.

    Safe beside any number of recorders, ingesters, readers and other runs; ingesters wait. If a run
    deleted anything, it ends with a fact in the journal that counts the objects, even if it failed
    or was interrupted. A killed run leaves no fact.

    Raises:
        UnavailableError: the store, the root or the journal cannot be written, or the artifacts
            were moved since the plan was made.
    """
    report = PruningReport(new_id())
    with ingest_lock(store.database, exclusive=True) as confirm:
        if plan.root != store.archive.sink.url:
            raise UnavailableError(f"the artifacts were moved from {plan.root}; plan anew")
        try:
            for _ in _deletions(store, plan, report, confirm):
                if on_progress:
                    done = report.total
                    on_progress(done.count, done.stored_bytes)
        finally:
            if report.total.count:
                details = {
                    "root": plan.root,
                    "grace_s": int(plan.grace.total_seconds()),
                    "unreferenced_count": report.unreferenced.count,
                    "unreferenced_bytes": report.unreferenced.stored_bytes,
                    "unfinished_count": report.leftovers.count,
                    "unfinished_bytes": report.leftovers.stored_bytes,
                }
                append_account(store.spool, report.run_id, "gc", details)
    return report


def _deletions(
    store: "Store", plan: PruningPlan, report: PruningReport, confirm: Callable[[], None]
) -> Iterator[None]:
    """Delete one object after the other. Yields after each."""
    sink = store.archive.sink
    for stat, is_referenced in _with_references(store.database, plan.unreferenced):
        if not is_referenced:
            confirm()
            with suppress(MissingArtifactError):
                sink.delete(stat.path)
                report.unreferenced.add(stat.stored_size)
            yield
    for stat in plan.leftovers:
        confirm()
        if remove_leftover(sink, stat.path):
            report.leftovers.add(stat.stored_size)
        yield
