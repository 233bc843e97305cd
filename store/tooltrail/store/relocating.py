"""Moving the artifacts of a store to another root, while others record and read.

Every object that the store refers to is copied to the new root and read back there through its
digest; what stands there and is sound is not copied again, so a killed run is simply repeated.
Then one transaction, which shuts out everybody who commits references, finds nothing that is not
copied, changes the root that the store remembers and closes the account of the run.

Others may have the store open meanwhile:

- A record whose artifacts went to the old root is either committed before that transaction, which
  then finds and copies them, or after it. Then its writer finds another root than it had seen,
  publishes its artifacts there before it commits, and goes on there (see `_upkeep`). Nothing is
  lost and nobody has to stop. Where the new root cannot be reached from a writer's machine the
  output waits in its spool, to be stored by `repair`.
- A reader that has the store open goes on reading the old root, where everything recorded before
  the change still is, unless the old objects are deleted. It is to open the store again.

Objects that nobody refers to stay behind, for `prune` is who judges them, and so do foreign files.
Damaged objects that were kept aside are evidence and come along.
"""

import os
import time
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, select, update

from tooltrail.artifacts import ArtifactArchive, ArtifactSink, open_sink
from tooltrail.artifacts.archive import DAMAGED
from tooltrail.records import (
    DamageError,
    InvalidRecordError,
    MissingArtifactError,
    TooltrailError,
    UnavailableError,
)
from tooltrail.store._committing import answered_commit
from tooltrail.store._copying import ObjectCopier
from tooltrail.store._maintenance import MaintenanceRun, maintenance_run
from tooltrail.store._mark_names import mark_path
from tooltrail.store._references import ASKED_AT_ONCE, in_chunks, is_artifact, referenced
from tooltrail.store._root_marks import mark_root, unmark_root
from tooltrail.store._roots import remembered_root, resolve_root
from tooltrail.store._upkeep import read_upkeep
from tooltrail.store.pruning_plan import Amount, Progress
from tooltrail.store.store import Store
from tooltrail.store.tables import ArtifactRow, StoreInfoRow, TombstoneRow

_COUNTED_AT_ONCE = 50
"""Objects after which the account of a run is brought up to date."""

_ROUNDS = 10
"""Times that new artifacts are copied while others record; what is left then is copied alone."""

_HOLD_S = 0.05
"""Seconds for which one transaction begins deletions; also the longest pause after it."""

_NAMED = 100
"""Paths that the account of a run names; it counts all."""

_FEW = 8
"""Artifacts that are copied while others wait, rather than in one more round."""


@dataclass(slots=True)
class RelocationReport:
    """What became of a relocation.

    Attributes:
        run_id: of its row in `maintenance_runs`.
        root_before: the URL from which objects were copied.
        root_after: the URL at which they are now.
        copied: objects that were copied and read back.
        sound: objects that stood at the new root already and were read through.
        damaged: paths of artifacts that are damaged where they were.
        missing: paths of artifacts that are not where they should be.
        switched: whether the store remembers the new root now.
        deleted: objects that were deleted at the old root.
    """

    run_id: UUID
    root_before: str
    root_after: str
    copied: Amount = field(default_factory=Amount)
    sound: Amount = field(default_factory=Amount)
    damaged: list[str] = field(default_factory=list[str])
    missing: list[str] = field(default_factory=list[str])
    switched: bool = False
    deleted: Amount = field(default_factory=Amount)


def relocate(
    store: Store,
    new_root: str,
    *,
    allow_damage: bool = False,
    delete_old: bool = False,
    on_progress: Progress | None = None,
) -> RelocationReport:
    """Move the artifacts of a store to another root and remember that.

    Afterwards this store uses the new root, and so does every one that is opened.

    Args:
        store: whose artifacts; copied from where it was opened with.
        new_root: folder or URL; a folder is made when it is not there.
        allow_damage: move although artifacts are damaged or missing, which they are then at the
            new root as well. Otherwise nothing is changed when there are any.
        delete_old: delete at the old root what was read back from the new one.
        on_progress: told about the objects done so far.

    Raises:
        InvalidRecordError: the new root is the old one, does not last, is that of another store, or
            holds artifacts of something else.
        UnavailableError: another run is under way, a root cannot be used, the old one is not marked
            as that of this store, or the new one does not give back what was put there.
    """
    target = store.database.target
    remembered = remembered_root(target, new_root)
    if (reason := store.find_artifacts()) is not None:
        raise UnavailableError(f"nothing can be moved, since the artifacts are away: {reason}")
    sink = open_sink(resolve_root(target, remembered), create=True)
    _refuse_unfit(store, sink)
    facts = {
        "root_before": store.info.artifact_root,
        "root_after": remembered,
        "copied_from": store.archive.sink.url,
    }
    with maintenance_run(store.database, "relocate", {"step": "copy", **facts}) as run:
        moving = _Relocation(store, ArtifactArchive(sink), run, on_progress)
        try:
            with moving.marked():
                moving.copy_evidence()
                moving.copy_artifacts()
                moving.switch(remembered, allow_damage=allow_damage)
        finally:
            run.report = moving.summary()
            moving.copier.clean_up()
    if moving.report.switched and delete_old:
        with maintenance_run(store.database, "relocate", {"step": "delete", **facts}) as run:
            try:
                moving.delete_old(run, remembered)
            finally:
                run.report = moving.summary()
    return moving.report


@dataclass(frozen=True, slots=True)
class _Artifact:
    """What a row of the store says of one artifact."""

    path: str
    size: int
    stored_size: int


class _Relocation:
    """One run, step by step."""

    def __init__(
        self,
        store: Store,
        new: ArtifactArchive,
        run: MaintenanceRun,
        on_progress: Progress | None,
    ) -> None:
        self._store = store
        self._old = store.archive
        self._new = new
        self._run = run
        self._on_progress = on_progress
        self._at_both: dict[str, int] = {}
        self.copier = ObjectCopier(self._old, new, store.spool / f"relocating-{store.info.id}.part")
        self.report = RelocationReport(run.id, self._old.sink.url, new.sink.url)

    @contextmanager
    def marked(self) -> Generator[None]:
        """The new root is marked as the store's, and stays so when the store has come to use it.

        A mark on a folder that does not have the artifacts would say that it has: should it be the
        one on which a disk is mounted later, or not yet. So it goes again unless it was there, also
        when nothing was wrong but the artifacts. A run that was killed or taken for dead leaves it
        for the next one.
        """
        sink, store = self._new.sink, self._store
        was_marked = sink.exists(mark_path(store.info.id))
        try:
            mark_root(sink, store.info.id, store.database.target.place, store.spool)
            yield
        except BaseException:
            if not (was_marked or self.report.switched):
                # What went wrong is worth more than that the mark has to stay.
                with suppress(TooltrailError):
                    self._unmark()
            raise
        if not (was_marked or self.report.switched):
            self._unmark()

    def _unmark(self) -> None:
        """Take the mark of the new root back, for sure before anybody comes to use that root.

        The account of this run is closed by the transaction that changes the root, whether or not
        its commit was answered, and by the next run, which has to wait for this transaction. So
        while it is open, nobody has changed the root since this run began.

        Raises:
            UnavailableError: it is closed, or the database or the root cannot be asked; the mark
                stays.
        """
        with self._store.database.write() as connection:
            self._run.go_on(connection)
            self._run.confirm(connection)
            unmark_root(self._new.sink, self._store.info.id)

    def copy_evidence(self) -> None:
        """Copy the damaged objects that were kept aside."""
        for stat in self._old.sink.list(f"{DAMAGED}/"):
            is_new = self.copier.ensure_raw(stat.path)
            self._settle(stat.path, stat.stored_size, is_new=is_new)

    def copy_artifacts(self) -> None:
        """Copy what the store refers to, until what others have recorded meanwhile is little."""
        for _ in range(_ROUNDS):
            with self._store.database.read() as connection:
                rest = self._unsettled(connection)
            for chunk in in_chunks(rest, _COUNTED_AT_ONCE):
                before = self.report.copied
                objects, stored_bytes = before.count, before.stored_bytes
                for artifact in chunk:
                    self._copy(artifact)
                with self._store.database.write() as connection:
                    self._run.go_on(connection)
                    self._run.count(
                        connection, before.count - objects, before.stored_bytes - stored_bytes
                    )
            if len(rest) <= _FEW:
                return

    def switch(self, remembered: str, *, allow_damage: bool) -> None:
        """Let the store remember the new root, in the transaction that closes the account."""
        with answered_commit(self._store.database, self._uncertain) as connection:
            self._run.go_on(connection)
            for artifact in self._unsettled(connection):
                self._copy(artifact)
            if self.report.damaged or self.report.missing:
                if not allow_damage:
                    return
                for path in self.report.damaged:
                    self.copier.ensure_raw(path)
            connection.execute(update(StoreInfoRow).values(artifact_root=remembered))
            self._run.report = self.summary() | {"switched": True}
            self._run.end(connection, "finished")
        self.report.switched = True
        with self._store.database.read() as connection:
            self._store.follow(read_upkeep(connection))

    def delete_old(self, run: MaintenanceRun, remembered: str) -> None:
        """Delete at the old root what was read back from the new one, and its mark.

        What is not there any more was deleted by a run that was killed.

        Raises:
            UnavailableError: another run has taken over or has moved the artifacts elsewhere, it
                may be back; or the database or the old root cannot be reached.
        """
        pending = deque(self._at_both.items())
        while pending:
            begun = time.monotonic()
            with self._moved(run, remembered) as connection:
                self._delete_until(begun + _HOLD_S, pending, run, connection)
            # As long as writers were held off, so that they get their turn.
            time.sleep(min(time.monotonic() - begun, _HOLD_S))
        # Last: without it nobody could tell what is gone from what is on a disk that is away.
        with self._moved(run, remembered) as connection:
            run.confirm(connection)
            unmark_root(self._old.sink, self._store.info.id)

    @contextmanager
    def _moved(self, run: MaintenanceRun, remembered: str) -> Generator[Connection]:
        """A transaction during which the artifacts stay at the new root, where they are."""
        with self._store.database.write() as connection:
            run.go_on(connection)
            if read_upkeep(connection).artifact_root != remembered:
                raise UnavailableError(
                    "the artifacts were moved once more meanwhile; nothing more is deleted"
                )
            yield connection

    def _delete_until(
        self,
        end: float,
        pending: deque[tuple[str, int]],
        run: MaintenanceRun,
        connection: Connection,
    ) -> None:
        deleted = Amount()
        while pending and time.monotonic() < end:
            run.confirm(connection)
            path, stored_size = pending.popleft()
            with suppress(MissingArtifactError):
                self._old.sink.delete(path)
                deleted.count += 1
                deleted.stored_bytes += stored_size
        self.report.deleted.count += deleted.count
        self.report.deleted.stored_bytes += deleted.stored_bytes
        run.count(connection, deleted.count, deleted.stored_bytes)

    def summary(self) -> dict[str, Any]:
        """The report as its row says it."""
        report = self.report
        return {
            "switched": report.switched,
            "copied_count": report.copied.count,
            "copied_bytes": report.copied.stored_bytes,
            "sound_count": report.sound.count,
            "damaged": report.damaged[:_NAMED],
            "damaged_count": len(report.damaged),
            "missing": report.missing[:_NAMED],
            "missing_count": len(report.missing),
            "deleted_count": report.deleted.count,
            "deleted_bytes": report.deleted.stored_bytes,
        }

    def _uncertain(self, reason: str) -> UnavailableError:
        return UnavailableError(
            f"{reason}; whether the artifacts were moved to {self.report.root_after} is not known: "
            "move them there once more"
        )

    def _copy(self, artifact: _Artifact) -> None:
        try:
            is_new = self.copier.ensure(artifact.path, artifact.size)
        except MissingArtifactError:
            self.report.missing.append(artifact.path)
        except DamageError:
            self.report.damaged.append(artifact.path)
        else:
            self._settle(artifact.path, artifact.stored_size, is_new=is_new)

    def _settle(self, path: str, stored_size: int, *, is_new: bool) -> None:
        self._at_both[path] = stored_size
        amount = self.report.copied if is_new else self.report.sound
        amount.count += 1
        amount.stored_bytes += stored_size
        if self._on_progress:
            done = (self.report.copied, self.report.sound)
            self._on_progress(sum(a.count for a in done), sum(a.stored_bytes for a in done))

    def _unsettled(self, connection: Connection) -> list[_Artifact]:
        """The artifacts of the store of which nothing is known yet; those erased have no object."""
        settled = {*self._at_both, *self.report.damaged, *self.report.missing}
        erased = select(TombstoneRow.subject).where(TombstoneRow.kind == "artifact")
        rows = connection.execute(
            select(ArtifactRow.path, ArtifactRow.size, ArtifactRow.stored_size)
            .where(ArtifactRow.path.not_in(erased))
            .order_by(ArtifactRow.path)
        )
        return [_Artifact(*row) for row in rows if row.path not in settled]


def _refuse_unfit(store: Store, sink: ArtifactSink) -> None:
    if not (sink.capabilities.durable and sink.capabilities.cross_process):
        raise InvalidRecordError(f"what is kept in {sink.url} does not last")
    if _place(sink) == _place(store.archive.sink):
        raise InvalidRecordError(f"the artifacts are in {sink.url} already")
    for chunk in in_chunks(sink.list(), ASKED_AT_ONCE):
        paths = [stat.path for stat in chunk if is_artifact(stat.path)]
        with store.database.read() as connection:
            others = sorted(set(paths) - referenced(connection, paths))
        if others:
            raise InvalidRecordError(
                f"{sink.url} holds artifacts of something else, such as {others[0]}: "
                "an artifact root belongs to one store"
            )


def _place(sink: ArtifactSink) -> str:
    folder = sink.url.removeprefix("file://")
    return sink.url.rstrip("/") if folder == sink.url else os.path.realpath(folder)
