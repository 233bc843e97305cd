"""The questions as SQL. Lists read small columns; surfaces are read for chosen invocations only.

Pages of invocations are in `pages`.
"""

from collections import defaultdict
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Row,
    Select,
    case,
    cast,
    func,
    or_,
    select,
)
from sqlalchemy.orm import InstrumentedAttribute, aliased

from tooltrail.artifacts import digest_of_path
from tooltrail.records import Digest, InvalidRecordError
from tooltrail.store.tables import (
    ArtifactRow,
    BodyRow,
    InvocationRow,
    LedgerHeadRow,
    OutputStreamRow,
    SessionRow,
)
from tooltrail.store.views import (
    ArtifactView,
    InvocationView,
    SessionView,
    StoreCounts,
    WaitingStream,
)

AnySelect = Select[*tuple[Any, ...]]
AnyRow = Row[*tuple[Any, ...]]


def _sum_of(column: ColumnElement[int] | InstrumentedAttribute[int | None]) -> ColumnElement[int]:
    """The sum, 0 of no rows; an integer, where PostgreSQL gives a decimal."""
    return cast(func.coalesce(func.sum(column), 0), BigInteger)


_LOST = OutputStreamRow.produced_size - OutputStreamRow.size
_IS_OUTPUT = OutputStreamRow.role != "order"
_LOST_SIZE = (
    select(_sum_of(_LOST))
    .where(OutputStreamRow.invocation_key == InvocationRow.key, _IS_OUTPUT)
    .scalar_subquery()
)

_SMALL_COLUMNS = (
    InvocationRow.key,
    InvocationRow.id,
    SessionRow.id.label("session_id"),
    InvocationRow.seq,
    InvocationRow.call_id,
    InvocationRow.tool_name,
    InvocationRow.family,
    InvocationRow.state,
    InvocationRow.arguments_preview,
    InvocationRow.started_at,
    InvocationRow.finished_at,
    InvocationRow.duration_ms,
    InvocationRow.error_kind,
    InvocationRow.exit_status,
    InvocationRow.signal,
    InvocationRow.timed_out,
    InvocationRow.output_size,
    InvocationRow.truncated,
    # The rows of streams are looked at only where something was left out.
    case(
        (InvocationRow.truncated.is_(True), _LOST_SIZE), else_=InvocationRow.output_size * 0
    ).label("lost_size"),
)
"""The key, and what a view holds in its order."""


def select_invocations(*more: InstrumentedAttribute[Any] | ColumnElement[Any]) -> AnySelect:
    """The small columns of invocations with the id of their session."""
    return select(*_SMALL_COLUMNS, *more).join(
        SessionRow, SessionRow.key == InvocationRow.session_key
    )


def invocation_view(row: AnyRow) -> InvocationView:
    """The view of one row of `select_invocations`."""
    return InvocationView(*row[1 : len(_SMALL_COLUMNS)])


def sessions(
    connection: Connection,
    *,
    only: UUID | None = None,
    limit: int | None = None,
    cursor: UUID | None = None,
) -> list[SessionView]:
    """Sessions, the newest first, or those before the one that the cursor names."""
    check_limit(limit)
    parent = SessionRow.__table__.alias("parent")
    mine = InvocationRow.session_key == SessionRow.key
    counted = select(func.count()).select_from(InvocationRow).where(mine)
    query = (
        select(
            SessionRow.id,
            parent.c.id.label("parent_id"),
            SessionRow.title,
            SessionRow.agent,
            SessionRow.environment,
            SessionRow.opened_at,
            LedgerHeadRow.closed_at,
            counted.scalar_subquery().label("invocation_count"),
            counted.where(InvocationRow.state == "started").scalar_subquery().label("open_count"),
        )
        # Outer, so that a lost head does not hide its session.
        .outerjoin(LedgerHeadRow, LedgerHeadRow.session_key == SessionRow.key)
        .outerjoin(parent, parent.c.key == SessionRow.parent_key)
        .order_by(SessionRow.key.desc())
    )
    if only is not None:
        query = query.where(SessionRow.id == only)
    if cursor is not None:
        last = aliased(SessionRow)
        query = query.where(
            SessionRow.key < select(last.key).where(last.id == cursor).scalar_subquery()
        )
    if limit is not None:
        query = query.limit(limit)
    return [SessionView(*row) for row in connection.execute(query)]


def artifacts(
    connection: Connection,
    *,
    invocation: UUID | None,
    session: UUID | None,
    beginning: str | None,
    limit: int | None,
    cursor: str | None,
) -> list[ArtifactView]:
    """Artifacts by path, of one invocation or session when one is given, and with such a path."""
    check_limit(limit)
    query = select(
        ArtifactRow.path,
        ArtifactRow.digest,
        ArtifactRow.size,
        ArtifactRow.stored_size,
        ArtifactRow.line_count,
        ArtifactRow.created_at,
    ).order_by(ArtifactRow.path)
    if cursor is not None:
        query = query.where(ArtifactRow.path > cursor)
    if limit is not None:
        query = query.limit(limit)
    if beginning is not None:
        query = query.where(ArtifactRow.path.startswith(beginning, autoescape=True))
    if invocation is not None or session is not None:
        used = select(OutputStreamRow.artifact_path).join(
            InvocationRow, InvocationRow.key == OutputStreamRow.invocation_key
        )
        if invocation is not None:
            used = used.where(InvocationRow.id == invocation)
        if session is not None:
            used = used.join(SessionRow, SessionRow.key == InvocationRow.session_key).where(
                SessionRow.id == session
            )
        postponed = used.with_only_columns(OutputStreamRow.digest).where(
            OutputStreamRow.postponed_reason.is_not(None)
        )
        query = query.where(or_(ArtifactRow.path.in_(used), ArtifactRow.digest.in_(postponed)))
    return [ArtifactView(row[0], Digest(row[1]), *row[2:]) for row in connection.execute(query)]


def waiting_streams(
    connection: Connection, session: UUID | None, digest: Digest | None
) -> list[WaitingStream]:
    """The streams whose bytes are not in the store yet, the oldest first."""
    stream, ended = OutputStreamRow, InvocationRow.finished_at
    query = (
        select(InvocationRow.id, stream.role, stream.digest, stream.postponed_reason, ended)
        .join(InvocationRow, InvocationRow.key == stream.invocation_key)
        .where(
            stream.postponed_reason.is_not(None),
            stream.digest.not_in(select(ArtifactRow.digest)),
        )
        .order_by(stream.invocation_key, stream.n)
    )
    if session is not None:
        query = query.join(SessionRow, SessionRow.key == InvocationRow.session_key).where(
            SessionRow.id == session
        )
    if digest is not None:
        query = query.where(stream.digest == digest)
    return [
        WaitingStream(invocation_id, role, Digest(named), str(reason), finished_at)
        for invocation_id, role, named, reason, finished_at in connection.execute(query)
    ]


def artifact_owners(connection: Connection, path: str) -> list[UUID]:
    """The invocations that refer to an artifact, the oldest first."""
    query = (
        select(InvocationRow.id)
        .join(OutputStreamRow, OutputStreamRow.invocation_key == InvocationRow.key)
        .where(
            OutputStreamRow.digest == digest_of_path(path),
            or_(
                OutputStreamRow.artifact_path == path,
                OutputStreamRow.postponed_reason.is_not(None),
            ),
        )
        .distinct()
        .order_by(InvocationRow.id)
    )
    return list(connection.scalars(query))


def counts(connection: Connection, *, with_bodies: bool) -> StoreCounts:
    """Totals of the store; of the bodies only when asked for, since all of them are read."""
    states: dict[str, int] = defaultdict(int)
    produced = 0
    by_state = select(
        InvocationRow.state, func.count(), _sum_of(InvocationRow.output_size)
    ).group_by(InvocationRow.state)
    for state, number, size in connection.execute(by_state):
        states[state] = number
        produced += size
    bodies = _body_totals(connection) if with_bodies else (None, None, None)
    stored = connection.execute(
        select(func.count(), _sum_of(ArtifactRow.size), _sum_of(ArtifactRow.stored_size))
    ).one()
    lost = connection.execute(
        select(_sum_of(_LOST), func.count(OutputStreamRow.invocation_key.distinct())).where(
            _LOST > 0, _IS_OUTPUT
        )
    ).one()
    session_count = connection.scalars(select(func.count()).select_from(SessionRow)).one()
    totals: tuple[Any, ...] = (produced, *lost, *bodies, *stored)
    return StoreCounts(session_count, dict(states), *totals)


def _body_totals(connection: Connection) -> tuple[int | None, int | None, int | None]:
    """Number of bodies, their bytes, and those in the database; reads all of them."""
    in_database = _sum_of(func.length(BodyRow.data))
    query = select(func.count(), _sum_of(BodyRow.size), in_database)
    number, plain, kept = connection.execute(query).one()
    return number, plain, kept


def check_limit(limit: int | None) -> None:
    """Refuse a list of nothing.

    Raises:
        InvalidRecordError: the limit is below 1.
    """
    if limit is not None and limit < 1:
        raise InvalidRecordError(f"a list of at most {limit} rows shows nothing; ask for 1 or more")
