"""Which invocations began or ended since the last look, for those who follow a store."""

from collections.abc import Sequence
from typing import Final

from tooltrail.store.engines.connection import Connection
from tooltrail.store.engines.database import Database
from tooltrail.store.filters import ALL, InvocationFilter
from tooltrail.store.read.conditions import conditions_of
from tooltrail.store.read.invocations import SMALL, WITH_SESSION, invocation_view
from tooltrail.store.read.rows import Sql, fetch, fetch_each, fetch_value, is_in, where
from tooltrail.store.views import InvocationView

_LOOK_BACK: Final = 1_000
"""Keys before the newest that are read again: on PostgreSQL a smaller key may be committed later."""

_NEWEST: Final = Sql("SELECT max(key) FROM invocations")
# The first condition is that of the partial index.
_OPEN: Final = Sql("SELECT key FROM invocations WHERE state <> 'success' AND state = 'started'")


class InvocationFeed:
    """What begins and ends in a store from the first look on. One thread.

    Each look costs two index scans, whatever the size of the store.

    Args:
        database: of the store.
        filters: give these alone, each as it is when it is given.
    """

    def __init__(self, database: Database, filters: InvocationFilter = ALL) -> None:
        self._database = database
        self._filters = filters
        self._newest: int | None = None
        self._recent: set[int] = set()
        self._open: set[int] = set()

    def poll(self) -> list[InvocationView]:
        """The invocations that began or ended since the last look, in the order of their keys.

        The first look gives none. An invocation that began and ended since is given once.

        Raises:
            DamageError, UnavailableError: see `Reader`.
        """
        with self._database.read() as connection:
            keys = sorted(self._changes(connection))
            return [invocation_view(row) for row in fetch_each(connection, self._select, keys)]

    def _select(self, keys: Sequence[object]) -> Sql:
        conditions = [is_in("invocations.key", keys), *conditions_of(self._filters, lead="key")]
        query = Sql(f"SELECT {SMALL.sql} FROM {WITH_SESSION}")
        return query + where(conditions) + " ORDER BY invocations.key"

    def _changes(self, connection: Connection) -> set[int]:
        """The keys of what began or ended."""
        still_open = _keys(connection, _OPEN)
        ended, self._open = self._open - still_open, still_open
        is_first = self._newest is None
        newest = fetch_value(connection, _NEWEST) or 0 if self._newest is None else self._newest
        low = newest - _LOOK_BACK
        recent = _keys(connection, Sql("SELECT key FROM invocations WHERE key > ?", (low,)))
        began = recent - self._recent
        self._newest = max(recent, default=newest)
        self._recent = {key for key in recent if key > self._newest - _LOOK_BACK}
        return set() if is_first else began | ended


def _keys(connection: Connection, query: Sql) -> set[int]:
    return {row[0] for row in fetch(connection, query)}
