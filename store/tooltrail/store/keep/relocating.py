"""Moving the artifacts of a store to another root.

Every object that the store refers to is copied, and read back at the new root through its digest.
Then the store remembers the new root. What stands there already is read and not copied again, so an
interrupted run is simply repeated.

No ingester works meanwhile. Recorders append to their journals, and open stores find the new root
when they next read or ingest. Objects that nobody refers to stay behind, for `prune` judges them.
"""

import io
import os
import shutil
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from tooltrail.artifacts import ArtifactArchive, ArtifactSink, artifact_path, copy_of, open_sink
from tooltrail.artifacts.archive import DAMAGED
from tooltrail.journal.clock import new_id
from tooltrail.records.errors import (
    DamageError,
    InvalidRecordError,
    MissingArtifactError,
    TooltrailError,
    UnavailableError,
)
from tooltrail.store.engines.database import Database
from tooltrail.store.engines.values import digest_from
from tooltrail.store.info import read_info
from tooltrail.store.ingest.durable import make_durable
from tooltrail.store.keep.maintenance import (
    Amount,
    Progress,
    append_account,
    is_artifact,
    with_references,
)
from tooltrail.store.locking import ingest_lock
from tooltrail.store.marks import mark_root, refuse_other_roots, unmark_root
from tooltrail.store.roots import mark_path, remembered_root, resolve_root

if TYPE_CHECKING:
    from tooltrail.store.store import Store

SCRATCH: Final = "relocating"
"""Folder of the spool for the object that is being copied. The next run removes what a killed run
left in it."""

_PAGE_ROWS: Final = 500
"""Rows of one question about the artifacts."""

_BLOCK: Final = 1 << 20
"""Bytes that are held at once."""

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


class ObjectCopier:
    """Copies objects one by one, at constant memory. For one thread.

    Args:
        old: from where.
        new: to where; what stands there is believed only after it was read.
        scratch: a local folder for the object that is being copied; see `ArtifactArchive.publish`.
    """

    def __init__(self, old: ArtifactArchive, new: ArtifactArchive, scratch: Path) -> None:
        self._old = old
        self._new = new
        self._scratch = scratch

    def ensure(self, path: str, size: int | None = None) -> bool:
        """Make sure that an object stands at the new root, by reading it there to its end.

        Args:
            path: of the object.
            size: plain bytes of an artifact, which is compared with its digest. None for an object
                that is compared with the stored bytes at the old root, such as a damaged one.

        Returns:
            Whether it was copied; else it was there already.

        Raises:
            MissingArtifactError: it does not stand at the old root.
            DamageError: the artifact is damaged there; the new root does not have it then.
            UnavailableError: a root cannot serve, or the new one gives back something else.
        """
        if self._new.sink.exists(path):
            if self._has_arrived(path, size):
                return False
            self._new.sink.delete(path)
        self._copy(path)
        if not self._has_arrived(path, size):
            self._new.sink.delete(path)
            if size is not None:
                self._old.verify(path, size=size)  # raises when it is the old one that is damaged
            raise UnavailableError(
                f"{self._new.sink.url} does not give back what was put at {path}"
            )
        return True

    def refuse_same_place(self) -> None:
        """Raise when an object that is put at the new root shows at the old one, too.

        Raises:
            InvalidRecordError: it does.
        """
        path, content = f"probe-{new_id()}", b"whether two artifact roots are one place\n"
        with copy_of(io.BytesIO(content), path, self._scratch) as copy:
            self._new.sink.put(path, copy)
        try:
            is_same = self._old.sink.exists(path)
        finally:
            self._new.sink.delete(path)
        if is_same:
            raise InvalidRecordError(
                f"the artifacts are in {self._new.sink.url} already: it is the same place as"
                f" {self._old.sink.url}"
            )

    def _copy(self, path: str) -> None:
        with self._old.sink.open(path) as stored, copy_of(stored, path, self._scratch) as copy:
            self._new.sink.put(path, copy)

    def _has_arrived(self, path: str, size: int | None) -> bool:
        if size is not None:
            with suppress(DamageError):
                self._new.verify(path, size=size)
                return True
            return False
        with self._old.sink.open(path) as ours, self._new.sink.open(path) as theirs:
            while block := ours.read(_BLOCK):
                if theirs.read(len(block)) != block:
                    return False
            return not theirs.read(1)


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
        old = store.archive.sink  # the archive of the store follows to the new root
        refuse_other_roots(old, store.info.id)
        new = _open_new_root(store, old.url, resolve_root(target, remembered))
        scratch = store.spool / SCRATCH
        copier = ObjectCopier(ArtifactArchive(old), ArtifactArchive(new), scratch)
        report = RelocationReport(new_id(), old.url, new.url)
        try:
            copier.refuse_same_place()
            with _marked(store, new, remembered, report):
                for _ in _copies(store.database, old, copier, report):
                    if on_progress:
                        done = report.copied + report.sound
                        on_progress(done.count, done.stored_bytes)
                if allow_damage:
                    for path in report.damaged:
                        copier.ensure(path)
                if allow_damage or not (report.damaged or report.missing):
                    confirm()
                    _switch(store, remembered, report)
            if report.switched and delete_old:
                _delete_old(store, old, report, confirm)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
            if report.switched or report.copied.count:
                append_account(store.spool, report.run_id, "relocate", report.details())
    return report


@contextmanager
def _marked(
    store: "Store", new: ArtifactSink, remembered: str, report: RelocationReport
) -> Generator[None]:
    """The new root is marked as the store's, and stays so when the store comes to use it.

    A mark on a folder that does not have the artifacts would say that it has. It stays also where
    nobody can say whether the store uses the root, since the database is away.
    """
    store_id = store.info.id
    was_marked = new.exists(mark_path(store_id))
    try:
        mark_root(new, store_id, str(store.database.target), store.spool)
        yield
    finally:
        if not was_marked and not report.switched:
            with suppress(TooltrailError):
                with store.database.read() as connection:
                    root = read_info(connection).artifact_root
                if root != remembered:
                    unmark_root(new, store_id)


def _copies(
    database: Database, old: ArtifactSink, copier: ObjectCopier, report: RelocationReport
) -> Iterator[None]:
    """Copy one object after the other. Yields after each object that arrived."""
    for path, size, stored_size in _objects(database, old):
        try:
            is_new = copier.ensure(path, size)
        except MissingArtifactError:
            report.missing.append(path)
        except DamageError:
            report.damaged.append(path)
        else:
            (report.copied if is_new else report.sound).add(stored_size)
            yield


def _switch(store: "Store", remembered: str, report: RelocationReport) -> None:
    """Let the store remember the new root, durably, and go on there."""
    with store.database.write() as connection:
        connection.execute("UPDATE store_info SET artifact_root = ?", (remembered,))
    report.switched = True
    make_durable(store.database)
    store.settings = replace(store.settings, artifacts=None)
    _ = store.info


def _delete_old(
    store: "Store", old: ArtifactSink, report: RelocationReport, confirm: Callable[[], None]
) -> None:
    """Delete at the old root what was read back from the new one, and then its mark."""
    kept = {*report.damaged, *report.missing}
    for path, _, stored_size in _objects(store.database, old):
        if path not in kept:
            confirm()
            with suppress(MissingArtifactError):  # deleted by a run that was killed
                old.delete(path)
                report.deleted.add(stored_size)
    # Last: without it nobody could tell what is gone from what is on a disk that is away.
    unmark_root(old, store.info.id)


def _objects(database: Database, old: ArtifactSink) -> Iterator[tuple[str, int | None, int]]:
    """Path, size and stored size of each object that moves.

    These are the artifacts of the store, of which those erased have no object, and the damaged
    objects that were set apart, whose size nobody knows.
    """
    for stat in old.list(f"{DAMAGED}/"):
        yield stat.path, None, stat.stored_size
    last = -1
    while True:
        # Page by page: a server ends a transaction that waits for a slow root.
        with database.read() as connection:
            rows = connection.query(
                "SELECT key, digest, size, stored_size FROM artifacts WHERE key > ? AND digest"
                " NOT IN (SELECT digest FROM tombstones WHERE kind = 'artifact')"
                " ORDER BY key LIMIT ?",
                (last, _PAGE_ROWS),
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


def _open_new_root(store: "Store", old: str, url: str) -> ArtifactSink:
    _refuse_nested(old, url)
    sink = open_sink(url, create=True)
    if not (sink.capabilities.durable and sink.capabilities.cross_process):
        raise InvalidRecordError(f"{sink.url} is not durable storage")
    for stat, is_referenced in with_references(store.database, sink.list()):
        if is_artifact(stat.path) and not is_referenced:
            raise InvalidRecordError(
                f"{sink.url} holds artifacts of something else, such as {stat.path}: "
                "an artifact root belongs to one store"
            )
    return sink
