"""Moves the artifacts of a store to another root.

Every object that the store refers to is copied, read back at the new root and checked against its
digest. Then the new root is stored in `store_info`. An object that is at the new root already is
read and not copied again, so that an interrupted run can simply be repeated.

No ingester runs at the same time. Recorders still append to their journals. Open stores use the new
root at their next read or ingest. Unreferenced objects are not moved: `prune` handles them.
"""

import io
import shutil
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
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
from tooltrail.store.roots import (
    mark_path,
    real_root,
    refuse_nested,
    refuse_spool,
    remembered_root,
    resolve_root,
)

if TYPE_CHECKING:
    from tooltrail.store.store import Store

SCRATCH: Final = "relocating"
"""Folder of the spool for the object that is being copied. The next run removes the files that a
killed run left in it."""

_PAGE_ROWS: Final = 500
"""Rows per query of the artifacts."""

_BLOCK: Final = 1 << 20
"""Bytes that are compared at once."""

_NAMED: Final = 100
"""Most paths that the account of a run names; all are counted."""


@dataclass(slots=True)
class RelocationReport:
    """The result of a relocation.

    Attributes:
        run_id: id of its maintenance fact.
        root_before: the URL from which objects were copied.
        root_after: the URL of the new root.
        copied: objects that were copied and read back.
        sound: objects that were at the new root already and were read to their end.
        damaged: paths of artifacts that are damaged at the old root.
        missing: paths of artifacts that are missing at the old root.
        switched: whether the store uses the new root now.
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
        """The report as JSON members for the maintenance fact."""
        named = {"damaged": self.damaged[:_NAMED], "missing": self.missing[:_NAMED]}
        counted = {"damaged_count": len(self.damaged), "missing_count": len(self.missing)}
        return {**asdict(self), "run_id": str(self.run_id), **named, **counted}


class ObjectCopier:
    """Copies objects one by one, at constant memory. For one thread.

    An object at the new root is trusted only after it was read. `scratch` is a local folder for the
    object that is being copied; see `ArtifactArchive.publish`.
    """

    def __init__(self, old: ArtifactArchive, new: ArtifactArchive, scratch: Path) -> None:
        self._old = old
        self._new = new
        self._scratch = scratch

    def ensure(self, path: str, size: int | None = None) -> bool:
        """Make sure that an object is at the new root: copy it if needed, and read it to its end.

        `size` is the uncompressed size of an artifact, which is compared with its digest. It is
        None for an object to compare with the stored bytes at the old root, such as a damaged one.
        Returns whether the object was copied.

        Raises:
            MissingArtifactError: the object is not at the old root.
            DamageError: the artifact is damaged at the old root; the new root does not have it.
            UnavailableError: a root cannot be used, or the new root returns other bytes.
        """
        if self._new.sink.exists(path):
            if self._has_arrived(path, size):
                return False
            self._new.sink.delete(path)
        self._copy(path)
        if not self._has_arrived(path, size):
            self._new.sink.delete(path)
            if size is not None:
                self._old.verify(path, size=size)  # raises if the object at the old root is damaged
            url = self._new.sink.url
            raise UnavailableError(f"{url} does not give back what was put at {path}")
        return True

    def refuse_same_place(self) -> None:
        """Raise `InvalidRecordError` if both roots are one place.

        A probe at the new root must not be at the old one.
        """
        path, content = f"probe-{new_id()}", b"whether two artifact roots are one place\n"
        with copy_of(io.BytesIO(content), path, self._scratch) as copy:
            self._new.sink.put(path, copy)
        try:
            is_same = self._old.sink.exists(path)
        finally:
            self._new.sink.delete(path)
        if is_same:
            raise _same_place(self._old.sink.url, self._new.sink.url)

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
    """Move the artifacts of a store to another root, and store the new root in the database.

    If a run changed anything, it ends with a fact in the journal, even if it failed or was
    interrupted. A killed run leaves no fact.

    Args:
        store: the store. Copies from the artifact root with which it was opened.
        new_root: folder or URL; a missing folder is created.
        allow_damage: move even if artifacts are damaged or missing; they are then also damaged or
            missing at the new root. Otherwise such artifacts prevent the move.
        delete_old: delete objects at the old root that were read back from the new one.
        on_progress: see `Progress`.

    Raises:
        InvalidRecordError: the new root is the old one or the spool, or is inside one of them or
            around it. Or the new one is not durable, belongs to another store, or holds artifacts
            of something else. Or the old one does not have the mark of this store.
        UnavailableError: the store, a root or the journal cannot be used, or the new root returns
            other bytes than were written.
    """
    target = store.database.target
    remembered = remembered_root(target, new_root)
    with ingest_lock(store.database, exclusive=True) as confirm:
        old = store.archive.sink  # `store.archive` will move to the new root
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
    """Mark the new root, and remove a new mark if the store does not use the root in the end.

    A mark on a root without the artifacts would be wrong. The mark also stays if the database is
    unreachable, since then it is unknown whether the store uses the root.
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
    """Copy one object after the other. Yields after each object that is at the new root."""
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
    """Store the new root in the database, durably, and use it from now on."""
    with store.database.write() as connection:
        connection.execute("UPDATE store_info SET artifact_root = ?", (remembered,))
    report.switched = True
    make_durable(store.database)
    store.options["artifacts"] = None


def _delete_old(
    store: "Store", old: ArtifactSink, report: RelocationReport, confirm: Callable[[], None]
) -> None:
    """Delete the objects at the old root that were read back from the new one, then the mark."""
    kept = {*report.damaged, *report.missing}
    for path, _, stored_size in _objects(store.database, old):
        if path not in kept:
            confirm()
            with suppress(MissingArtifactError):  # deleted by a killed run
                old.delete(path)
                report.deleted.add(stored_size)
    # Last: without the mark, a cleared root would look like an unmounted disk.
    unmark_root(old, store.info.id)


def _objects(database: Database, old: ArtifactSink) -> Iterator[tuple[str, int | None, int]]:
    """Path, size and stored size of each object that moves.

    These are the artifacts of the store without the erased ones, which have no object, and the
    damaged objects in the separate folder, whose size is unknown. A size in a damaged row is
    unknown, too.
    """
    for stat in old.list(f"{DAMAGED}/"):
        yield stat.path, None, stat.stored_size
    last = -1
    while True:
        # One transaction per page: a server ends a transaction that waits for a slow root.
        with database.read() as connection:
            rows = connection.query(
                "SELECT key, digest, size, stored_size FROM artifacts WHERE key > ? AND digest"
                " NOT IN (SELECT digest FROM tombstones WHERE kind = 'artifact')"
                " ORDER BY key LIMIT ?",
                (last, _PAGE_ROWS),
            )
        for _, digest, *numbers in rows:
            if isinstance(digest, bytes):  # `verify` names the rows that are damaged
                size, stored_size = (one if isinstance(one, int) else None for one in numbers)
                yield artifact_path(digest_from(digest)), size, stored_size or 0
        if not rows:
            return
        last = rows[-1][0]


def _open_new_root(store: "Store", old: str, url: str) -> ArtifactSink:
    refuse_nested(old, url)
    refuse_spool(store.spool, url)
    if real_root(old) == real_root(url):
        # Objects that no record refers to are not those of something else here.
        raise _same_place(old, url)
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


def _same_place(old: str, new: str) -> InvalidRecordError:
    return InvalidRecordError(f"the artifacts are in {new} already: it is the same place as {old}")
