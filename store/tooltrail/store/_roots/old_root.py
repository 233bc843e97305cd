"""Deleting at the old root what was read back from the new one, when the artifacts were moved.

A deletion takes as long as the root takes to answer, and one that does not answer takes minutes. So
nobody who records is held off by it, nor needs to be: they are at the new root. The old one could
come to be used again only by another run that moves the artifacts back, and while something is
deleted here none can begin.
"""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress

from tooltrail.records import MissingArtifactError, TooltrailError, UnavailableError
from tooltrail.store._recording.upkeep import read_upkeep
from tooltrail.store._roots.maintenance import MaintenanceRun
from tooltrail.store._roots.marks import unmark_root
from tooltrail.store._roots.references import in_chunks
from tooltrail.store._roots.same_place import TwoPlaces
from tooltrail.store.pruning_plan import Amount
from tooltrail.store.store import Store

_COUNTED_AT_ONCE = 50
"""Objects after which the account of a run is brought up to date."""


class OldRoot:
    """The root from which a run has moved the artifacts. One thread.

    Args:
        store: whose artifacts.
        places: the old root and the new one, at which what is deleted is to stay.
        run: that deletes.
        remembered: the new root, as the store remembers it.
        deleted: counts what is deleted.
    """

    def __init__(
        self,
        store: Store,
        places: TwoPlaces,
        run: MaintenanceRun,
        remembered: str,
        deleted: Amount,
    ) -> None:
        self._store = store
        self._sink = places.old
        self._places = places
        self._run = run
        self._remembered = remembered
        self._deleted = deleted

    def delete(self, at_both: Mapping[str, int]) -> None:
        """Delete objects, and then the mark of the root.

        What is not there any more was deleted by a run that was killed.

        Args:
            at_both: paths of the objects, and their sizes as stored.

        Raises:
            InvalidRecordError: what is there shows at the new root, and would be gone at both.
            UnavailableError: another run has taken over or has moved the artifacts elsewhere, it
                may be back; or the database or the old root cannot be reached.
        """
        for some in in_chunks(at_both.items(), _COUNTED_AT_ONCE):
            before = Amount(self._deleted.count, self._deleted.stored_bytes)
            try:
                self._delete(some)
            except BaseException:
                # What went wrong there is worth more than that nobody can note it.
                with suppress(TooltrailError):
                    self._account_since(before)
                raise
            self._account_since(before)
        # Last: without it nobody could tell what is gone from what is on a disk that is away.
        with self._moved() as confirm:
            confirm()
            unmark_root(self._sink, self._store.info.id)

    def _delete(self, some: list[tuple[str, int]]) -> None:
        with self._moved() as confirm:
            for path, stored_size in some:
                confirm()
                self._places.ensure_behind(path)
                with suppress(MissingArtifactError):
                    self._sink.delete(path)
                    self._deleted.count += 1
                    self._deleted.stored_bytes += stored_size

    def _account_since(self, before: Amount) -> None:
        now = self._deleted
        with self._store.database.write() as connection:
            self._run.count(
                connection, now.count - before.count, now.stored_bytes - before.stored_bytes
            )

    @contextmanager
    def _moved(self) -> Generator[Callable[[], None]]:
        """While the block lasts the artifacts stay at the new root, where they are."""
        with self._run.alone() as confirm:
            with self._store.database.read() as connection:
                root = read_upkeep(connection).artifact_root
            if root != self._remembered:
                raise UnavailableError(
                    "the artifacts were moved once more meanwhile; nothing more is deleted"
                )
            yield confirm
