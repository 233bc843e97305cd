"""Lists of the invocations with the greatest duration, output or cut."""

from dataclasses import replace
from typing import Final

from tooltrail.records.errors import InvalidRecordError
from tooltrail.store.engines.connection import Connection
from tooltrail.store.filters import InvocationFilter
from tooltrail.store.read.columns import LARGE_BYTES, Columns, Computed, damage_of
from tooltrail.store.read.conditions import conditions_of
from tooltrail.store.read.expression_sql import CUT_SIZE
from tooltrail.store.read.pages import SMALL_COLUMNS, WITH_SESSION, simplified, view_of
from tooltrail.store.read.rows import Sql, check_limit, fetch, limited, where
from tooltrail.store.views import InvocationView

RANKED: Final = {
    "duration": Sql("invocations.duration_ms"),
    "size": Sql("invocations.output_size"),
    "cut": CUT_SIZE,
}
"""What a list can be ranked by, and its SQL."""

_RANKED_VIEW: Final = Columns(
    *SMALL_COLUMNS, optional=(Computed("ranked.value", "rank", "integer"),)
)


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
    if by != "duration" and limit is not None and not least_first and filters.min_size is None:
        # Large outputs have an index. Mostly there are enough of them.
        large = replace(filters, min_size=LARGE_BYTES)
        found = _rows(connection, large, by, limit, least_first=False)
        if len(found) == limit and found[-1][1] >= LARGE_BYTES:
            return found
    found = _rows(connection, filters, by, limit, least_first=least_first)
    rest = None if limit is None else limit - len(found)
    if connection.is_sqlite and by != "cut" and rest != 0:
        found += _rows(connection, filters, by, rest, least_first=least_first, is_number=">= ''")
    return found


def _rows(
    connection: Connection,
    filters: InvocationFilter,
    by: str,
    limit: int | None,
    *,
    least_first: bool,
    is_number: str = "< ''",
) -> list[tuple[InvocationView, int]]:
    # SQLite may hold a text in a column of numbers, and sorts it behind all numbers.
    has_value = RANKED[by] + Sql(f" {is_number}", (), Sql(" IS NOT NULL"))
    order = f"{'ASC' if least_first else 'DESC'}, invocations.started_at DESC, invocations.key DESC"
    chosen = (
        Sql("SELECT invocations.key, ")
        + RANKED[by]
        + " AS value FROM invocations"
        + where([has_value, *conditions_of(filters)])
        + f" ORDER BY value {order}"
        + limited(limit)
    )
    query = Sql(f"SELECT {_RANKED_VIEW.sql} FROM (") + chosen
    query += f") AS ranked CROSS JOIN {WITH_SESSION} WHERE invocations.key = ranked.key"
    found: list[tuple[InvocationView, int]] = []
    for row in fetch(connection, query + f" ORDER BY ranked.value {order}"):
        values, problems = _RANKED_VIEW.read(row)
        damage = damage_of("invocations", values["key"], problems)
        found.append((view_of(values, damage), values["rank"] or 0))
    return found
