"""Pruning: deletes the objects of an artifact root that no record refers to.

Crashes leave such objects: an artifact is published first, and referred to by a later commit. Both
happen under the ingest lock. Pruning has that lock alone, so what is unreferenced then stays so.
Recorders do not wait for it: they append to journals.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tooltrail.artifacts.leftovers import remove_leftover
from tooltrail.journal.clock import new_id
from tooltrail.records.errors import MissingArtifactError, UnavailableError
from tooltrail.store.keep.accounts import account_for
from tooltrail.store.keep.pruning_plan import Amount, Progress, PruningPlan
from tooltrail.store.keep.references import in_chunks, referenced
from tooltrail.store.locking import ingest_lock

if TYPE_CHECKING:
    from tooltrail.store.store import Store


@dataclass(slots=True)
class PruningReport:
    """What a run deleted.

    Attributes:
        run_id: of its maintenance fact.
        unreferenced: objects that were deleted.
        leftovers: parts that were deleted.
    """

    run_id: UUID
    unreferenced: Amount = field(default_factory=Amount)
    leftovers: Amount = field(default_factory=Amount)

    @property
    def total(self) -> Amount:
        """Everything that was deleted."""
        parts = (self.unreferenced, self.leftovers)
        return Amount(sum(one.count for one in parts), sum(one.stored_bytes for one in parts))


def prune(
    store: "Store", plan: PruningPlan, *, on_progress: Progress | None = None
) -> PruningReport:
    """Delete what a plan names, unless a record refers to it by now.

    Safe beside any number of recorders, ingesters, readers and other runs; ingesters wait. A run
    that deleted anything ends with a fact in the journal that says how much, also when it failed or
    was interrupted. A run that is killed leaves none.

    Raises:
        UnavailableError: the store, the root or the journal cannot be written, or the artifacts
            were moved since the plan was made.
    """
    report = PruningReport(new_id())
    with ingest_lock(store.database, exclusive=True) as confirm:
        _ = store.info  # follows the artifacts where they are now
        if plan.root != store.archive.sink.url:
            raise UnavailableError(f"the artifacts were moved from {plan.root}; plan anew")
        try:
            for _ in _deletions(store, plan, report, confirm):
                if on_progress:
                    done = report.total
                    on_progress(done.count, done.stored_bytes)
        finally:
            if report.total.count:
                account_for(store.spool, report.run_id, "gc", _details(plan, report))
    return report


def _deletions(
    store: "Store", plan: PruningPlan, report: PruningReport, confirm: Callable[[], None]
) -> Iterator[None]:
    """Delete one object after the other."""
    sink = store.archive.sink
    for stats in in_chunks(plan.unreferenced):
        with store.database.read() as connection:
            wanted = referenced(connection, [stat.path for stat in stats])
        for stat in stats:
            if stat.path not in wanted:
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


def _details(plan: PruningPlan, report: PruningReport) -> dict[str, Any]:
    return {
        "root": plan.root,
        "grace_s": int(plan.grace.total_seconds()),
        "unreferenced_count": report.unreferenced.count,
        "unreferenced_bytes": report.unreferenced.stored_bytes,
        "unfinished_count": report.leftovers.count,
        "unfinished_bytes": report.leftovers.stored_bytes,
    }
