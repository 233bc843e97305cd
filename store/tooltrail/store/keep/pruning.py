"""Pruning: deleting objects that no record refers to, while others record.

Objects nobody refers to are what crashes leave: artifacts are published first and referred to in a
later transaction. The same makes pruning dangerous. An object that was published a moment ago is
unreferenced too; and so is one that has lain there for a year and that a writer is about to adopt,
since `publish` finds equal bytes there and is content. The grace period is for people, and keeps
writers from doing work twice. What makes it safe, for any grace, clock, process and machine, is
this protocol, whose other half is in `_recording.upkeep`:

- A run commits its row in `maintenance_runs` before it deletes anything, and is open until its end.
- It deletes inside a transaction that shuts out everybody who commits references (SQLite's write
  lock; an advisory lock on PostgreSQL), after it has asked in that transaction whether the
  references are still none and its own row is still open.
- Who commits references has read the newest run before publishing. In its transaction, with
  deletions shut out, it reads again. If no run has begun since and none is open, it commits.
  Otherwise it looks for each object, and publishes those anew that are not there.

Suppose a committed reference whose object a run R deleted at time t. R held the lock at t, so the
reference was committed either before, and R would have seen it, or after. Then the writer came
into its transaction after t. Had it published after t, the object would be there. So it had
published, and before that read the newest run, before t. R's row was committed before t: at its
second reading the writer found R open, or R closed but new since the first reading, or it had
found R open at the first and not at the second. In each case it looked, with deletions shut out
until its commit, and the object was there. A killed run stays open until the next one closes it,
and costs those who record an existence check for each artifact until then, nothing else.

On PostgreSQL the lock goes with the connection, so a run asks its server before each deletion
whether it still has it. What is left is a server that takes a living run for dead, and lets a
writer adopt that very object, between that question and the deletion.

Deletions come in short transactions with pauses between them that are as long, so that writers
have half of the time at the least. One transaction takes a twentieth of a second and one deletion
more: with a root that answers slowly that is what it takes; with one that stops to answer in the
middle of a deletion, what its client takes to give up. One that has
stopped before holds nobody off, since it is asked first.
"""

import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from uuid import UUID

from sqlalchemy import Connection

from tooltrail.artifacts import ObjectStat
from tooltrail.artifacts.leftovers import remove_leftover
from tooltrail.records import (
    DiskFullError,
    MissingArtifactError,
    TooltrailError,
    UnavailableError,
)
from tooltrail.store._recording.upkeep import read_upkeep
from tooltrail.store._roots.maintenance import MaintenanceRun, maintenance_run
from tooltrail.store._roots.references import referenced
from tooltrail.store.pruning_plan import Amount, Progress, PruningPlan
from tooltrail.store.store import Store

_BATCH = 100
"""Objects that one transaction deletes at most."""

_NEEDS_ROOM = "to prune needs a megabyte on that disk for its account: free it first"

_HOLD_S = 0.05
"""Seconds for which one transaction begins deletions; the last may take what its root takes."""


@dataclass(slots=True)
class PruningReport:
    """What a run has deleted.

    Attributes:
        run_id: of its row in `maintenance_runs`.
        unreferenced: objects that were deleted.
        leftovers: parts that were deleted.
        adopted: objects that a record has come to refer to since the plan; they were left.
        vanished: objects that were gone already.
    """

    run_id: UUID
    unreferenced: Amount = field(default_factory=Amount)
    leftovers: Amount = field(default_factory=Amount)
    adopted: Amount = field(default_factory=Amount)
    vanished: Amount = field(default_factory=Amount)

    @property
    def total(self) -> Amount:
        """Everything that was deleted."""
        parts = (self.unreferenced, self.leftovers)
        return Amount(sum(a.count for a in parts), sum(a.stored_bytes for a in parts))


def prune(store: Store, plan: PruningPlan, *, on_progress: Progress | None = None) -> PruningReport:
    """Delete what a plan names, unless a record refers to it by now.

    Safe beside any number of writers, readers and other runs, of which one is under way at a time.
    A run that fails or is interrupted, by `KeyboardInterrupt` too, says in its row of
    `maintenance_runs` what it has deleted; one that is killed, all but its last step.

    On a full disk it writes its account into the room that is held back there.

    Raises:
        UnavailableError: another run is under way or has taken over, the store or the root cannot
            be written, or the artifacts were moved since the store was opened.
        DiskFullError: there is not even the room for its account.
    """
    facts = {"root": plan.root, "grace_s": int(plan.grace.total_seconds())}
    try:
        with maintenance_run(
            store.database, "gc", facts, prepare=partial(_make_room, store)
        ) as run:
            _refuse_moved(store, plan)
            pruning = _Pruning(store, run, on_progress)
            try:
                pruning.delete_unreferenced(plan.unreferenced)
                pruning.delete_leftovers(plan.leftovers)
            finally:
                run.report = pruning.summary()
    except DiskFullError as error:
        raise DiskFullError(f"{error}; {_NEEDS_ROOM}") from error
    finally:
        store.reserve.hold()
    return pruning.report


def _make_room(store: Store) -> None:
    if store.reserve.is_needed():
        store.make_room()


class _Pruning:
    """One run, step by step."""

    def __init__(self, store: Store, run: MaintenanceRun, on_progress: Progress | None) -> None:
        self._store = store
        self._sink = store.archive.sink
        self._run = run
        self._on_progress = on_progress
        self.report = PruningReport(run.id)

    def delete_unreferenced(self, stats: Iterable[ObjectStat]) -> None:
        pending = deque(stats)
        while pending:
            # A root that does not answer is found out before anybody is held off.
            self._sink.exists(pending[0].path)
            batch = [pending.popleft() for _ in range(min(_BATCH, len(pending)))]
            held_s = self._delete_batch(batch, pending)
            self._tell()
            if pending:
                # Writers get as long as they were held off, however slow the root is.
                time.sleep(held_s)

    def delete_leftovers(self, stats: Iterable[ObjectStat]) -> None:
        for stat in stats:
            if remove_leftover(self._sink, stat.path):
                self.report.leftovers.add(stat)
                with self._store.database.write() as connection:
                    self._run.count(connection, 1, stat.stored_size)
            self._tell()

    def summary(self) -> dict[str, int]:
        """The report as its row says it."""
        report = self.report
        return {
            "unreferenced_count": report.unreferenced.count,
            "unreferenced_bytes": report.unreferenced.stored_bytes,
            "unfinished_count": report.leftovers.count,
            "unfinished_bytes": report.leftovers.stored_bytes,
            "adopted_count": report.adopted.count,
            "vanished_count": report.vanished.count,
        }

    def _delete_batch(self, batch: list[ObjectStat], pending: deque[ObjectStat]) -> float:
        """Delete for a moment what nobody refers to, and put back what is left of the batch.

        Returns:
            For how many seconds writers were held off.
        """
        before = Amount(self.report.unreferenced.count, self.report.unreferenced.stored_bytes)
        failure: BaseException | None = None
        rest = deque(batch)
        with self._store.database.write() as connection:
            begun = time.monotonic()
            self._run.go_on(connection)
            wanted = referenced(connection, [stat.path for stat in batch])
            try:
                self._delete_until(time.monotonic() + _HOLD_S, rest, wanted, connection)
            except (TooltrailError, KeyboardInterrupt) as error:
                # Raised when the account of what was deleted is committed.
                failure = error
            done = self.report.unreferenced
            self._run.count(
                connection, done.count - before.count, done.stored_bytes - before.stored_bytes
            )
        if failure is not None:
            raise failure
        pending.extendleft(reversed(rest))
        return time.monotonic() - begun

    def _delete_until(
        self, end: float, rest: deque[ObjectStat], wanted: set[str], connection: Connection
    ) -> None:
        while rest and time.monotonic() < end:
            stat = rest[0]
            if stat.path in wanted:
                self.report.adopted.add(stat)
            else:
                self._run.confirm(connection)
                self._delete(stat)
            rest.popleft()

    def _delete(self, stat: ObjectStat) -> None:
        try:
            self._sink.delete(stat.path)
        except MissingArtifactError:
            self.report.vanished.add(stat)
        else:
            self.report.unreferenced.add(stat)

    def _tell(self) -> None:
        if self._on_progress:
            done = self.report.total
            self._on_progress(done.count, done.stored_bytes)


def _refuse_moved(store: Store, plan: PruningPlan) -> None:
    with store.database.read() as connection:
        current = read_upkeep(connection)
    if current.artifact_root != store.info.artifact_root or plan.root != store.archive.sink.url:
        raise UnavailableError("the artifacts of the store were moved; open it again")
