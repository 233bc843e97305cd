"""The search: candidates from the index or all records, then the real texts.

A hit is only what stands in the texts as they are recorded: they are read and checked like `show`
reads them. So a stale index shows nothing that is erased or altered.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime
from itertools import islice
from typing import Final, TypeAlias
from uuid import UUID

from tooltrail.records.errors import NotFoundError, TooltrailError
from tooltrail.store.filters import ALL, InvocationFilter
from tooltrail.store.read.bodies import Body, load_bodies
from tooltrail.store.read.columns import Columns, Computed
from tooltrail.store.read.details import details_of
from tooltrail.store.read.environments import members_of
from tooltrail.store.read.reader import Reader
from tooltrail.store.read.rows import Sql, fetch_each, is_in
from tooltrail.store.search.owners import Owner, iter_owners
from tooltrail.store.search.queries import LineQuery, PathQuery, Place, Query, folder_of
from tooltrail.store.search.texts import (
    OpenArchive,
    Piece,
    edges_of,
    pieces_of,
    spoken_of,
    text_of,
)
from tooltrail.store.views import InvocationDetail, StreamView

_AT_ONCE: Final = 256
"""Most calls and messages that are read at once."""

_MESSAGE: Final = Columns(
    "messages: key id seq role text document", Computed("sessions.id", "session_id", "id")
)
_MESSAGES: Final = (
    f"SELECT {_MESSAGE.sql} FROM messages"
    " LEFT JOIN sessions ON sessions.key = messages.session_key WHERE "
)


@dataclass(frozen=True, slots=True)
class Hit:
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
    cursor: str
    outcome: str = ""
    title: str = ""
    places: tuple[Place, ...] = ()


_Found: TypeAlias = Iterator[tuple[Owner, tuple[Hit, Iterable[Piece]]]]
"""What may be hits, without places in their texts yet, and their texts."""


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
    _in_artifacts: dict[str, list[Place]] = field(
        default_factory=dict[str, list[Place]], init=False
    )

    def hits(self, first: int = 32) -> Iterator[Hit]:
        """The hits in order, once. `first` is how many calls and messages to read at first.

        Raises:
            UnavailableError, DamageError: the store cannot be read.
        """
        done, size = 0, first
        owners = iter_owners(
            self.reader.database,
            self.where,
            self.query,
            oldest_first=self.oldest_first,
            cursor=self.cursor,
        )
        while batch := list(islice(owners, min(size, _AT_ONCE))):
            size *= 2
            found = dict(self._calls([one for one in batch if not one.is_message]))
            found.update(self._messages([one for one in batch if one.is_message]))
            for owner in batch:
                done += 1
                if owner in found:
                    hit, pieces = found[owner]
                    places = (*hit.places, *self.query.find(pieces, self.context))
                    if places:
                        self.hit_count += 1
                        yield replace(hit, places=places)
                if self.on_progress is not None:
                    self.on_progress(done, self.artifact_bytes)

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
                hit = Hit(
                    kind="call",
                    id=view.id,
                    session_id=view.session_id,
                    seq=view.seq,
                    name=view.tool_name,
                    outcome=view.outcome,
                    title=view.arguments_preview,
                    at=view.started_at,
                    places=tuple(self._in_long_streams(detail)),
                    cursor=str(by_id[view.id].number),
                )
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
            hit = Hit(
                kind="message",
                id=one["id"],
                session_id=one["session_id"],
                seq=one["seq"],
                name=one["role"],
                at=owner.at,
                cursor=str(owner.number),
            )
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
            if path not in self._in_artifacts:
                self._in_artifacts[path] = []
                self.artifact_bytes += stream.size
                try:
                    reader = self.open_archive().reader(path, size=stream.size)
                    self._in_artifacts[path] = self.query.grep(reader, self.context)
                except TooltrailError as error:
                    self.unread.append(f"{path}: {error}")
            places += [replace(one, name=stream.role) for one in self._in_artifacts[path]]
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
