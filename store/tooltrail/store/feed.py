"""Which invocations began or ended since the last look, for those who follow a store."""

from collections.abc import Iterable

from sqlalchemy import Connection, select

from tooltrail.store._reading.conditions import condition_of
from tooltrail.store._reading.queries import invocation_view, select_invocations
from tooltrail.store.filters import ALL, InvocationFilter
from tooltrail.store.reader import Reader
from tooltrail.store.tables import InvocationRow
from tooltrail.store.views import InvocationView

_LOOK_BACK = 1_000
"""Keys before the newest that are looked at again: on PostgreSQL one that was given out earlier
may be committed later."""

_MANY = 500
"""Keys in one query."""

_STARTED = InvocationFilter(states=("started",))


class InvocationFeed:
    """What changes in a store. One thread.

    It begins with the present: what has ended before is not told, what is running is told when it
    ends. Each look costs two index scans, whatever the size of the store.
    """

    def __init__(self, reader: Reader, where: InvocationFilter = ALL) -> None:
        """Prepare; nothing is asked yet.

        Args:
            reader: of the store.
            where: tell of these alone, each as it is when it is told.
        """
        self._database = reader.database
        self._where = where
        self._newest: int | None = None
        self._recent: set[int] = set()
        self._open: set[int] = set()

    def poll(self) -> list[InvocationView]:
        """The invocations that began or ended since the last time, in the order of beginning.

        The first time there are none. One that began and ended is told once, as it is now.

        Raises:
            DamageError, UnavailableError: see `Reader`.
        """
        with self._database.read() as connection:
            began, ended = self._changes(connection)
            return [
                invocation_view(row)
                for keys in _chunks(sorted(began | ended))
                for row in connection.execute(
                    select_invocations()
                    .where(InvocationRow.key.in_(keys), condition_of(self._where))
                    .order_by(InvocationRow.key)
                )
            ]

    def _changes(self, connection: Connection) -> tuple[set[int], set[int]]:
        key = InvocationRow.key
        still_open = set(connection.scalars(select(key).where(condition_of(_STARTED))))
        ended, self._open = self._open - still_open, still_open
        if self._newest is None:
            newest = connection.scalar(select(key).order_by(key.desc()).limit(1)) or 0
            self._newest = newest
            self._recent = set(connection.scalars(select(key).where(key > newest - _LOOK_BACK)))
            return set(), set()
        low = self._newest - _LOOK_BACK
        recent = set(connection.scalars(select(key).where(key > low)))
        began = recent - self._recent
        self._newest = max(recent, default=self._newest)
        self._recent = {n for n in recent if n > self._newest - _LOOK_BACK}
        return began, ended


def _chunks(keys: list[int]) -> Iterable[list[int]]:
    return (keys[start : start + _MANY] for start in range(0, len(keys), _MANY))
