"""Reads a store: pages of lists, one invocation with all its surfaces, the bytes of a stream.

Modules that only the texts of a call need are imported late, so that a list does not import them.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, tzinfo
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Concatenate, ParamSpec, TypeVar
from uuid import UUID

from tooltrail.artifacts.paths import artifact_path
from tooltrail.journal.owners import is_alive
from tooltrail.records.digests import Digest
from tooltrail.records.errors import (
    MissingArtifactError,
    NotFoundError,
    UnavailableError,
)
from tooltrail.store.engines.connection import Connection
from tooltrail.store.engines.database import Database
from tooltrail.store.filters import ALL, InvocationFilter
from tooltrail.store.read import lists, names, pages, streams
from tooltrail.store.read.bodies import read_body
from tooltrail.store.views import (
    InvocationDetail,
    InvocationView,
    MessageView,
    SessionView,
    StreamView,
)

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from tooltrail.artifacts import ArtifactArchive
    from tooltrail.store.engines.free_queries import Rows
    from tooltrail.store.expressions import Expression
    from tooltrail.store.read.retries import Retried
    from tooltrail.store.read.statistics import CallStatistics


P = ParamSpec("P")
T = TypeVar("T")


def _reading(
    function: Callable[Concatenate[Connection, P], T],
) -> "Callable[Concatenate[Reader, P], T]":
    """The method of `Reader` that calls a function with one snapshot of the database."""

    @wraps(function)
    def method(self: "Reader", /, *args: P.args, **kwargs: P.kwargs) -> T:
        with self.database.read() as connection:
            return function(connection, *args, **kwargs)

    return method


class Reader:
    """Reads a store. Each method reads one snapshot. Safe to share between threads.

    In a list, the view of a damaged row reports its `damage`; the other rows are not affected.
    Every method raises `UnavailableError` if the store cannot be reached. A method that returns one
    thing raises `DamageError` if that thing is damaged. `limit` is the greatest number of results;
    a `limit` below 1 raises `InvalidRecordError`.

    The name of an invocation is its id, a unique beginning or end of the id, `SESSION#SEQ`, `@last`
    or `@last:TOOL`. The name of a session is its id, the name by which producers join it, a unique
    beginning or end of the id, or `@last`. A method that accepts a name raises `NotFoundError` if
    nothing has this name, and `AmbiguousNameError` if several things have it.

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

    invocations = _reading(pages.page)
    count_invocations = _reading(pages.count)
    invocation_id = _reading(names.invocation_id)
    session = _reading(lists.session)
    sessions = _reading(lists.list_sessions)
    tools = _reading(lists.list_tools)
    offered_tools = _reading(lists.offered_tools)
    artifacts = _reading(lists.list_artifacts)
    artifact_owners = _reading(lists.artifact_owners)
    view_columns = _reading(lists.view_columns)
    counts = _reading(lists.count_store)

    def resolved(self, expressions: "Sequence[Expression]") -> "Expression":
        """The condition that one of some expressions is true, for a filter of this store.

        A filter cannot compare members of `ENVIRONMENT` itself: the environments of the store for
        which such a comparison is true replace the comparison.
        """
        from tooltrail.store.read.environments import resolved

        with self.database.read() as connection:
            return resolved(connection, expressions)

    def ranked_invocations(
        self,
        by: str,
        filters: InvocationFilter = ALL,
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
            return ranked(connection, filters, by, limit, least_first=least_first)

    def statistics(
        self,
        filters: InvocationFilter = ALL,
        *,
        by: Sequence[str] = ("tool",),
        zone: tzinfo | None = UTC,
        with_surfaces: bool = False,
    ) -> "list[CallStatistics]":
        """The numbers of each group of calls that match, the largest group first.

        Reads all rows of the calls that match. Memory grows with the groups, not with the calls.

        Args:
            filters: the calls that count.
            by: one or more of `tool`, `family`, `agent`, `session`, `outcome`, `day` and `hour`.
            zone: the time zone of days and hours; None for the local zone.
            with_surfaces: whether to also count what was shown, cut and stored, and duplicates.
                This reads the texts of all these calls.

        Raises:
            InvalidRecordError: `by` is empty, or has an unknown member, or has one twice.
        """
        from tooltrail.store.read.statistics import call_statistics

        with self.database.read() as connection:
            return call_statistics(connection, filters, by, zone, with_surfaces=with_surfaces)

    def retries(
        self, filters: InvocationFilter = ALL, *, limit: int | None = None
    ) -> "list[Retried]":
        """Calls that were made again in one session with the same arguments, the newest first.

        Only calls that match count as attempts. Reads the arguments of all of them.
        """
        from tooltrail.store.read.retries import retried_calls

        with self.database.read() as connection:
            return retried_calls(connection, filters, limit)

    def invocation(self, name: str | UUID) -> InvocationDetail:
        """One invocation with all its surfaces."""
        from tooltrail.store.read.details import detail_of

        with self.database.read() as connection:
            return detail_of(connection, names.find_invocation(connection, str(name)))

    def is_running(self, name: str | UUID) -> bool:
        """Whether an invocation has not ended, and its program is alive and uses this spool."""
        with self.database.read() as connection:
            key = names.find_invocation(connection, str(name))
            query = "SELECT owner FROM invocations WHERE key = ? AND state = 'started'"
            row = connection.query_one(query, (key,))
        return row is not None and row[0] is not None and is_alive(self.spool, row[0])

    def conversation(
        self, name: str | UUID, *, payloads: bool = False, outputs: bool = True
    ) -> tuple[SessionView, list[MessageView], list[InvocationDetail]]:
        """Everything of one session, each part in the order of its `seq`, from one snapshot.

        Args:
            name: name of the session.
            payloads: whether to read the bytes that providers sent, too.
            outputs: whether to read the complete outputs of the calls with their streams, too.
        """
        from tooltrail.store.read.conversations import invocations_of, messages_of

        with self.database.read() as connection:
            key = names.find_session(connection, str(name))
            return (
                lists.session(connection, name),
                messages_of(connection, key, payloads=payloads),
                invocations_of(connection, key, outputs=outputs),
            )

    def policy_json(self, digest: Digest) -> str:
        """The canonical JSON of a policy of a record; raises `NotFoundError` if it is erased."""
        with self.database.read() as connection:
            return read_body(connection, digest).decode()

    def open_stream(self, stream: StreamView) -> BinaryIO:
        """The bytes of a stream, checked against its digest and size while they are read.

        Raises:
            NotFoundError: the bytes are erased.
            UnavailableError: bytes wait in this spool (see `repair`), or the sink is unreachable.
            DamageError: the bytes are missing, cut or altered. A later read may raise this, too.
                `MissingArtifactError` if they were not stored and are not in this spool either.
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
        if not files:  # stored since the view was read
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

    def parts_of(self, stream: StreamView) -> Callable[[int, int], bytes]:
        """A function that returns the bytes of a stream from an offset up to another.

        Raises like `open_stream`.
        """
        if stream.artifact_path is not None and stream.erasure is None:
            return self._open_archive().reader(stream.artifact_path, size=stream.size).read_bytes
        with self.open_stream(stream) as source:
            return streams.part_of(source.read())

    def query(self, sql: str) -> "AbstractContextManager[Rows]":
        """Run a query that a person wrote: the names of its columns, and its rows one by one.

        Only for a `with` statement. Raises `InvalidRecordError` if the text is no correct query, or
        does more than read.
        """
        from tooltrail.store.engines.free_queries import read_only_rows

        return read_only_rows(self.database.target, sql)
