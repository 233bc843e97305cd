"""Moving the artifacts of a store to another root.

Every object that the store refers to is copied, and read back at the new root through its digest.
Then the store remembers the new root. What stands there already is read and not copied again, so an
interrupted run is simply repeated.

No ingester works meanwhile. Recorders append to their journals, and open stores find the new root
when they next read or ingest. Objects that nobody refers to stay behind, for `prune` judges them.
"""

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from tooltrail.artifacts import ArtifactArchive, ArtifactSink, artifact_path, open_sink
from tooltrail.artifacts.archive import DAMAGED
from tooltrail.journal.clock import new_id
from tooltrail.records.errors import (
    DamageError,
    InvalidRecordError,
    MissingArtifactError,
    TooltrailError,
)
from tooltrail.store.engines.database import Database
from tooltrail.store.engines.values import digest_from
from tooltrail.store.info import read_info
from tooltrail.store.ingest.durable import make_durable
from tooltrail.store.keep.accounts import account_for
from tooltrail.store.keep.copying import ObjectCopier
from tooltrail.store.keep.pruning_plan import Amount, Progress
from tooltrail.store.keep.references import ASKED_AT_ONCE, in_chunks, is_artifact, referenced
from tooltrail.store.locking import ingest_lock
from tooltrail.store.marks import mark_root, refuse_other_roots, unmark_root
from tooltrail.store.roots import mark_path, remembered_root, resolve_root

if TYPE_CHECKING:
    from tooltrail.store.store import Store

_NAMED: Final = 100
"""Paths that the account of a run names; it counts all."""


@dataclass(slots=True)
class RelocationReport:
    """What became of a relocation.

    Attributes:
        run_id: of its maintenance fact.
        root_before: the URL from which objects were copied.
        root_after: the URL of the new root.
        copied: objects that were copied and read back.
        sound: objects that stood at the new root already and were read through.
        damaged: paths of artifacts that are damaged at the old root.
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

    def details(self) -> dict[str, Any]:
        """The report as the maintenance fact says it."""
        named = {"damaged": self.damaged[:_NAMED], "missing": self.missing[:_NAMED]}
        counted = {"damaged_count": len(self.damaged), "missing_count": len(self.missing)}
        return {**asdict(self), "run_id": str(self.run_id), **named, **counted}


def relocate(
    store: "Store",
    new_root: str,
    *,
    allow_damage: bool = False,
    delete_old: bool = False,
    on_progress: Progress | None = None,
) -> RelocationReport:
    """Move the artifacts of a store to another root and remember that.

    A run that changed anything ends with a fact in the journal, also when it failed or was
    interrupted. A run that is killed leaves none.

    Args:
        store: whose artifacts; copied from where it was opened with.
        new_root: folder or URL; a folder is made when it is not there.
        allow_damage: move although artifacts are damaged or missing, which they are then at the new
            root as well. Otherwise the store stays where it is when there are any.
        delete_old: delete at the old root what was read back from the new one.
        on_progress: see `Progress`.

    Raises:
        InvalidRecordError: the new root is the old one, or one is inside the other. Or the new one
            does not last, is that of another store, or holds artifacts of something else. Or the
            old one is not marked as that of this store.
        UnavailableError: the store, a root or the journal cannot be used, or the new root does not
            give back what was put there.
    """
    target = store.database.target
    remembered = remembered_root(target, new_root)
    with ingest_lock(store.database, exclusive=True) as confirm:
        store_id = store.info.id  # the store follows the artifacts where they are now
        refuse_other_roots(store.archive.sink, store_id)
        url = resolve_root(target, remembered)
        _refuse_nested(store.archive.sink.url, url)
        sink = open_sink(url, create=True)
        _refuse_unfit(store, sink)
        # The archive of the store follows to the new root.
        old, scratch = store.archive.sink, store.spool / f"relocating-{store_id}.part"
        copier = ObjectCopier(ArtifactArchive(old), ArtifactArchive(sink), scratch)
        report = RelocationReport(new_id(), old.url, sink.url)
        moving = _Relocation(
            store, store_id, old, sink, remembered, confirm, on_progress, copier, report
        )
        try:
            moving.refuse_same_place()
            with moving.marked():
                moving.copy(allow_damage=allow_damage)
                if allow_damage or not (report.damaged or report.missing):
                    moving.switch()
            if report.switched and delete_old:
                moving.delete_old()
        finally:
            copier.clean_up()
            if report.switched or report.copied.count:
                account_for(store.spool, report.run_id, "relocate", report.details())
    return report


@dataclass(frozen=True, slots=True)
class _Relocation:
    """One run, step by step, under the ingest lock."""

    store: "Store"
    store_id: UUID
    old: ArtifactSink
    new: ArtifactSink
    remembered: str
    confirm: Callable[[], None]
    on_progress: Progress | None
    copier: ObjectCopier
    report: RelocationReport

    def refuse_same_place(self) -> None:
        """Raise when both roots are one place under two names, such as a folder mounted twice."""
        if self.copier.is_seen_at_old(f"probe-{self.report.run_id}"):
            raise InvalidRecordError(
                f"the artifacts are in {self.new.url} already: it is the same place as"
                f" {self.old.url}"
            )

    @contextmanager
    def marked(self) -> Generator[None]:
        """The new root is marked as the store's, and stays so when the store comes to use it.

        A mark on a folder that does not have the artifacts would say that it has. It stays also
        where nobody can say whether the store uses the root, since the database is away.
        """
        store = self.store
        was_marked = self.new.exists(mark_path(self.store_id))
        try:
            mark_root(self.new, self.store_id, str(store.database.target), store.spool)
            yield
        finally:
            if not was_marked and not self.report.switched:
                with suppress(TooltrailError):
                    with store.database.read() as connection:
                        root = read_info(connection).artifact_root
                    if root != self.remembered:
                        unmark_root(self.new, self.store_id)

    def copy(self, *, allow_damage: bool) -> None:
        """Copy what the store refers to, and the damaged objects that were set apart."""
        for stat in self.old.list(f"{DAMAGED}/"):
            self._count(stat.stored_size, is_new=self.copier.ensure_raw(stat.path))
        for path, size, stored_size in _artifacts(self.store.database):
            try:
                is_new = self.copier.ensure(path, size)
            except MissingArtifactError:
                self.report.missing.append(path)
            except DamageError:
                self.report.damaged.append(path)
            else:
                self._count(stored_size, is_new=is_new)
        if allow_damage:
            for path in self.report.damaged:
                self.copier.ensure_raw(path)

    def switch(self) -> None:
        """Let the store remember the new root, durably, and go on there."""
        store = self.store
        self.confirm()
        with store.database.write() as connection:
            connection.execute("UPDATE store_info SET artifact_root = ?", (self.remembered,))
        self.report.switched = True
        make_durable(store.database)
        store.settings = replace(store.settings, artifacts=None)
        _ = store.info

    def delete_old(self) -> None:
        """Delete at the old root what was read back from the new one, and then its mark."""
        kept = {*self.report.damaged, *self.report.missing}
        for stat in self.old.list(f"{DAMAGED}/"):
            self._delete(stat.path, stat.stored_size)
        for path, _, stored_size in _artifacts(self.store.database):
            if path not in kept:
                self._delete(path, stored_size)
        # Last: without it nobody could tell what is gone from what is on a disk that is away.
        unmark_root(self.old, self.store_id)

    def _delete(self, path: str, stored_size: int) -> None:
        self.confirm()
        with suppress(MissingArtifactError):  # deleted by a run that was killed
            self.old.delete(path)
            self.report.deleted.add(stored_size)

    def _count(self, stored_size: int, *, is_new: bool) -> None:
        (self.report.copied if is_new else self.report.sound).add(stored_size)
        if self.on_progress:
            done = (self.report.copied, self.report.sound)
            self.on_progress(sum(a.count for a in done), sum(a.stored_bytes for a in done))


def _artifacts(database: Database) -> Iterator[tuple[str, int, int]]:
    """Path, size and stored size of each artifact of the store; those erased have no object.

    Page by page: a server ends a transaction that waits for a slow root.
    """
    last = -1
    while True:
        with database.read() as connection:
            rows = connection.query(
                "SELECT key, digest, size, stored_size FROM artifacts WHERE key > ? AND digest"
                " NOT IN (SELECT digest FROM tombstones WHERE kind = 'artifact')"
                " ORDER BY key LIMIT ?",
                (last, ASKED_AT_ONCE),
            )
        for _, digest, size, stored_size in rows:
            yield artifact_path(digest_from(digest)), size, stored_size
        if not rows:
            return
        last = rows[-1][0]


def _refuse_nested(old: str, new: str) -> None:
    places = [
        os.path.realpath(url.removeprefix("file://"))
        if url.startswith("file://") or "://" not in url
        else url.rstrip("/")
        for url in (old, new)
    ]
    if places[0] == places[1]:
        raise InvalidRecordError(f"the artifacts are in {new} already")
    if any(one.startswith(f"{other}/") for one, other in (places, places[::-1])):
        raise InvalidRecordError(f"one of {old} and {new} is inside the other")


def _refuse_unfit(store: "Store", sink: ArtifactSink) -> None:
    if not (sink.capabilities.durable and sink.capabilities.cross_process):
        raise InvalidRecordError(f"{sink.url} is not durable storage")
    for stats in in_chunks(sink.list()):
        paths = [stat.path for stat in stats if is_artifact(stat.path)]
        with store.database.read() as connection:
            others = sorted(set(paths) - referenced(connection, paths))
        if others:
            raise InvalidRecordError(
                f"{sink.url} holds artifacts of something else, such as {others[0]}: "
                "an artifact root belongs to one store"
            )
