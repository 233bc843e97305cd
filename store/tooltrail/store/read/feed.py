"""Reports invocations that began or ended since the last poll, for programs that follow a store."""

from dataclasses import replace
from typing import Final

from tooltrail.store.engines.connection import Connection
from tooltrail.store.filters import ALL, InvocationFilter
from tooltrail.store.read.conditions import conditions_of
from tooltrail.store.read.environments import resolved
from tooltrail.store.read.pages import SMALL, WITH_SESSION, invocation_view
from tooltrail.store.read.reader import Reader
from tooltrail.store.read.rows import Sql, fetch, fetch_each, fetch_value, joined
from tooltrail.store.views import InvocationView

_LOOK_BACK: Final = 1_000
"""Number of keys before the newest to read again. On PostgreSQL, a smaller key may be committed
later than a greater one."""

# The first condition selects the partial index.
_OPEN: Final = Sql("SELECT key FROM invocations WHERE state <> 'success' AND state = 'started'")

_ORDER: Final = " ORDER BY invocations.key"


class InvocationFeed:
    """Follows the beginnings and ends of invocations from the first poll on. For one thread.

    Each poll costs two index scans, whatever the size of the store.

    Args:
        reader: reader of the store.
        where: the invocations to report. The filter is applied at the time of the poll.
    """

    def __init__(self, reader: Reader, where: InvocationFilter = ALL) -> None:
        self._database = reader.database
        self._where = where
        self._newest: int | None = None
        self._recent: set[int] = set()
        self._open: set[int] = set()

    def poll(self) -> list[InvocationView]:
        """The invocations that began or ended since the last poll, in the order of their keys.

        The first poll returns none. An invocation that began and ended is returned once.
        """
        with self._database.read() as connection:
            where = self._where
            if where.expression is not None:
                where = replace(where, expression=resolved(connection, [where.expression]))
            # The lead is the key: few keys are read, so no index of the filter is needed.
            fits = [one + " AND " for one in conditions_of(where, lead="key")]
            query = Sql(f"SELECT {SMALL.sql} FROM {WITH_SESSION} WHERE ") + joined("", fits)
            keys = sorted(self._changes(connection))
            rows = fetch_each(connection, query, "invocations.key", keys, _ORDER)
            return [invocation_view(row) for row in rows]

    def _changes(self, connection: Connection) -> set[int]:
        """The keys of the invocations that began or ended."""
        still_open = _keys(connection, _OPEN)
        ended, self._open = self._open - still_open, still_open
        is_first, newest = self._newest is None, self._newest
        if newest is None:
            newest = int(fetch_value(connection, Sql("SELECT max(key) FROM invocations")) or 0)
        behind = Sql("SELECT key FROM invocations WHERE key > ?", (newest - _LOOK_BACK,))
        recent = _keys(connection, behind)
        began = recent - self._recent
        newest = self._newest = max(recent, default=newest)
        self._recent = {key for key in recent if key > newest - _LOOK_BACK}
        return set() if is_first else began | ended


def _keys(connection: Connection, query: Sql) -> set[int]:
    return {row[0] for row in fetch(connection, query)}
