"""Reading a store: lists by key, one invocation with all its surfaces, a stream's bytes."""

import io
from pathlib import Path
from typing import BinaryIO, cast
from uuid import UUID

from sqlalchemy import select

from tooltrail.artifacts import ArtifactArchive, artifact_path
from tooltrail.records import (
    DamageError,
    Digest,
    DigestMismatchError,
    MissingArtifactError,
    UnavailableError,
    digest_of,
)
from tooltrail.store._engines.database import Database
from tooltrail.store._reading import details, names, offers, pages, queries
from tooltrail.store._reading.ranges import RangeKeeper
from tooltrail.store._recording.bodies import decode_body
from tooltrail.store.filters import ALL, InvocationFilter
from tooltrail.store.tables import BodyRow, PolicyRow
from tooltrail.store.views import (
    ArtifactView,
    InvocationDetail,
    InvocationView,
    MessageView,
    Page,
    SessionView,
    StoreCounts,
    StreamView,
    ToolView,
    WaitingStream,
)


class Reader:
    """Questions to a store. Each answer is one snapshot; safe to share between threads.

    Every method raises `UnavailableError` when the store cannot be reached and `DamageError` when
    what it holds is not what was stored.

    Attributes:
        database: where it asks.
        spool: where output may wait that is not stored yet.
    """

    def __init__(
        self, database: Database, archive: ArtifactArchive, spool: Path, ranges: RangeKeeper
    ) -> None:
        self.database = database
        self.spool = spool
        self._archive = archive
        self._ranges = ranges

    def invocations(
        self,
        where: InvocationFilter = ALL,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        oldest_first: bool = False,
    ) -> Page[InvocationView]:
        """A page of invocations, the newest first unless asked otherwise.

        Raises:
            InvalidRecordError: a cursor that no page gave, or a limit below 1.
        """
        with self.database.read() as connection:
            page, is_late = pages.page(connection, where, limit, cursor, oldest_first=oldest_first)
        if is_late:
            self._ranges.make_some()
        return page

    def count_invocations(self, where: InvocationFilter = ALL) -> int:
        """How many invocations a filter means; reads an index, or all rows for some filters."""
        with self.database.read() as connection:
            return pages.count(connection, where)

    def invocation(self, name: str | UUID) -> InvocationDetail:
        """One invocation with all its surfaces.

        Args:
            name: its id, a unique beginning or end of it, `SESSION#SEQ`, `@last`, `@last:TOOL`.

        Raises:
            NotFoundError: no invocation has this name; AmbiguousNameError: several have.
        """
        with self.database.read() as connection:
            found = names.find_invocation(connection, str(name))
            return details.details_of(connection, found)

    def session(self, name: str | UUID) -> SessionView:
        """One session by its id, a unique beginning or end of it, or `@last`.

        Raises:
            NotFoundError: no session has this name; AmbiguousNameError: several have.
        """
        with self.database.read() as connection:
            found = names.find_session(connection, str(name))
            return queries.sessions(connection, only=found)[0]

    def sessions(
        self, *, limit: int | None = None, cursor: UUID | None = None
    ) -> list[SessionView]:
        """Sessions, the newest first.

        Args:
            limit: at most so many.
            cursor: go on behind the session with this id, the last of the page before.

        Raises:
            InvalidRecordError: a limit below 1.
            NotFoundError: there is no session of that id.
        """
        with self.database.read() as connection:
            if cursor is not None:
                names.session_key(connection, cursor)
            return queries.sessions(connection, limit=limit, cursor=cursor)

    def session_key(self, session_id: UUID) -> int:
        """The internal key of a session.

        Raises:
            NotFoundError: there is no such session.
        """
        with self.database.read() as connection:
            return names.session_key(connection, session_id)

    def conversation(
        self, name: str | UUID, *, payloads: bool = False
    ) -> tuple[SessionView, list[MessageView], list[InvocationDetail]]:
        """Everything of one session, each part in the order of its `seq`, from one snapshot.

        Args:
            name: as for `session`.
            payloads: whether to read what providers sent of the messages, too.

        Raises:
            NotFoundError: no session has this name; AmbiguousNameError: several have.
        """
        with self.database.read() as connection:
            found = names.find_session(connection, str(name))
            return (
                queries.sessions(connection, only=found)[0],
                details.messages_of(connection, found, payloads=payloads),
                details.details_of_session(connection, found),
            )

    def tools(self, name: str | None = None, *, latest: bool = False) -> list[ToolView]:
        """Every version of every tool that models were offered, by name and then by time.

        Args:
            name: of one tool; all when None.
            latest: whether to give of each tool only the version that was offered last.

        Raises:
            DamageError: a definition is not what its digest names.
        """
        with self.database.read() as connection:
            return offers.all_tools(connection, name, latest=latest)

    def offered_tools(self, session: str | UUID) -> list[ToolView]:
        """The tools that a session offered last, in its order.

        Args:
            session: as for `session`.

        Raises:
            NotFoundError: no session has this name; AmbiguousNameError: several have.
            DamageError: a definition is not what its digest names.
        """
        with self.database.read() as connection:
            return offers.offered_tools(connection, names.find_session(connection, str(session)))

    def policy_json(self, digest: Digest) -> str:
        """The canonical JSON of a policy that shaped a record.

        Raises:
            DamageError: it is missing or altered.
        """
        with self.database.read() as connection:
            found = connection.scalar(select(PolicyRow.document).where(PolicyRow.digest == digest))
        document = cast("object", found)
        if document is None:
            raise DamageError(f"policy {digest} is missing", path=digest)
        if not isinstance(document, str):  # SQLite keeps a blob where text belongs
            raise DamageError(f"policy {digest} is damaged: it is not text", path=digest)
        if digest_of(document.encode()) != digest:
            raise DigestMismatchError(
                f"policy {digest} is damaged: it has another digest", path=digest
            )
        return document

    def open_stream(self, stream: StreamView) -> BinaryIO:
        """The bytes of a stream, checked against its digest and size while they are read.

        Raises:
            UnavailableError: they wait in this spool, see `repair`; or the sink is away.
            DamageError: the bytes are missing, cut, altered or erased; here or at a later read.
                `MissingArtifactError` when they were not stored and are not in this spool either.
        """
        if stream.artifact_path is not None:
            if stream.artifact_path != artifact_path(stream.digest):
                raise DamageError(
                    f"stream {stream.role} is damaged: its path is not that of its digest",
                    path=stream.artifact_path,
                )
            return self._archive.open(stream.artifact_path, size=stream.size)
        with self.database.read() as connection:
            row = connection.execute(
                select(BodyRow.size, BodyRow.encoding, BodyRow.data).where(
                    BodyRow.digest == stream.digest
                )
            ).one_or_none()
            if row is None and stream.postponed_reason is None:
                raise DamageError(f"body {stream.digest} is missing", path=stream.digest)
            # Within the block, where a value that is not of its column's kind is damage.
            if row is not None:
                return io.BytesIO(decode_body(stream.digest, row.size, row.encoding, row.data))
        return self._open_postponed(stream)

    def _open_postponed(self, stream: StreamView) -> BinaryIO:
        path = artifact_path(stream.digest)
        if self.artifacts(beginning=path):
            return self._archive.open(path, size=stream.size)
        with self.database.read() as connection:
            waiting = queries.waiting_streams(connection, None, stream.digest)
        if not waiting:  # stored a moment ago
            return self._archive.open(path, size=stream.size)
        for one in waiting:
            if one.may_be_in(self.spool):
                raise UnavailableError(f"stream {stream.role} {one.sentence(self.spool)}")
        said = f"stream {stream.role} {waiting[0].sentence(self.spool)}"
        raise MissingArtifactError(said, path=path)

    def artifacts(
        self,
        *,
        invocation: UUID | None = None,
        session: UUID | None = None,
        beginning: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> list[ArtifactView]:
        """The artifacts that the store knows, by path.

        Args:
            invocation: those of this invocation alone.
            session: those of this session alone.
            beginning: those whose path begins so; a whole path is the beginning of itself.
            limit: at most so many.
            cursor: go on behind this path, the last of the page before.

        Raises:
            InvalidRecordError: a limit below 1.
        """
        with self.database.read() as connection:
            return queries.artifacts(
                connection,
                invocation=invocation,
                session=session,
                beginning=beginning,
                limit=limit,
                cursor=cursor,
            )

    def waiting_streams(self, session: UUID | None = None) -> list[WaitingStream]:
        """The streams whose bytes are not in the store yet, the oldest first; reads all rows.

        They are in the spool where they were recorded, from which `repair` stores them.
        """
        with self.database.read() as connection:
            return queries.waiting_streams(connection, session, None)

    def artifact_owners(self, path: str) -> list[UUID]:
        """The invocations that refer to an artifact, the oldest first.

        Raises:
            InvalidRecordError: not the path of an artifact.
        """
        with self.database.read() as connection:
            return queries.artifact_owners(connection, path)

    def counts(self, *, with_bodies: bool = False) -> StoreCounts:
        """Totals of the store; reads every row of the counted tables.

        Args:
            with_bodies: count the bodies too, by far the largest of them.
        """
        with self.database.read() as connection:
            return queries.counts(connection, with_bodies=with_bodies)
