"""The calls and messages that may be hits, in the order of time.

Both are read from their own tables, by keyset, and merged. A cursor is the number of the owner of
the last hit; see `index`.
"""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from heapq import merge
from typing import Final, NamedTuple
from uuid import UUID

from tooltrail.store.engines.connection import Connection
from tooltrail.store.engines.database import Database
from tooltrail.store.filters import LISTS, InvocationFilter
from tooltrail.store.read.columns import Columns
from tooltrail.store.read.conditions import conditions_of
from tooltrail.store.read.environments import environments_where
from tooltrail.store.read.expression_sql import has_run_in
from tooltrail.store.read.pages import Order, key_of
from tooltrail.store.read.rows import Sql, fetch, is_in, limited, where
from tooltrail.store.search.index import owners_with, what_is_behind
from tooltrail.store.search.queries import PathQuery, Query, folder_of
from tooltrail.store.search.words import Phrase

_TABLES: Final = (("invocations", "started_at"), ("messages", "created_at"))
"""The tables of calls and of messages, with their times."""

_NOT_OF_MESSAGES: Final = {*LISTS, "min_size", "expression"} - {"sessions", "agents"}
"""Members of a filter that messages do not have."""

_FIRST_ROWS, _MORE_ROWS = 512, 4_096

_FEW: Final = 10_000
"""Most owners that a query names. More are compared while all owners are read in order."""

_WAITING: Final = "SELECT o.key FROM ledger_entries AS e"
_RANGE: Final = "WHERE e.journal_key = ? AND e.n >= ? AND e.n < ?"


class Owner(NamedTuple):
    """A call or a message, in the order of a search: of one time, calls are older."""

    at: datetime
    is_message: bool
    key: int
    id: UUID

    @property
    def number(self) -> int:
        """The number of the owner in the index."""
        return self.key * 2 + self.is_message


def iter_owners(
    database: Database,
    filters: InvocationFilter,
    query: Query,
    *,
    oldest_first: bool,
    cursor: str | None,
) -> Iterator[Owner]:
    """The calls and messages that may be hits.

    Args:
        database: the database.
        filters: the filter; messages have no tool and no outcome, so such a filter excludes them.
        query: the query; if it has no phrases, all of them may be hits.
        oldest_first: whether the order is ascending.
        cursor: the number of the owner to continue behind.

    Raises:
        InvalidRecordError: the cursor is not a number.
    """
    after = None if cursor is None else key_of(cursor)
    found: set[int] | None = None
    if query.phrases is not None:
        with database.read() as connection:
            found = _may_be_hits(connection, query, query.phrases)
    of_calls = [name for name in _NOT_OF_MESSAGES if getattr(filters, name) not in ((), None)]
    yield from merge(
        *(
            _of_table(database, filters, found, after, is_message, oldest_first=oldest_first)
            for is_message in ((False,) if of_calls else (False, True))
        ),
        reverse=not oldest_first,
    )


def _of_table(
    database: Database,
    filters: InvocationFilter,
    found: set[int] | None,
    after: int | None,
    is_message: bool,
    *,
    oldest_first: bool,
) -> Iterator[Owner]:
    table, time = _TABLES[is_message]
    other, other_time = _TABLES[not is_message]
    columns = Columns(f"{table}: key {time} id")
    # The index of a table is in the order of time, which few owners need not follow.
    hint = "+" if found is not None and len(found) <= _FEW else ""
    fixed = conditions_of(filters, lead="invocations" if hint else "started_at")
    if is_message:
        fixed = _of_messages(filters, hint)
    if found is not None and hint:
        keys = sorted(one >> 1 for one in found if one & 1 == is_message)
        in_list = f"{table}.key IN (SELECT value FROM json_each(?))"
        fixed.append(Sql(in_list, (json.dumps(keys),), Sql(f"{table}.key = ANY(?)", (keys,))))
    order = Order(time, oldest_first, None, indexed=not hint, table=table)
    if after is not None and after & 1 == is_message:
        order = order._replace(after=after >> 1)
    elif after is not None:
        # The cursor is in the other table. Of one time, every call is before every message.
        sign = (">" if oldest_first else "<") + ("=" if is_message == oldest_first else "")
        at = f"(SELECT last.{other_time} FROM {other} AS last WHERE last.key = ?)"
        fixed.append(Sql(f"{hint}{table}.{time} {sign} {at}", (after >> 1,)))
    size = _FIRST_ROWS
    while True:
        conditions = where([*fixed, *order.conditions()])
        select = Sql(f"SELECT {columns.sql} FROM {table}") + conditions + order.clause
        with database.read() as connection:
            rows = [columns.read(row)[0] for row in fetch(connection, select + limited(size))]
        owners = (Owner(one[time], is_message, one["key"], one["id"]) for one in rows)
        yield from (one for one in owners if found is None or one.number in found)
        if len(rows) < size:
            return
        order, size = order._replace(after=rows[-1]["key"]), _MORE_ROWS


def _of_messages(filters: InvocationFilter, hint: str) -> list[Sql]:
    place = f"{hint}messages.created_at"
    times = ((">=", filters.since), ("<", filters.until))
    found = [Sql(f"{place} {sign} ?", (at,)) for sign, at in times if at]
    for source, values in (("id", filters.sessions), ("agent", filters.agents)):
        if values:
            mine = Sql("messages.session_key IN (SELECT key FROM sessions WHERE ")
            found.append(mine + is_in(source, values) + ")")
    return found


def _may_be_hits(connection: Connection, query: Query, phrases: Sequence[Phrase]) -> set[int]:
    """The owners that have the words, and those with facts that the index does not have yet."""
    found = owners_with(connection, phrases)
    for behind in what_is_behind(connection):
        for is_message, (table, _) in enumerate(_TABLES):
            waiting = Sql(f"{_WAITING} JOIN {table} AS o ON o.id = e.subject_id {_RANGE}", behind)
            found.update(int(row[0]) * 2 + is_message for row in fetch(connection, waiting))
    if isinstance(query, PathQuery):
        ran_in = environments_where(connection, lambda has: bool(query.find([folder_of(has)], 0)))
        if ran_in:
            select = Sql("SELECT invocations.key FROM invocations") + where([has_run_in(ran_in)])
            found.update(int(row[0]) * 2 for row in fetch(connection, select))
    return found
