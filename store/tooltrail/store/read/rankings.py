"""Lists of the invocations with the greatest duration, output or cut."""

from typing import Final

from tooltrail.records.errors import InvalidRecordError
from tooltrail.store.engines.connection import Connection
from tooltrail.store.filters import InvocationFilter
from tooltrail.store.read.columns import LARGE_BYTES
from tooltrail.store.read.conditions import conditions_of
from tooltrail.store.read.pages import SMALL, WITH_SESSION, invocation_view, simplified
from tooltrail.store.read.rows import Sql, check_limit, fetch, limited, where
from tooltrail.store.views import InvocationView

RANKED: Final = {
    "duration": Sql("invocations.duration_ms"),
    "size": Sql("invocations.output_size"),
    "cut": Sql("surfaces.cut_size"),
}
"""What a list can be ranked by, and its SQL."""

_FEW: Final = ("sessions", "invocations", "agents", "error_kinds", "exit_statuses", "signals")
"""The members of a filter that mostly leave fewer calls than were cut."""


def ranked(
    connection: Connection,
    filters: InvocationFilter,
    by: str,
    limit: int | None,
    *,
    least_first: bool,
) -> list[tuple[InvocationView, int]]:
    """See `Reader.ranked_invocations`."""
    check_limit(limit)
    if by not in RANKED:
        raise InvalidRecordError(f"no rank {by!r:.80}; there are {', '.join(RANKED)}")
    filters = simplified(filters)
    if by == "size" and limit is not None and not least_first and filters.min_size is None:
        # Large outputs have an index. Mostly there are enough of them.
        large = filters.replaced(min_size=LARGE_BYTES)
        found = _listed(connection, large, RANKED[by], limit, "DESC")
        if len(found) == limit and found[-1][1] >= LARGE_BYTES:
            return found
    return _listed(connection, filters, RANKED[by], limit, "ASC" if least_first else "DESC")


def _listed(
    connection: Connection, filters: InvocationFilter, value: Sql, limit: int | None, way: str
) -> list[tuple[InvocationView, int]]:
    # SQLite may hold a text in a column of numbers. A number is less than every text.
    is_number = value + Sql(" < ''", (), Sql(" IS NOT NULL"))
    order = f"{way}, invocations.started_at DESC, invocations.key DESC"
    source, conditions = "invocations", [is_number, *conditions_of(filters)]
    if value == RANKED["cut"]:
        # SQLite reads a CROSS JOIN in its order. Without it, SQLite reads all calls of a tool
        # first, usually many more than were cut.
        is_few = any(getattr(filters, name) for name in _FEW)
        source = "surfaces, invocations" if is_few else "surfaces CROSS JOIN invocations"
        conditions.append(Sql("surfaces.invocation_key = invocations.key"))
    chosen = Sql("SELECT invocations.key, ") + value + f" AS value FROM {source}"
    chosen += where(conditions)
    chosen += Sql(f" ORDER BY value {order}") + limited(limit)
    query = Sql(f"SELECT {SMALL.sql}, ranked.value FROM (") + chosen
    query += f") AS ranked CROSS JOIN {WITH_SESSION} WHERE invocations.key = ranked.key"
    rows = fetch(connection, query + f" ORDER BY ranked.value {order}")
    return [(invocation_view(row), row[-1]) for row in rows]
