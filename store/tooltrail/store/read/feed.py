"""Reports invocations that began or ended since the last poll, for programs that follow a store."""

from typing import Final

from tooltrail.store.engines.connection import Connection
from tooltrail.store.filters import ALL, InvocationFilter
from tooltrail.store.read.conditions import conditions_of
from tooltrail.store.read.environments import resolved
from tooltrail.store.read.pages import SMALL, WITH_SESSION, invocation_view
from tooltrail.store.read.reader import Reader
from tooltrail.store.read.rows import Sql, fetch, fetch_each, joined
from tooltrail.store.views import InvocationView

_CHANGED: Final = """
SELECT i.key FROM ledger_entries AS e JOIN invocations AS i ON i.id = e.subject_id
WHERE e.journal_key = ? AND e.n >= ? AND e.n < ?
AND ((i.journal_key = e.journal_key AND i.start_entry = e.n)
OR (i.end_journal_key = e.journal_key AND i.end_entry = e.n))"""

_ORDER: Final = " ORDER BY invocations.key"


class InvocationFeed:
    """Follows the beginnings and ends of invocations from the first poll on. For one thread.

    Each poll reads the ledger entries since the last one, whatever the size of the store.

    Args:
        reader: reader of the store.
        where: the invocations to report. The filter is applied at the time of the poll.
    """

    def __init__(self, reader: Reader, where: InvocationFilter = ALL) -> None:
        self._database = reader.database
        self._where = where
        self._next_by_journal: dict[int, int] | None = None

    def poll(self) -> list[InvocationView]:
        """The invocations that began or ended since the last poll, in the order of their keys.

        The first poll returns none. An invocation that began and ended is returned once.
        """
        with self._database.read() as connection:
            where = self._where
            if where.expression is not None:
                where = where.replaced(expression=resolved(connection, [where.expression]))
            # The lead is the key: few keys are read, so no index of the filter is needed.
            fits = [one + " AND " for one in conditions_of(where, lead="key")]
            query = Sql(f"SELECT {SMALL.sql} FROM {WITH_SESSION} WHERE ") + joined("", fits)
            keys = sorted(self._changes(connection))
            rows = fetch_each(connection, query, "invocations.key", keys, _ORDER)
            return [invocation_view(row) for row in rows]

    def _changes(self, connection: Connection) -> set[int]:
        """The keys of the invocations that began or ended."""
        journals = fetch(connection, Sql("SELECT key, next_index FROM journals"))
        ends = {key: end for key, end in journals if isinstance(end, int)}
        begins, self._next_by_journal = self._next_by_journal, ends
        if begins is None:
            return set()
        parts = [(key, begins.get(key, 0), end) for key, end in ends.items()]
        changed = [Sql(_CHANGED, one) for one in parts if one[1] < one[2]]
        return {row[0] for one in changed for row in fetch(connection, one)}
