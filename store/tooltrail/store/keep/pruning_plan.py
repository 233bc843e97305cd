"""What lies in an artifact root, sorted by what pruning would do to it. Changes nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from tooltrail.artifacts import ObjectStat
from tooltrail.artifacts.archive import DAMAGED
from tooltrail.artifacts.leftovers import iter_leftovers
from tooltrail.journal.clock import now
from tooltrail.records.errors import InvalidRecordError
from tooltrail.store.keep.references import artifact_count, in_chunks, is_artifact, referenced
from tooltrail.store.marks import refuse_other_roots
from tooltrail.store.roots import is_mark

if TYPE_CHECKING:
    from tooltrail.store.store import Store

DEFAULT_GRACE: Final = timedelta(hours=24)
"""Age below which an object is left alone, so that people may look at it."""

Progress = Callable[[int, int], None]
"""Called after each step with the objects that are done, and their stored bytes."""


@dataclass(slots=True)
class Amount:
    """So many objects, and their bytes as stored."""

    count: int = 0
    stored_bytes: int = 0

    def add(self, stored_bytes: int) -> None:
        """Count one more."""
        self.count += 1
        self.stored_bytes += stored_bytes


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
        damaged: damaged objects that were set apart as evidence.
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


def total_of(stats: Sequence[ObjectStat]) -> Amount:
    """How many objects, and how large."""
    return Amount(len(stats), sum(stat.stored_size for stat in stats))


def plan_pruning(
    store: "Store", grace: timedelta = DEFAULT_GRACE, *, on_progress: Progress | None = None
) -> PruningPlan:
    """Look at every object of a store and say what would be pruned. Changes nothing.

    Reads the names of all objects and asks the database about each. What would be pruned is held in
    memory.

    Args:
        store: whose objects.
        grace: age below which an object is left alone; not negative.
        on_progress: see `Progress`.

    Raises:
        InvalidRecordError: the artifact root is not marked as that of this store alone, or nothing
            of what the store refers to is in it.
        UnavailableError: the database or the root cannot be read.
    """
    store_id, sink = store.info.id, store.archive.sink
    refuse_other_roots(sink, store_id)
    plan = PruningPlan(sink.url, grace)
    planned_at = now()
    seen = Amount()
    with store.database.read() as connection:
        known = artifact_count(connection)
    for stats in in_chunks(sink.list()):
        with store.database.read() as connection:
            wanted = referenced(connection, [one.path for one in stats if is_artifact(one.path)])
        for stat in stats:
            seen.add(stat.stored_size)
            _sort_in(plan, stat, wanted, is_old=planned_at - stat.modified_at >= grace)
        if on_progress:
            on_progress(seen.count, seen.stored_bytes)
    for part in iter_leftovers(sink):
        if planned_at - part.modified_at >= grace:
            plan.leftovers.append(part)
        else:
            plan.young.add(part.stored_size)
    if known and not plan.referenced.count and (plan.unreferenced or plan.leftovers):
        # What is left where everything else is gone may be all that there is.
        raise InvalidRecordError(
            f"none of the {known:,} artifacts that the store refers to is in {plan.root}: "
            "all of them are lost, or this database is not the store's newest"
        )
    return plan


def _sort_in(plan: PruningPlan, stat: ObjectStat, wanted: set[str], *, is_old: bool) -> None:
    if stat.path in wanted:
        plan.referenced.add(stat.stored_size)
    elif stat.path.startswith(f"{DAMAGED}/"):
        plan.damaged.add(stat.stored_size)
    elif is_mark(stat.path):
        return
    elif not is_artifact(stat.path):
        plan.foreign.add(stat.stored_size)
    elif is_old:
        plan.unreferenced.append(stat)
    else:
        plan.young.add(stat.stored_size)
