"""The search: candidates from the index or all records, then the real texts, newest first.

A hit is only what stands in the texts as they are recorded: they are read and checked like `show`
reads them. So a stale index shows nothing that is erased or altered.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal
from uuid import UUID

from tooltrail.records.errors import NotFoundError, TooltrailError
from tooltrail.store.filters import ALL, InvocationFilter
from tooltrail.store.read.bodies import load_bodies
from tooltrail.store.read.columns import Columns, Computed
from tooltrail.store.read.details import details_of
from tooltrail.store.read.reader import Reader
from tooltrail.store.read.rows import Sql, fetch_each
from tooltrail.store.search.owners import Owner, Owners
from tooltrail.store.search.queries import FOLDER, PathQuery, Place, Query
from tooltrail.store.search.texts import (
    OpenArchive,
    Piece,
    edges_of,
    pieces_of,
    read_edges,
    text_of,
)
from tooltrail.store.views import InvocationDetail, InvocationView, StreamView

_IDS: Final = Columns("invocations: key id")
_MESSAGE: Final = Columns(
    "messages: key id seq role created_at text document",
    Computed("sessions.id", "session_id", "id"),
)
_MESSAGES: Final = (
    f"SELECT {_MESSAGE.sql} FROM messages"
    " LEFT JOIN sessions ON sessions.key = messages.session_key WHERE "
)


@dataclass(frozen=True, slots=True)
class Hit:
    """A call or a message in which something was found.

    Attributes:
        kind: which of the two.
        name: name of the tool, or role of the message.
        outcome: how the call ended; empty for a message.
        title: the beginning of the arguments; empty for a message.
        at: when the call started, or the message was recorded.
        places: where, one for each text that has it; never empty.
        cursor: continues behind this hit.
    """

    kind: Literal["call", "message"]
    id: UUID
    session_id: UUID
    seq: int
    name: str
    outcome: str
    title: str
    at: datetime
    places: tuple[Place, ...]
    cursor: str


class Search:
    """One search.

    Args:
        reader: reads the store.
        open_archive: returns the archive, for long streams.
        query: what to search for.
        where: the filter; if it names tools, outcomes or the like, messages are not searched.
        oldest_first: whether the oldest hit comes first.
        cursor: the `cursor` of the hit to continue behind.
        context: lines to keep before and after each place.
        on_progress: called with the number of calls and messages that were searched so far.

    Attributes:
        unread: why a call or a stream could not be read.
    """

    def __init__(
        self,
        reader: Reader,
        open_archive: OpenArchive,
        query: Query,
        where: InvocationFilter = ALL,
        *,
        oldest_first: bool = False,
        cursor: str | None = None,
        context: int = 0,
        on_progress: Callable[[int], object] = bool,
    ) -> None:
        self.unread: list[str] = []
        self._reader = reader
        self._open_archive = open_archive
        self._query = query
        self._context = context
        self._on_progress = on_progress
        self._in_artifacts: dict[str, list[Place]] = {}
        self._folders: dict[UUID, str] = {}
        self._owners = Owners(
            reader.database, where, query.phrases, oldest_first=oldest_first, cursor=cursor
        )

    def hits(self, first: int = 32) -> Iterator[Hit]:
        """The hits in order. `first` is how many calls and messages to read at first.

        Raises:
            UnavailableError, DamageError: the store cannot be read.
            InvalidRecordError: the cursor does not come from a hit.
        """
        done = 0
        for batch in self._owners.batches(first):
            calls = self._calls([one.key for one in batch if not one.is_message])
            messages = self._messages([one.key for one in batch if one.is_message])
            for owner in batch:
                find = messages.get if owner.is_message else calls.get
                value = find(owner.key)
                done += 1
                if value is not None:
                    hit = (
                        self._in_message(owner, value)
                        if owner.is_message
                        else self._in_call(owner, value)
                    )
                    if hit is not None:
                        yield hit
                self._on_progress(done)

    def _calls(self, keys: Sequence[int]) -> dict[int, InvocationDetail]:
        if not keys:
            return {}
        with self._reader.database.read() as connection:
            select = Sql(f"SELECT {_IDS.sql} FROM invocations WHERE ")
            rows = fetch_each(connection, select, "invocations.key", keys)
            ids = {values["id"]: values["key"] for values, _ in map(_IDS.read, rows)}
            which = Sql(f"invocations.key IN ({', '.join('?' * len(keys))})", tuple(keys))
            found = details_of(connection, which)
        return {ids[one.summary.id]: one for one in found if one.summary.id in ids}

    def _messages(self, keys: Sequence[int]) -> dict[int, tuple[dict[str, Any], list[Piece]]]:
        if not keys:
            return {}
        with self._reader.database.read() as connection:
            rows = fetch_each(connection, Sql(_MESSAGES), "messages.key", keys)
            read = [_MESSAGE.read(row)[0] for row in rows]
            bodies = load_bodies(connection, [one["text"] for one in read])
        found: dict[int, tuple[dict[str, Any], list[Piece]]] = {}
        for values in read:
            body = bodies[values["text"]]
            if body.damage is not None:
                self.unread.append(f"message {values['id']}: {body.damage}")
            text = text_of(body.data or b"")
            found[values["key"]] = values, [Piece("text", text, "transcript")]
        return found

    def _in_message(self, owner: Owner, found: tuple[dict[str, Any], list[Piece]]) -> Hit | None:
        values, pieces = found
        places = self._query.find(pieces, self._context)
        if not places:
            return None
        role, at = values["role"], values["created_at"]
        names = (values["id"], values["session_id"], values["seq"], role, "", "", at)
        return Hit("message", *names, tuple(places), str(owner.number))

    def _in_call(self, owner: Owner, detail: InvocationDetail) -> Hit | None:
        view = detail.summary
        if detail.damage is not None:
            self.unread.append(f"call {view.id}: {detail.damage}")
            return None
        long = list[Place]()
        for stream in detail.streams:
            long += self._in_long_stream(stream)
        pieces = pieces_of(detail, self._read)
        if isinstance(self._query, PathQuery):
            pieces = iter([Piece(FOLDER, self._folder(view.session_id), ""), *pieces])
        places = [*long, *self._query.find(pieces, self._context)]
        return _hit_of(view, places, owner) if places else None

    def _in_long_stream(self, stream: StreamView) -> list[Place]:
        """Search all of a stream that `_read` does not return as a whole."""
        path = stream.artifact_path
        if path is None or self._query.phrases is not None:
            return []
        if path not in self._in_artifacts:
            piece, found = Piece(stream.role, "", "complete", path), list[Place]()
            try:
                reader = self._open_archive().reader(path, size=stream.size)
                found = self._query.grep(reader, piece, self._context) or []
            except TooltrailError as error:
                self.unread.append(f"{path}: {error}")
            self._in_artifacts[path] = found
        return [one._replace(name=stream.role) for one in self._in_artifacts[path]]

    def _read(self, stream: StreamView) -> list[tuple[int, bytes]]:
        """The parts of a stream to search as pieces; none that `_in_long_stream` has searched."""
        if stream.erasure is not None or isinstance(self._query, PathQuery):
            return []
        try:
            if stream.artifact_path is not None:
                if self._query.phrases is None:
                    return []
                return read_edges(self._open_archive, stream.artifact_path, stream.size)
            with self._reader.open_stream(stream) as source:
                data = source.read()
        except NotFoundError:
            return []
        except TooltrailError as error:
            self.unread.append(f"stream {stream.role} of call {stream.invocation_id}: {error}")
            return []
        return [(0, data)] if self._query.phrases is None else edges_of(data)

    def _folder(self, session_id: UUID) -> str:
        """The folder in which a session began; `/` if unknown."""
        if session_id not in self._folders:
            folder: object = None
            with suppress(TooltrailError, ValueError):
                folder = json.loads(self._reader.session(session_id).environment).get("cwd")
            self._folders[session_id] = folder if isinstance(folder, str) else "/"
        return self._folders[session_id]


def _hit_of(view: InvocationView, places: Sequence[Place], owner: Owner) -> Hit:
    return Hit(
        "call",
        view.id,
        view.session_id,
        view.seq,
        view.tool_name,
        view.outcome,
        view.arguments_preview,
        view.started_at,
        tuple(places),
        str(owner.number),
    )
