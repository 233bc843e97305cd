"""How much a store takes. A limit shortens what is kept of an output; it never stops a record."""

from dataclasses import dataclass

from sqlalchemy import func, select

from tooltrail.artifacts import CaptureLimits
from tooltrail.records import UnavailableError
from tooltrail.store._database import Database
from tooltrail.store.tables import ArtifactRow


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """Limits of one store, as one process has them.

    Attributes:
        store_bytes: stored bytes of all artifacts together; None for no limit. It is compared when
            a capture begins, so that captures that run at the same time can exceed it together.
        free_bytes: see `CaptureLimits`.
    """

    store_bytes: int | None = None
    free_bytes: int | None = None

    def for_capture(self, database: Database, stream_bytes: int | None) -> CaptureLimits:
        """The limits of a capture that begins now.

        While the database cannot say how much there is, there is no limit for all artifacts.
        """
        used = None if self.store_bytes is None else _stored_bytes(database)
        if self.store_bytes is None or used is None:
            return CaptureLimits(stream_bytes, self.free_bytes)
        room = self.store_bytes - used
        return CaptureLimits(stream_bytes, self.free_bytes, self.store_bytes, room)


def _stored_bytes(database: Database) -> int | None:
    try:
        with database.read() as connection:
            return int(connection.scalar(select(func.sum(ArtifactRow.stored_size))) or 0)
    except UnavailableError:
        return None
