"""Reading a store: lists by key, one invocation with all its surfaces, a stream's bytes.

A list does not wait for the modules that only the texts of a call need: they are imported late.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO
from uuid import UUID

from tooltrail.artifacts.paths import artifact_path
from tooltrail.journal.owners import is_alive
from tooltrail.records.digests import Digest
from tooltrail.records.errors import (
    MissingArtifactError,
    NotFoundError,
    UnavailableError,
)
from tooltrail.store.engines.database import Database
from tooltrail.store.filters import ALL, InvocationFilter
from tooltrail.store.read import lists, names, pages, streams
from tooltrail.store.read.bodies import read_body
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
)

if TYPE_CHECKING:
    from tooltrail.artifacts import ArtifactArchive


class Reader:
    """Questions to a store. Each answer is one snapshot; safe to share between threads.

    A damaged row is named in its own view (`damage`), and the other rows of a list are answered.
    Every method raises `UnavailableError` when the store cannot be reached, and `DamageError` when
    the only thing that it was asked for is not what was recorded. A method with a `limit`, at most
    so many, raises `InvalidRecordError` for one below 1.

    An invocation is named by its id, a unique beginning or end of it, `SESSION#SEQ`, `@last` or
    `@last:TOOL`. A session is named by its id, the name by which producers join it, a unique
    beginning or end of its id, or `@last`. A method that takes a name raises `NotFoundError` where
    nothing has this name, and `AmbiguousNameError` where several have.

    Attributes:
        database: where it asks.
        spool: where output may wait that is not stored yet.
    """

    def __init__(
        self, database: Database, open_archive: "Callable[[], ArtifactArchive]", spool: Path
    ) -> None:
        self.database = database
        self.spool = spool
        self._open_archive = open_archive

    def invocations(
        self,
        where: InvocationFilter = ALL,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        oldest_first: bool = False,
    ) -> Page[InvocationView]:
        """A page of invocations, the newest first unless asked otherwise.

        Those of one session come in the order of the session, any others by the time of their
        start. Raises `InvalidRecordError` for a cursor that no page gave.
        """
        with self.database.read() as connection:
            return pages.page(connection, where, limit, cursor, oldest_first=oldest_first)

    def count_invocations(self, where: InvocationFilter = ALL) -> int:
        """How many invocations a filter means; reads an index, or all rows for some filters."""
        with self.database.read() as connection:
            return pages.count(connection, where)

    def invocation(self, name: str | UUID) -> InvocationDetail:
        """One invocation with all its surfaces."""
        from tooltrail.store.read.details import detail_of

        with self.database.read() as connection:
            return detail_of(connection, names.find_invocation(connection, str(name)))

    def is_running(self, name: str | UUID) -> bool:
        """Whether an invocation has not ended, and its program lives and uses this spool."""
        with self.database.read() as connection:
            key = names.find_invocation(connection, str(name))
            query = "SELECT owner FROM invocations WHERE key = ? AND state = 'started'"
            row = connection.query_one(query, (key,))
        return row is not None and row[0] is not None and is_alive(self.spool, row[0])

    def session(self, name: str | UUID) -> SessionView:
        """One session."""
        with self.database.read() as connection:
            return lists.session_view(connection, names.find_session(connection, str(name)))

    def sessions(
        self, *, limit: int | None = None, cursor: UUID | None = None
    ) -> list[SessionView]:
        """Sessions, the newest first.

        With a cursor, those behind the session with this id, the last of the page before. Raises
        `NotFoundError` where there is no such session.
        """
        with self.database.read() as connection:
            return lists.list_sessions(connection, limit=limit, cursor=cursor)

    def conversation(
        self, name: str | UUID, *, payloads: bool = False, outputs: bool = True
    ) -> tuple[SessionView, list[MessageView], list[InvocationDetail]]:
        """Everything of one session, each part in the order of its `seq`, from one snapshot.

        Args:
            name: of the session.
            payloads: whether to read what providers sent of the messages, too.
            outputs: whether to read the complete outputs of the calls with their streams, too.
        """
        from tooltrail.store.read.conversations import invocations_of, messages_of

        with self.database.read() as connection:
            key = names.find_session(connection, str(name))
            return (
                lists.session_view(connection, key),
                messages_of(connection, key, payloads=payloads),
                invocations_of(connection, key, outputs=outputs),
            )

    def tools(self, name: str | None = None, *, latest: bool = False) -> list[ToolView]:
        """Every version of one tool, or of all that models were offered, by name and then by time.

        With `latest`, of each tool only the version that was offered last.
        """
        with self.database.read() as connection:
            return lists.list_tools(connection, name, latest=latest)

    def offered_tools(self, session: str | UUID) -> list[ToolView]:
        """The tools that a session offered last, in its order."""
        with self.database.read() as connection:
            return lists.offered_tools(connection, names.find_session(connection, str(session)))

    def policy_json(self, digest: Digest) -> str:
        """The canonical JSON of a policy of a record; raises `NotFoundError` when it is erased."""
        with self.database.read() as connection:
            return read_body(connection, digest).decode()

    def open_stream(self, stream: StreamView) -> BinaryIO:
        """The bytes of a stream, checked against its digest and size while they are read.

        Raises:
            NotFoundError: the bytes are erased.
            UnavailableError: they wait in this spool, see `repair`; or the sink cannot be reached.
            DamageError: the bytes are missing, cut or altered; here or at a later read.
                `MissingArtifactError` when they were not stored and are not in this spool either.
        """
        if stream.erasure is not None:
            raise NotFoundError(f"stream {stream.erasure.sentence}")
        path = artifact_path(stream.digest)
        if stream.artifact_path is not None:
            return self._open_archive().open(path, size=stream.size)
        if stream.pending_reason is None:
            with self.database.read() as connection:
                return streams.open_in_database(connection, stream)
        with self.database.read() as connection:
            files = streams.waiting_files(connection, stream.digest)
        if not files:  # stored a moment ago
            return self._open_archive().open(path, size=stream.size)
        if any(streams.may_be_file(self.spool / one) for one in files):
            raise UnavailableError(
                f"stream {stream.role} is not stored yet, `tooltrail repair` does that:"
                f" {stream.pending_reason}"
            )
        raise MissingArtifactError(
            f"stream {stream.role} is missing: it was not stored when its call ended"
            f" ({stream.pending_reason}), and is not in the spool {self.spool}; if it was recorded"
            " with another spool, repair that one",
            path=path,
        )

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
            cursor: go on behind this path, the last of the page before; `InvalidRecordError` when
                it is not the path of an artifact.
        """
        with self.database.read() as connection:
            return lists.list_artifacts(
                connection,
                invocation=invocation,
                session=session,
                beginning=beginning,
                limit=limit,
                cursor=cursor,
            )

    def artifact_owners(self, path: str) -> list[UUID]:
        """The invocations that refer to an artifact, the oldest first; `NO_ID` for a damaged id.

        Raises `InvalidRecordError` for what is not the path of an artifact.
        """
        with self.database.read() as connection:
            return lists.artifact_owners(connection, path)

    def counts(self, *, with_bodies: bool = False) -> StoreCounts:
        """Totals of the store, of the bodies only on demand; reads all rows of the counted tables.

        The bodies are by far the largest table. A number that is damaged counts as 0.
        """
        with self.database.read() as connection:
            return lists.count_store(connection, with_bodies=with_bodies)
