"""The calls and messages that may be hits, in the order of time.

Both are read from their own tables, by keyset, and merged. A cursor is the number of the owner of
the last hit; see `index`.
"""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from heapq import merge
from itertools import islice
from typing import Final, NamedTuple
from uuid import UUID

from tooltrail.records.errors import InvalidRecordError
from tooltrail.store.engines.connection import Connection
from tooltrail.store.engines.database import Database
from tooltrail.store.expressions import RanIn
from tooltrail.store.filters import LISTS, InvocationFilter
from tooltrail.store.read.columns import Columns
from tooltrail.store.read.conditions import conditions_of
from tooltrail.store.read.environments import read_environments
from tooltrail.store.read.expression_sql import condition_of
from tooltrail.store.read.rows import MAX_KEY_DIGITS, Sql, fetch, is_in, limited, where
from tooltrail.store.search.index import owners_with, what_is_behind
from tooltrail.store.search.queries import PathQuery, Query
from tooltrail.store.search.words import Phrase

_TABLES: Final = (("invocations", "started_at"), ("messages", "created_at"))
"""The tables of calls and of messages, with their times."""

_OF_CALLS: Final = {*LISTS, "min_size", "expression"} - {"sessions", "agents"}
"""Members of a filter that messages do not have."""

_AT_ONCE: Final = 256

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


class Owners:
    """Selects the calls and messages that may be hits.

    Args:
        database: the database.
        filters: the filter; messages have no tool and no outcome, so such a filter excludes them.
        query: the query; if it has no phrases, all of them may be hits.
        oldest_first: whether the order is ascending.
        cursor: the number of the owner to continue behind.

    Raises:
        InvalidRecordError: the cursor is not a number.
    """

    def __init__(
        self,
        database: Database,
        filters: InvocationFilter,
        query: Query,
        *,
        oldest_first: bool,
        cursor: str | None,
    ) -> None:
        self._database = database
        self._filters = filters
        self._query = query
        self._oldest_first = oldest_first
        self._found: set[int] | None = None
        self._hint = ""
        self._after: int | None = None
        if cursor is not None:
            if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= MAX_KEY_DIGITS):
                raise InvalidRecordError(f"not a cursor of this list: {cursor[:40]!r}")
            self._after = int(cursor)

    def batches(self, first: int) -> Iterator[list[Owner]]:
        """The owners in batches: the first has `first`, later ones have more."""
        if self._query.phrases is not None:
            with self._database.read() as connection:
                self._found = _may_be_hits(connection, self._query, self._query.phrases)
            # The index of a table is in the order of time, which few owners need not follow.
            self._hint = "+" if len(self._found) <= _FEW else ""
        of_calls = [name for name in _OF_CALLS if getattr(self._filters, name) not in ((), None)]
        sources = [self._source(is_message) for is_message in (False, True)[: 1 + (not of_calls)]]
        found, size = merge(*sources, reverse=not self._oldest_first), first
        while batch := list(islice(found, min(size, _AT_ONCE))):
            yield batch
            size *= 2

    def _source(self, is_message: bool) -> Iterator[Owner]:
        table, time = _TABLES[is_message]
        columns = Columns(f"{table}: key {time} id")
        way = "ASC" if self._oldest_first else "DESC"
        order = f" ORDER BY {self._hint}{table}.{time} {way}, {table}.key {way}"
        after, size = self._after, 2 * _AT_ONCE
        while True:
            with self._database.read() as connection:
                conditions = self._conditions(is_message)
                conditions += [] if after is None else self._behind(after, is_message)
                select = Sql(f"SELECT {columns.sql} FROM {table}") + where(conditions)
                rows = [
                    columns.read(row)[0]
                    for row in fetch(connection, select + order + limited(size))
                ]
            owners = (Owner(one[time], is_message, one["key"], one["id"]) for one in rows)
            found = self._found
            yield from (one for one in owners if found is None or one.number in found)
            if len(rows) < size:
                return
            after, size = rows[-1]["key"] * 2 + is_message, 16 * _AT_ONCE

    def _conditions(self, is_message: bool) -> list[Sql]:
        filters, found = self._filters, list[Sql]()
        if is_message:
            for source, values in (("id", filters.sessions), ("agent", filters.agents)):
                if values:
                    mine = Sql("messages.session_key IN (SELECT key FROM sessions WHERE ")
                    found.append(mine + is_in(source, values) + ")")
            times = ((">=", filters.since), ("<", filters.until))
            found += [Sql(f"messages.created_at {sign} ?", (at,)) for sign, at in times if at]
        else:
            found += conditions_of(filters, lead="invocations" if self._hint else "started_at")
        if self._found is not None and self._hint:
            keys = sorted(one >> 1 for one in self._found if one & 1 == is_message)
            key = f"{_TABLES[is_message][0]}.key"
            on_server = Sql(f"{key} = ANY(?)", (keys,))
            found.append(
                Sql(f"{key} IN (SELECT value FROM json_each(?))", (json.dumps(keys),), on_server)
            )
        return found

    def _behind(self, after: int, is_message: bool) -> list[Sql]:
        """The conditions for rows behind an owner, which may be in the other table."""
        key, was_message = after >> 1, bool(after & 1)
        table, time = _TABLES[is_message]
        other, other_time = _TABLES[was_message]
        column = f"{self._hint}{table}.{time}"
        at = f"(SELECT last.{other_time} FROM {other} AS last WHERE last.key = ?)"
        sign = ">" if self._oldest_first else "<"
        if is_message == was_message:
            behind = Sql(f"({column} {sign} {at} OR {table}.key {sign} ?)", (key, key))
            return [Sql(f"{column} {sign}= {at}", (key,)), behind]
        same = "=" if was_message != self._oldest_first else ""
        return [Sql(f"{column} {sign}{same} {at}", (key,))]


def _may_be_hits(connection: Connection, query: Query, phrases: Sequence[Phrase]) -> set[int]:
    """The owners that have the words, and those with facts that the index does not have yet."""
    found = owners_with(connection, phrases)
    for behind in what_is_behind(connection):
        for is_message, (table, _) in enumerate(_TABLES):
            waiting = Sql(f"{_WAITING} JOIN {table} AS o ON o.id = e.subject_id {_RANGE}", behind)
            found.update(int(row[0]) * 2 + is_message for row in fetch(connection, waiting))
    if isinstance(query, PathQuery):
        known = read_environments(connection).items()
        ran_in = RanIn(tuple(one for one, has in known if query.span(str(has.get("cwd")))))
        select = Sql("SELECT invocations.key FROM invocations") + where([condition_of(ran_in)])
        found.update(int(row[0]) * 2 for row in fetch(connection, select))
    return found
