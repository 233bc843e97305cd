"""What lies in an artifact root, sorted by what pruning would do to it. Changes nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from tooltrail.artifacts import ObjectStat
from tooltrail.artifacts.archive import DAMAGED
from tooltrail.artifacts.leftovers import iter_leftovers
from tooltrail.journal.clock import now
from tooltrail.records import InvalidRecordError
from tooltrail.store._roots.marks import refuse_other_roots
from tooltrail.store._roots.references import (
    ASKED_AT_ONCE,
    artifact_count,
    in_chunks,
    is_artifact,
    referenced,
)
from tooltrail.store.roots import is_mark
from tooltrail.store.store import Store

DEFAULT_GRACE = timedelta(hours=24)
"""Age below which an object is left alone: longer than any step of a record takes."""

PART_GRACE = timedelta(hours=1)
"""Age below which an unfinished object is left alone whatever the grace: somebody may write it."""

Progress = Callable[[int, int], None]
"""Told after each step how many objects are done, and how many stored bytes."""


@dataclass(slots=True)
class Amount:
    """So many objects, and their bytes as stored."""

    count: int = 0
    stored_bytes: int = 0

    def add(self, stat: ObjectStat) -> None:
        """Count one more."""
        self.count += 1
        self.stored_bytes += stat.stored_size


@dataclass(slots=True)
class PruningPlan:
    """What lies in an artifact root, and what of it would be pruned.

    Attributes:
        root: URL of the artifact root.
        grace: age below which an object is left alone.
        unreferenced: objects that no record refers to, older than the grace.
        leftovers: parts of objects that were never finished, older than the grace.
        referenced: objects that records refer to.
        young: objects that no record refers to, and parts, younger than the grace.
        damaged: damaged objects that were kept aside as evidence.
        foreign: files that are none of ours.
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


def total_of(stats: Sequence[ObjectStat]) -> Amount:
    """How many objects, and how large."""
    return Amount(len(stats), sum(stat.stored_size for stat in stats))


def plan_pruning(
    store: Store, grace: timedelta = DEFAULT_GRACE, *, on_progress: Progress | None = None
) -> PruningPlan:
    """Look at every object of a store and say what would be pruned. Changes nothing.

    Reads the names of all objects and asks the database about each; holds in memory what would be
    pruned.

    Args:
        store: whose objects.
        grace: age below which an object is left alone; not negative.
        on_progress: told about the objects seen so far.

    Raises:
        InvalidRecordError: the artifact root is not marked as that of this store alone, or nothing
            of what the store refers to is in it.
        UnavailableError: the database or the root cannot be read.
    """
    sink = store.archive.sink
    refuse_other_roots(sink, store.info.id)
    plan = PruningPlan(sink.url, grace)
    planned_at = now()
    seen = Amount()
    with store.database.read() as connection:
        known = artifact_count(connection)
    for stats in in_chunks(sink.list(), ASKED_AT_ONCE):
        artifacts = [stat for stat in stats if is_artifact(stat.path)]
        with store.database.read() as connection:
            wanted = referenced(connection, [stat.path for stat in artifacts])
        for stat in stats:
            seen.add(stat)
            _sort_in(plan, stat, wanted, old=planned_at - stat.modified_at >= grace)
        if on_progress:
            on_progress(seen.count, seen.stored_bytes)
    for part in iter_leftovers(sink):
        if planned_at - part.modified_at >= max(grace, PART_GRACE):
            plan.leftovers.append(part)
        else:
            plan.young.add(part)
    _refuse_lost_roots(plan, known)
    return plan


def _sort_in(plan: PruningPlan, stat: ObjectStat, wanted: set[str], *, old: bool) -> None:
    if stat.path in wanted:
        plan.referenced.add(stat)
    elif stat.path.startswith(f"{DAMAGED}/"):
        plan.damaged.add(stat)
    elif is_mark(stat.path):
        return
    elif not is_artifact(stat.path):
        plan.foreign.add(stat)
    elif old:
        plan.unreferenced.append(stat)
    else:
        plan.young.add(stat)


def _refuse_lost_roots(plan: PruningPlan, known: int) -> None:
    """What is left where everything else is gone may be all that there is: it is not deleted.

    Raises:
        InvalidRecordError: nothing that the store refers to is in its root.
    """
    if known and not plan.referenced.count and (plan.unreferenced or plan.leftovers):
        raise InvalidRecordError(
            f"none of the {known:,} artifacts that the store refers to is in {plan.root}: "
            "all of them are lost, or this database is not the store's newest"
        )
