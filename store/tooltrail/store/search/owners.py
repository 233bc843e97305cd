"""The calls and messages that may be hits, in the order of time, in batches.

Calls and messages are read from their own tables, by keyset, and merged. A cursor is the number of
the owner of the last hit; see `index`.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from heapq import merge
from itertools import islice
from typing import Any, Final, NamedTuple

from tooltrail.records.errors import InvalidRecordError
from tooltrail.store.engines.connection import Connection
from tooltrail.store.engines.database import Database
from tooltrail.store.filters import LISTS, InvocationFilter
from tooltrail.store.read.columns import Columns
from tooltrail.store.read.conditions import conditions_of, member_conditions, time_conditions
from tooltrail.store.read.rows import (
    MAX_KEY_DIGITS,
    Sql,
    fetch,
    fetch_value,
    is_in,
    joined,
    limited,
    where,
)
from tooltrail.store.search.index import Behind, select_owners, what_is_behind
from tooltrail.store.search.words import Phrase

_CALL: Final = Columns("invocations: key started_at")
_MESSAGE: Final = Columns("messages: key created_at")
_OF_MESSAGES: Final = frozenset({"sessions", "agents"})
"""Lists of a filter that messages have, too."""

_AT_ONCE: Final = 256


class Owner(NamedTuple):
    """A call or a message, in the order of a search.

    Attributes:
        at: when it began.
        is_message: whether it is a message.
        key: its key.
    """

    at: datetime
    is_message: bool
    key: int

    @property
    def number(self) -> int:
        """The number of the owner in the index."""
        return self.key * 2 + self.is_message


class Owners:
    """Selects the calls and messages that may be hits.

    Args:
        database: the database.
        filters: the filter; messages have no tool and no outcome, so such a filter excludes them.
        phrases: the words that they must have; None for all of them, without the index.
        oldest_first: whether the order is ascending.
        cursor: the number of the owner to continue behind.
    """

    def __init__(
        self,
        database: Database,
        filters: InvocationFilter,
        phrases: Sequence[Phrase] | None,
        *,
        oldest_first: bool,
        cursor: str | None,
    ) -> None:
        self._database = database
        self._filters = filters
        self._phrases = phrases
        self._oldest_first = oldest_first
        self._cursor = None if cursor is None else _number_of(cursor)

    def batches(self, first: int) -> Iterator[list[Owner]]:
        """The owners in batches: the first has `first`, the others have more."""
        sources = [self._source(is_message=False)]
        if self._with_messages():
            sources.append(self._source(is_message=True))
        found = merge(*sources, reverse=not self._oldest_first)
        size = min(first, _AT_ONCE)
        while batch := list(islice(found, size)):
            yield batch
            size = min(2 * size, _AT_ONCE)

    def _with_messages(self) -> bool:
        names = [name for name in LISTS if getattr(self._filters, name)]
        return self._filters.min_size is None and _OF_MESSAGES.issuperset(names)

    def _source(self, *, is_message: bool) -> Iterator[Owner]:
        after, size = self._cursor, 32
        columns = _MESSAGE if is_message else _CALL
        while True:
            with self._database.read() as connection:
                query = self._select(connection, after, size, is_message=is_message)
                rows = [columns.read(row)[0] for row in fetch(connection, query)]
            for values in rows:
                key, at = values.values()
                yield Owner(at, is_message, key)
            if len(rows) < size:
                return
            after, size = rows[-1]["key"] * 2 + is_message, min(4 * size, 16 * _AT_ONCE)

    def _select(
        self, connection: Connection, after: int | None, size: int, *, is_message: bool
    ) -> Sql:
        table, column, columns = ("invocations", "started_at", _CALL)
        if is_message:
            table, column, columns = ("messages", "created_at", _MESSAGE)
        conditions = self._conditions(is_message=is_message)
        hint = ""
        if self._phrases is not None:
            # The owners are few: they are read by their keys, not in the order of time.
            conditions.append(self._may_be_hits(connection, table, is_message=is_message))
            hint = "+"
        if after is not None:
            conditions += self._behind(after, table, f"{hint}{table}.{column}")
        way = "ASC" if self._oldest_first else "DESC"
        order = f" ORDER BY {hint}{table}.{column} {way}, {table}.key {way}"
        return Sql(f"SELECT {columns.sql} FROM {table}") + where(conditions) + order + limited(size)

    def _conditions(self, *, is_message: bool) -> list[Sql]:
        filters = self._filters
        if not is_message and self._phrases is None:
            return conditions_of(filters, lead="started_at")
        if not is_message:
            lists = [member_conditions(filters, n, indexed=False) for n in (*LISTS, "min_size")]
            return [
                *(one for some in lists for one in some),
                *time_conditions(filters, indexed=False),
            ]
        found: list[Sql] = []
        for source, values in (("id", filters.sessions), ("agent", filters.agents)):
            if values:
                mine = Sql("messages.session_key IN (SELECT key FROM sessions WHERE ")
                found.append(mine + is_in(source, values) + ")")
        if filters.since is not None:
            found.append(Sql("messages.created_at >= ?", (filters.since,)))
        if filters.until is not None:
            found.append(Sql("messages.created_at < ?", (filters.until,)))
        return found

    def _may_be_hits(self, connection: Connection, table: str, *, is_message: bool) -> Sql:
        parts = [select_owners(connection, self._phrases or ())]
        parts += [_select_behind(one, is_message=is_message) for one in what_is_behind(connection)]
        numbers = joined(
            " UNION ALL ",
            [Sql("SELECT * FROM (") + one + f") AS p{n}" for n, one in enumerate(parts)],
        )
        owned = f"SELECT p.owner >> 1 FROM ("
        kind = f") AS p WHERE p.owner & 1 = {int(is_message)}"
        return Sql(f"{table}.key IN ({owned}") + numbers + kind + ")"

    def _behind(self, after: int, table: str, column: str) -> list[Sql]:
        """The conditions for rows behind an owner, which may be in the other table."""
        key, was_message = after >> 1, bool(after & 1)
        source, name = ("messages", "created_at") if was_message else ("invocations", "started_at")
        at = f"(SELECT last.{name} FROM {source} AS last WHERE last.key = ?)"
        sign = ">" if self._oldest_first else "<"
        if source == table:
            return [
                Sql(f"{column} {sign}= {at}", (key,)),
                Sql(f"({column} {sign} {at} OR {table}.key {sign} ?)", (key, key)),
            ]
        # Of a call and a message of one time, the call counts as the older.
        same = "=" if was_message != self._oldest_first else ""
        return [Sql(f"{column} {sign}{same} {at}", (key,))]


def _select_behind(behind: Behind, *, is_message: bool) -> Sql:
    """Select the owners whose facts the index does not have."""
    table = "messages" if is_message else "invocations"
    return Sql(
        f"SELECT (o.key << 1) | {int(is_message)} AS owner FROM ledger_entries AS e"
        f" JOIN {table} AS o ON o.id = e.subject_id WHERE e.journal_key = ? AND e.n >= ?",
        (behind.journal_key, behind.first),
    )


def _number_of(cursor: str) -> int:
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= MAX_KEY_DIGITS):
        raise InvalidRecordError(f"not a cursor of this list: {cursor[:40]!r}")
    return int(cursor)
