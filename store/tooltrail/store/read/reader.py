"""Reads a store: pages of lists, one invocation with all its surfaces, the bytes of a stream.

Modules that only the texts of a call need are imported late, so that a list does not import them.
"""

import os
from collections.abc import Callable, Sequence
from datetime import UTC, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO
from uuid import UUID

from tooltrail.artifacts.paths import artifact_path, check_path
from tooltrail.journal.owners import is_alive
from tooltrail.records.digests import Digest
from tooltrail.records.errors import MissingArtifactError, NotFoundError
from tooltrail.store.engines.database import Database
from tooltrail.store.filters import ALL, InvocationFilter
from tooltrail.store.read import lists, names, pages, streams
from tooltrail.store.read.bodies import read_body
from tooltrail.store.read.rows import Sql, fetch_value
from tooltrail.store.views import (
    ArtifactView,
    InvocationDetail,
    InvocationView,
    MessageView,
    Page,
    SessionView,
    StoreCounts,
    StreamView,
    ToolCalls,
    ToolView,
)

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from tooltrail.artifacts import ArtifactArchive
    from tooltrail.store.engines.free_queries import Rows
    from tooltrail.store.expressions import Expression
    from tooltrail.store.read.retries import Retried
    from tooltrail.store.read.statistics import CallStatistics


class Reader:
    """Reads a store. Each method reads one snapshot. Safe to share between threads.

    In a list, the view of a damaged row reports its `damage`; the other rows are not affected.
    Every method raises `UnavailableError` if the store cannot be reached. A method that returns one
    thing raises `DamageError` if that thing is damaged. `limit` is the greatest number of results;
    a `limit` below 1 raises `InvalidRecordError`.

    The name of an invocation is its id, a unique beginning or end of the id, the provider's call
    id, `SESSION#SEQ`, `@last`, `@last:TOOL` or `@running`. The name of a session is its id, the
    name by which producers join it, a unique beginning or end of the id, or `@last`. A method that
    accepts a name raises `NotFoundError` if nothing has this name, and `AmbiguousNameError` if
    several things have it.

    Attributes:
        database: the database of the store.
        spool: the folder in which output may wait to be stored.
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
        """A page of invocations, by default the newest first.

        If the filter names one session, the order is that of the session, else the time of the
        start. Raises `InvalidRecordError` for a cursor that does not come from a page.
        """
        with self.database.read() as connection:
            return pages.page(connection, where, limit, cursor, oldest_first=oldest_first)

    def count_invocations(self, where: InvocationFilter = ALL) -> int:
        """The number of invocations that match. Reads an index, or all rows for some filters."""
        with self.database.read() as connection:
            return pages.count(connection, where)

    def resolved(self, expressions: "Sequence[Expression]") -> "Expression":
        """The condition that one of some expressions is true, for a filter of this store.

        A filter cannot compare members of `ENVIRONMENT` itself: the environments of the store for
        which such a comparison is true replace the comparison. The id of a session replaces its
        name, see `session`.

        Raises:
            NotFoundError, AmbiguousNameError: no session or several have a name.
        """
        from tooltrail.store.read.environments import resolved

        with self.database.read() as connection:
            return resolved(connection, expressions)

    def ranked_invocations(
        self,
        by: str,
        where: InvocationFilter = ALL,
        *,
        limit: int | None = None,
        least_first: bool = False,
    ) -> list[tuple[InvocationView, int]]:
        """The invocations with the greatest values, by default, and the value of each.

        `by` is `duration` in milliseconds, `size` of the produced output in bytes, or `cut`: the
        bytes that the model was not shown. Invocations without this value are left out.
        """
        from tooltrail.store.read.rankings import ranked

        with self.database.read() as connection:
            return ranked(connection, where, by, limit, least_first=least_first)

    def statistics(
        self,
        where: InvocationFilter = ALL,
        *,
        by: Sequence[str] = ("tool",),
        zone: tzinfo | None = UTC,
        with_surfaces: bool = False,
    ) -> "list[CallStatistics]":
        """The numbers of each group of calls that match, the largest group first.

        Reads all rows of the calls that match. Memory grows with the groups, not with the calls.

        Args:
            where: the calls that count.
            by: one or more of `tool`, `family`, `agent`, `session`, `outcome`, `day` and `hour`.
            zone: the time zone of days and hours; None for the local zone.
            with_surfaces: whether to also count what was shown, cut and stored, and duplicates.
                This reads the texts of all these calls.

        Raises:
            InvalidRecordError: `by` is empty, or has an unknown member, or has one twice.
        """
        from tooltrail.store.read.statistics import call_statistics

        with self.database.read() as connection:
            return call_statistics(connection, where, by, zone, with_surfaces=with_surfaces)

    def retries(
        self, where: InvocationFilter = ALL, *, limit: int | None = None
    ) -> "list[Retried]":
        """Calls that were made again in one session with the same arguments, the newest first.

        Only calls that match count as attempts. Reads the arguments of all of them.
        """
        from tooltrail.store.read.retries import retried_calls

        with self.database.read() as connection:
            return retried_calls(connection, where, limit)

    def invocation(self, name: str | UUID) -> InvocationDetail:
        """One invocation with all its surfaces."""
        from tooltrail.store.read.details import detail_of

        with self.database.read() as connection:
            return detail_of(connection, names.find_invocation(connection, str(name)))

    def invocation_id(self, name: str | UUID) -> UUID:
        """The id of an invocation; its surfaces are not read, so they may be damaged."""
        with self.database.read() as connection:
            return names.invocation_id(connection, str(name))

    def is_running(self, name: str | UUID) -> bool:
        """Whether an invocation has not ended, and its program is alive and uses this spool."""
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
        self, where: InvocationFilter = ALL, *, limit: int | None = None, cursor: UUID | None = None
    ) -> list[SessionView]:
        """Sessions, the newest first; with a filter, those with an invocation that matches.

        The cursor is the id of the last session of the page before. Raises `NotFoundError` if there
        is no such session.
        """
        with self.database.read() as connection:
            return lists.list_sessions(connection, where, limit=limit, cursor=cursor)

    def conversation(
        self, name: str | UUID, *, payloads: bool = False, outputs: bool = True
    ) -> tuple[SessionView, list[MessageView], list[InvocationDetail]]:
        """Everything of one session, each part in the order of its `seq`, from one snapshot.

        With `payloads`, also reads the bytes that providers sent and the extras of messages; with
        `outputs`, the complete outputs of the calls with their streams.
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
        """Every version of one tool, or of all tools offered to models; by name, then by time.

        With `latest`, only the version of each tool that was offered last.
        """
        with self.database.read() as connection:
            return lists.list_tools(connection, name, latest=latest)

    def called_tools(self) -> dict[Digest, ToolCalls]:
        """The calls of each version of a tool that was called while it was on offer, by digest.

        The tools that a session offers are on offer in it until its next offer.
        """
        with self.database.read() as connection:
            return lists.called_tools(connection)

    def offered_tools(self, session: str | UUID) -> list[ToolView]:
        """The tools of the last offer in a session, in the order of the offer."""
        with self.database.read() as connection:
            return lists.offered_tools(connection, names.find_session(connection, str(session)))

    def policy_json(self, digest: Digest) -> str:
        """The canonical JSON of a policy of a record; raises `NotFoundError` if it is erased."""
        with self.database.read() as connection:
            return read_body(connection, digest).decode()

    def open_stream(self, stream: StreamView) -> BinaryIO:
        """The bytes of a stream, checked against its digest and size while they are read.

        Raises:
            NotFoundError: the bytes are erased.
            UnavailableError: the sink is unreachable, or the spool cannot be read.
            PathEscapeError: the row of bytes that wait names a file outside of the spool.
            DamageError: the bytes are missing, cut or altered. A later read may raise this, too.
                `MissingArtifactError` if they were not stored and are not in this spool either:
                they may wait on another machine.
        """
        if stream.erasure is not None:
            raise NotFoundError(f"stream {stream.erasure.sentence}")
        path, files = artifact_path(stream.digest), dict[str, tuple[str, str]]()
        if stream.artifact_path is None:
            with self.database.read() as connection:
                if stream.pending_reason is None:
                    return streams.open_in_database(connection, stream)
                files = streams.waiting_files(connection, stream.digest)
        if not files:  # stored, perhaps since the view was read
            return self._open_archive().open(path, size=stream.size)
        for file in files:
            if (waiting := streams.open_waiting(self.spool / check_path(file), stream)) is not None:
                return waiting
        places = {*files.values()} - {(os.uname().nodename, str(self.spool))}
        elsewhere = " or ".join(f"spool {spool} of host {host}" for host, spool in sorted(places))
        rest = f"is missing: its file is not in the spool {self.spool}"
        if elsewhere:
            rest = f"waits in {elsewhere}; run `tooltrail repair` there"
        problem = f"stream {stream.role} could not be stored ({stream.pending_reason}) and {rest}"
        raise MissingArtifactError(problem, path=path)

    def parts_of(self, stream: StreamView) -> Callable[[int, int], bytes]:
        """A function that returns the bytes of a stream from an offset up to another.

        Raises like `open_stream`.
        """
        if stream.artifact_path is not None and stream.erasure is None:
            return self._open_archive().reader(stream.artifact_path, size=stream.size).read_bytes
        with self.open_stream(stream) as source:
            return streams.part_of(source.read())

    def artifacts(
        self,
        *,
        invocation: UUID | None = None,
        session: UUID | None = None,
        beginning: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> list[ArtifactView]:
        """The artifacts of the store, by path.

        Args:
            invocation: only the artifacts of this invocation.
            session: only the artifacts of this session.
            beginning: only artifacts whose path has this prefix, or is this path.
            limit: greatest number of artifacts.
            cursor: the last path of the page before; `InvalidRecordError` if it is not the path of
                an artifact.
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

        Raises `InvalidRecordError` if `path` is not the path of an artifact.
        """
        with self.database.read() as connection:
            return lists.artifact_owners(connection, path)

    def query(self, sql: str) -> "AbstractContextManager[Rows]":
        """Run a query that a person wrote: the names of its columns, and its rows one by one.

        Only for a `with` statement. Raises `InvalidRecordError` if the text is no correct query, or
        does more than read.
        """
        from tooltrail.store.engines.free_queries import read_only_rows

        return read_only_rows(self.database.target, sql)

    def view_columns(self) -> list[tuple[str, str]]:
        """The views for people and SQL tools, each with the names of its columns."""
        with self.database.read() as connection:
            return lists.view_columns(connection)

    def count_messages(self) -> int:
        """The number of messages of the store, including those of a lost session."""
        with self.database.read() as connection:
            return int(fetch_value(connection, Sql("SELECT count(*) FROM messages")))

    def counts(self, *, with_bodies: bool = False) -> StoreCounts:
        """Totals of the store. Reads all rows of the counted tables.

        Bodies, by far the largest table, are only counted on demand. A damaged number counts as 0.
        """
        with self.database.read() as connection:
            return lists.count_store(connection, with_bodies=with_bodies)
