"""Totals of a store; each reads every row of the table that it counts."""

from typing import Any, Final

from tooltrail.store.engines.connection import Connection
from tooltrail.store.read.rows import Sql, fetch, fetch_value
from tooltrail.store.views import StoreCounts


def _sum(of: str) -> str:
    """The sum, 0 of no rows; an integer, where PostgreSQL gives a decimal."""
    return f"CAST(coalesce(sum({of}), 0) AS bigint)"


_INVOCATIONS: Final = Sql(
    f"SELECT state, count(*), {_sum('output_size')}, {_sum('lost_size')},"
    f" {_sum('CASE WHEN lost_size > 0 THEN 1 ELSE 0 END')} FROM invocations GROUP BY state"
)
_ARTIFACTS: Final = Sql(f"SELECT count(*), {_sum('size')}, {_sum('stored_size')} FROM artifacts")
_BODIES: Final = Sql(f"SELECT count(*), {_sum('size')}, {_sum('length(data)')} FROM bodies")
_SESSIONS: Final = Sql("SELECT count(*) FROM sessions")


def count_store(connection: Connection, *, with_bodies: bool) -> StoreCounts:
    """See `Reader.counts`."""
    by_state = fetch(connection, _INVOCATIONS)
    produced, lost, lossy = (sum(row[n] for row in by_state) for n in (2, 3, 4))
    bodies: Any = fetch(connection, _BODIES)[0] if with_bodies else (None, None, None)
    return StoreCounts(
        fetch_value(connection, _SESSIONS),
        {str(row[0]): row[1] for row in by_state},
        produced,
        lost,
        lossy,
        *bodies,
        *fetch(connection, _ARTIFACTS)[0],
    )
