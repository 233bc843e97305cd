"""Moving the artifacts of a store to another root, while others record and read.

Every object that the store refers to is copied to the new root and read back there through its
digest; what stands there and is sound is not copied again, so a killed run is simply repeated.
Then one transaction, which shuts out everybody who commits references, finds nothing that is not
copied, changes the root that the store remembers and closes the account of the run.

Others may have the store open meanwhile:

- A record whose artifacts went to the old root is either committed before that transaction, which
  then finds and copies them, or after it. Then its writer finds another root than it had seen,
  publishes its artifacts there before it commits, and goes on there (see `_recording.upkeep`).
  Nothing is lost and nobody has to stop. Where the new root cannot be reached from a writer's
  machine the output waits in its spool, to be stored by `repair`.
- A reader that has the store open goes on reading the old root, where everything recorded before
  the change still is, unless the old objects are deleted. It is to open the store again.

Objects that nobody refers to stay behind, for `prune` is who judges them, and so do foreign files.
Damaged objects that were kept aside are evidence and come along.
"""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

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
from tooltrail.store._recording.committing import answered_commit
from tooltrail.store._recording.upkeep import read_upkeep
from tooltrail.store._roots.copying import ObjectCopier
from tooltrail.store._roots.maintenance import MaintenanceRun, maintenance_run
from tooltrail.store._roots.marks import mark_root, unmark_root
from tooltrail.store._roots.old_root import OldRoot
from tooltrail.store._roots.references import ASKED_AT_ONCE, in_chunks, is_artifact, referenced
from tooltrail.store._roots.remembered import remembered_root, resolve_root
from tooltrail.store._roots.same_place import TwoPlaces, has_same_name
from tooltrail.store.pruning_plan import Progress
from tooltrail.store.relocation_report import RelocationReport
from tooltrail.store.roots import mark_path
from tooltrail.store.store import Store
from tooltrail.store.tables import ArtifactRow, StoreInfoRow, TombstoneRow

_COUNTED_AT_ONCE = 50
"""Objects after which the account of a run is brought up to date."""

_ROUNDS = 10
"""Times that new artifacts are copied while others record; what is left then is copied alone."""

_FEW = 8
"""Artifacts that are copied while others wait, rather than in one more round."""


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
        InvalidRecordError: the new root is the old one, also by another name or in one of its
            folders, does not last, is that of another store, or holds artifacts of something else.
            Or, when the artifacts are moved, what is to be deleted shows at the new root.
        UnavailableError: another run is under way, a root cannot be used, the old one is not marked
            as that of this store, or the new one does not give back what was put there. A note of
            it, as of any other error, says when the mark had to stay at the new root.
    """
    target = store.database.target
    remembered = remembered_root(target, new_root)
    _refuse_away(store)
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
            moving.places.ensure()
            with moving.marked():
                moving.copy_evidence()
                moving.copy_artifacts()
                moving.switch(remembered, allow_damage=allow_damage)
        except BaseException as error:
            if moving.report.mark_stays is not None:
                error.add_note(moving.report.mark_stays)
            raise
        finally:
            run.report = moving.report.summary()
            moving.copier.clean_up()
    if moving.report.switched and delete_old:
        with maintenance_run(store.database, "relocate", {"step": "delete", **facts}) as run:
            try:
                moving.delete_old(run, remembered)
            finally:
                run.report = moving.report.summary()
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
        self.places = TwoPlaces(self._old.sink, new.sink, store.spool)
        scratch = store.spool / f"relocating-{store.info.id}.part"
        self.copier = ObjectCopier(self._old, new, scratch, self.places)
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
        finally:
            if not (was_marked or self.report.switched):
                self._unmark()

    def _unmark(self) -> None:
        """Take the mark of the new root back, for sure before anybody comes to use that root.

        The account of this run is closed by the transaction that changes the root, whether or not
        its commit was answered, and by the next run, which has to wait until this is done. So while
        it is open, nobody has changed the root since this run began. Nobody who records is held
        off meanwhile: it may be that root which does not answer.

        When it is closed, or the database or the root cannot be asked, the mark stays and the
        report says so: what went wrong before, or was found out, is worth more.
        """
        try:
            with self._run.alone() as confirm:
                confirm()
                unmark_root(self._new.sink, self._store.info.id)
        except TooltrailError as error:
            mark = mark_path(self._store.info.id)
            self.report.mark_stays = f"the mark {mark} stays in {self._new.sink.url}: {error}"

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
            self._run.report = self.report.summary() | {"switched": True}
            self._run.end(connection, "finished")
        self.report.switched = True
        with self._store.database.read() as connection:
            self._store.follow(read_upkeep(connection))

    def delete_old(self, run: MaintenanceRun, remembered: str) -> None:
        """Delete at the old root what was read back from the new one, and its mark.

        Raises:
            InvalidRecordError, UnavailableError: see `OldRoot.delete`.
        """
        old = OldRoot(self._store, self.places, run, remembered, self.report.deleted)
        old.delete(self._at_both)

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


def _refuse_away(store: Store) -> None:
    if (reason := store.find_artifacts()) is not None:
        raise UnavailableError(f"nothing can be moved, since the artifacts are away: {reason}")


def _refuse_unfit(store: Store, sink: ArtifactSink) -> None:
    if not (sink.capabilities.durable and sink.capabilities.cross_process):
        raise InvalidRecordError(f"what is kept in {sink.url} does not last")
    if has_same_name(sink, store.archive.sink):
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
