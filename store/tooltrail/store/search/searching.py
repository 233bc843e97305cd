"""The search: candidates from the index or all records, then the real texts.

The candidates are calls and messages in the order of time. Both are read from their own tables, by
keyset, and merged. A cursor is the number of the owner of the last hit; see `index`.

A hit is only what stands in the texts as they are recorded: they are read and checked like `show`
reads them. So a stale index shows nothing that is erased or altered.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime
from heapq import merge
from itertools import islice
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from tooltrail.records.errors import InvalidRecordError, NotFoundError, TooltrailError
from tooltrail.records.frozen import Frozen
from tooltrail.store.filters import ALL, LISTS, InvocationFilter
from tooltrail.store.read.bodies import Body, load_bodies
from tooltrail.store.read.columns import Columns, Computed
from tooltrail.store.read.conditions import conditions_of, time_conditions
from tooltrail.store.read.details import details_of
from tooltrail.store.read.environments import environments_where, members_of
from tooltrail.store.read.expression_sql import has_run_in
from tooltrail.store.read.pages import Order, key_of
from tooltrail.store.read.reader import Reader
from tooltrail.store.read.rows import Sql, fetch, fetch_each, fetch_value, is_in, limited, where
from tooltrail.store.search.index import owners_with, what_is_behind
from tooltrail.store.search.queries import LineQuery, PathQuery, Place, Query, folder_of
from tooltrail.store.search.texts import OpenArchive, Piece, edges_of, pieces_of, spoken_of, text_of
from tooltrail.store.views import InvocationDetail, StreamView

_AT_ONCE: Final = 256
"""Most calls and messages whose texts are read at once."""

_TABLES: Final = (("invocations", "started_at"), ("messages", "created_at"))
"""The tables of calls and of messages, with their times."""

_NOT_OF_MESSAGES: Final = {*LISTS, "min_size", "expression"} - {"sessions", "agents"}
"""Members of a filter that messages do not have."""

_FIRST_ROWS, _MORE_ROWS = 512, 4_096

_FEW: Final = 10_000
"""Most owners that a query names. More are compared while all owners are read in order."""

_WAITING: Final = "SELECT o.key FROM ledger_entries AS e"
_RANGE: Final = "WHERE e.journal_key = ? AND e.n >= ? AND e.n < ?"

_MESSAGE: Final = Columns(
    "messages: key id seq role text document", Computed("sessions.id", "session_id", "id")
)
_MESSAGES: Final = (
    f"SELECT {_MESSAGE.sql} FROM messages"
    " LEFT JOIN sessions ON sessions.key = messages.session_key WHERE "
)


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


class Hit(Frozen):
    """A call or a message in which something was found.

    Attributes:
        kind: `call` or `message`.
        name: name of the tool, or role of the message.
        outcome: how the call ended; empty for a message.
        title: the beginning of the arguments; empty for a message.
        at: when the call started, or the message was recorded.
        places: where, one for each text that has it.
        cursor: continues behind this hit.
    """

    kind: str
    id: UUID
    session_id: UUID
    seq: int
    name: str
    at: datetime
    outcome: str = ""
    title: str = ""
    places: tuple[Place, ...] = ()
    cursor: str = ""


_Found: TypeAlias = Iterator[tuple[Owner, tuple[Hit, Iterable[Piece]]]]
"""What may be hits, without cursor and places in their texts yet, and their texts."""


@dataclass
class Search:
    """One search.

    Attributes:
        reader: reads the store.
        open_archive: returns the archive, for long streams.
        query: what to search for.
        where: the filter; if it names tools, outcomes or the like, messages are not searched.
        oldest_first: whether the oldest hit comes first.
        cursor: the `cursor` of the hit to continue behind.
        context: lines to keep before and after each place.
        on_progress: called with the calls and messages, and the bytes of artifacts, so far.
        unread: why a call or a stream could not be read.
        artifact_bytes: bytes of the artifacts that were searched.
        hit_count: hits so far.
    """

    reader: Reader
    open_archive: OpenArchive
    query: Query
    where: InvocationFilter = ALL
    _: KW_ONLY
    oldest_first: bool = False
    cursor: str | None = None
    context: int = 0
    on_progress: Callable[[int, int], object] | None = None
    unread: list[str] = field(default_factory=list[str], init=False)
    artifact_bytes: int = field(default=0, init=False)
    hit_count: int = field(default=0, init=False)
    _grepped: dict[str, list[Place]] = field(default_factory=dict[str, list[Place]], init=False)

    def hits(self, first: int = 32) -> Iterator[Hit]:
        """The hits in order, once. `first` is how many calls and messages to read at first.

        Raises:
            UnavailableError, DamageError: the store cannot be read.
        """
        done, size, owners = 0, first, self._owners()
        while batch := list(islice(owners, min(size, _AT_ONCE))):
            size *= 2
            found = dict(self._calls([one for one in batch if not one.is_message]))
            found.update(self._messages([one for one in batch if one.is_message]))
            for owner in batch:
                done += 1
                if owner in found:
                    hit, pieces = found[owner]
                    if places := (*hit.places, *self.query.find(pieces, self.context)):
                        self.hit_count += 1
                        yield hit.replaced(places=places, cursor=str(owner.number))
                if self.on_progress is not None:
                    self.on_progress(done, self.artifact_bytes)

    def _owners(self) -> Iterator[Owner]:
        """The calls and messages that may be hits; `InvalidRecordError` for a wrong cursor."""
        after = None if self.cursor is None else key_of(self.cursor)
        if after is not None:
            query = Sql(f"SELECT 1 FROM {_TABLES[after & 1][0]} WHERE key = ?", (after >> 1,))
            with self.reader.database.read() as connection:
                if fetch_value(connection, query) is None:
                    raise InvalidRecordError(f"not a cursor of this list: {after}")
        found = self._may_be_hits()
        # Messages have no tool and no outcome, so such a filter excludes them.
        of_calls = [one for one in _NOT_OF_MESSAGES if getattr(self.where, one) not in ((), None)]
        tables = (False,) if of_calls else (False, True)
        owners = (self._of_table(is_message, found, after) for is_message in tables)
        return merge(*owners, reverse=not self.oldest_first)

    def _may_be_hits(self) -> set[int] | None:
        """The owners that have the words, and those with facts that the index does not have yet.

        None if the query has no phrases, or only words that most owners have: all may be hits.
        """
        query = self.query
        if query.phrases is None:
            return None
        with self.reader.database.read() as connection:
            found = owners_with(connection, query.phrases)
            if found is None:
                return None
            for behind in what_is_behind(connection):
                for is_message, (table, _) in enumerate(_TABLES):
                    source = f"{_WAITING} JOIN {table} AS o ON o.id = e.subject_id {_RANGE}"
                    waiting = fetch(connection, Sql(source, behind))
                    found.update(int(row[0]) * 2 + is_message for row in waiting)
            if isinstance(query, PathQuery):
                ran_in = environments_where(
                    connection, lambda has: bool(query.find([folder_of(has)], 0))
                )
                if ran_in:
                    select = Sql("SELECT invocations.key FROM invocations")
                    rows = fetch(connection, select + where([has_run_in(ran_in)]))
                    found.update(int(row[0]) * 2 for row in rows)
        return found

    def _of_table(
        self, is_message: bool, found: set[int] | None, after: int | None
    ) -> Iterator[Owner]:
        """The calls, or the messages, among `found` and behind the cursor, in order."""
        table, time = _TABLES[is_message]
        other, other_time = _TABLES[not is_message]
        columns = Columns(f"{table}: key {time} id")
        # The index of a table is in the order of time, which few owners need not follow.
        hint = "+" if found is not None and len(found) <= _FEW else ""
        fixed = conditions_of(self.where, lead="invocations" if hint else "started_at")
        if is_message:
            fixed = _of_messages(self.where, hint)
        if found is not None and hint:
            keys = sorted(one >> 1 for one in found if one & 1 == is_message)
            in_list = f"{table}.key IN (SELECT value FROM json_each(?))"
            fixed.append(Sql(in_list, (json.dumps(keys),), Sql(f"{table}.key = ANY(?)", (keys,))))
        order = Order(time, self.oldest_first, None, indexed=not hint, table=table)
        if after is not None and after & 1 == is_message:
            order = order._replace(after=after >> 1)
        elif after is not None:
            # The cursor is in the other table. Of one time, every call is before every message.
            sign = ">" if self.oldest_first else "<"
            or_equal = "=" if is_message == self.oldest_first else ""
            at = f"(SELECT last.{other_time} FROM {other} AS last WHERE last.key = ?)"
            fixed.append(Sql(f"{hint}{table}.{time} {sign}{or_equal} {at}", (after >> 1,)))
        size = _FIRST_ROWS
        while True:
            conditions = where([*fixed, *order.conditions()])
            select = Sql(f"SELECT {columns.sql} FROM {table}") + conditions + order.clause
            with self.reader.database.read() as connection:
                rows = [columns.read(row)[0] for row in fetch(connection, select + limited(size))]
            owners = (Owner(one[time], is_message, one["key"], one["id"]) for one in rows)
            yield from (one for one in owners if found is None or one.number in found)
            if len(rows) < size:
                return
            order, size = order._replace(after=rows[-1]["key"]), _MORE_ROWS

    def _calls(self, owners: Sequence[Owner]) -> _Found:
        by_id = {one.id: one for one in owners}
        with self.reader.database.read() as connection:
            keys = is_in("invocations.key", [one.key for one in owners])
            details = details_of(connection, keys) if owners else []
        for detail in details:
            view = detail.summary
            if detail.damage is not None:
                self.unread.append(f"call {view.id}: {detail.damage}")
            elif view.id in by_id:
                about = (view.tool_name, view.started_at, view.outcome, view.arguments_preview)
                places = tuple(self._in_long_streams(detail))
                hit = Hit("call", view.id, view.session_id, view.seq, *about, places)
                yield by_id[view.id], (hit, self._pieces(detail))

    def _messages(self, owners: Sequence[Owner]) -> _Found:
        by_key = {one.key: one for one in owners}
        with self.reader.database.read() as connection:
            rows = fetch_each(connection, Sql(_MESSAGES), "messages.key", list(by_key))
            read = list(map(_MESSAGE.read, rows))
            digests = (one[name] for one, _ in read for name in ("text", "document"))
            bodies = load_bodies(connection, [one for one in digests if one is not None])
        for one, problems in read:
            owner, document = by_key[one["key"]], bodies.get(one["document"], Body())
            text = bodies[one["text"]]
            damage = (*problems, text.damage, document.damage)
            self.unread += (f"message {one['id']}: {each}" for each in damage if each is not None)
            hit = Hit("message", one["id"], one["session_id"], one["seq"], one["role"], owner.at)
            texts = [("text", text_of(text.data or b"")), *spoken_of(text_of(document.data or b""))]
            yield owner, (hit, [Piece(place, one, "transcript") for place, one in texts])

    def _pieces(self, detail: InvocationDetail) -> Iterator[Piece]:
        if isinstance(self.query, PathQuery):
            yield folder_of(members_of(detail.environment))
        yield from pieces_of(detail, self._read)

    def _in_long_streams(self, detail: InvocationDetail) -> list[Place]:
        """Search the streams that are artifacts for lines; each artifact is read once."""
        if not isinstance(self.query, LineQuery):
            return []
        places: list[Place] = []
        for stream in detail.streams:
            path = stream.artifact_path
            if path is None or stream.erasure is not None:
                continue
            if path not in self._grepped:
                self._grepped[path] = []
                self.artifact_bytes += stream.size
                try:
                    reader = self.open_archive().reader(path, size=stream.size)
                    self._grepped[path] = self.query.grep(reader, self.context)
                except TooltrailError as error:
                    self.unread.append(f"{path}: {error}")
            places += [one.replaced(name=stream.role) for one in self._grepped[path]]
        return places

    def _read(self, stream: StreamView) -> list[tuple[int, bytes]]:
        """The parts of a stream to search as pieces."""
        path, is_for_lines = stream.artifact_path, isinstance(self.query, LineQuery)
        if isinstance(self.query, PathQuery) or (is_for_lines and path is not None):
            return []
        try:
            part = self.reader.parts_of(stream)
            return edges_of(part, stream.size) if not is_for_lines else [(0, part(0, stream.size))]
        except NotFoundError:
            return []  # erased
        except TooltrailError as error:
            self.unread.append(f"stream {stream.role} of call {stream.invocation_id}: {error}")
            return []


def _of_messages(filters: InvocationFilter, hint: str) -> list[Sql]:
    found = time_conditions(filters, "messages.created_at", indexed=not hint)
    for source, values in (("id", filters.sessions), ("agent", filters.agents)):
        if values:
            mine = Sql("messages.session_key IN (SELECT key FROM sessions WHERE ")
            found.append(mine + is_in(source, values) + ")")
    return found
