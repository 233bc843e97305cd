"""The questions as SQL. Lists read small columns; surfaces are read for chosen invocations only."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Row,
    Select,
    UnaryExpression,
    and_,
    case,
    cast,
    func,
    or_,
    select,
)
from sqlalchemy.orm import InstrumentedAttribute, aliased

from tooltrail.artifacts import digest_of_path
from tooltrail.records import Digest, InvalidRecordError
from tooltrail.store._conditions import condition_of
from tooltrail.store.filters import ALL, InvocationFilter
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
    Page,
    SessionView,
    StoreCounts,
    WaitingStream,
)

MAX_KEY_DIGITS = 18
"""Decimal digits that surely fit into the 64 bits of a key."""

_NEARBY = 1_000
"""Invocations among which a page is looked for first; that takes a millisecond or two."""

_WIDEST = 20_000
"""Invocations among which it is looked for at the most."""

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

_FILTERED = (
    InvocationRow.key,
    InvocationRow.session_key,
    InvocationRow.tool_name,
    InvocationRow.family,
    InvocationRow.state,
    InvocationRow.error_kind,
    InvocationRow.exit_status,
    InvocationRow.started_at,
    InvocationRow.output_size,
)
"""What filters ask about."""


def select_invocations(*more: InstrumentedAttribute[Any] | ColumnElement[Any]) -> AnySelect:
    """The small columns of invocations with the id of their session."""
    return select(*_SMALL_COLUMNS, *more).join(
        SessionRow, SessionRow.key == InvocationRow.session_key
    )


def invocation_view(row: AnyRow) -> InvocationView:
    """The view of one row of `select_invocations`."""
    return InvocationView(*row[1 : len(_SMALL_COLUMNS)])


def page(
    connection: Connection,
    where: InvocationFilter,
    limit: int | None,
    cursor: str | None,
    *,
    oldest_first: bool,
) -> Page[InvocationView]:
    """One page by keyset: what follows the cursor in the order asked for."""
    _check_limit(limit)
    place = _Place(None if cursor is None else _key_of(cursor), oldest_first)
    rows = _nearby(connection, where, limit, place)
    if rows is None:
        rows = _following(connection, where, limit, place)
    shown = rows if limit is None else rows[:limit]
    more = len(rows) > len(shown)
    return Page(tuple(invocation_view(row) for row in shown), str(shown[-1].key) if more else None)


class _Place(NamedTuple):
    """Where a page begins.

    Attributes:
        after: the key that it follows, None at the beginning.
        oldest_first: the order.
    """

    after: int | None
    oldest_first: bool

    @property
    def order(self) -> UnaryExpression[int]:
        """As the page is sorted."""
        return InvocationRow.key.asc() if self.oldest_first else InvocationRow.key.desc()

    @property
    def follows(self) -> ColumnElement[bool]:
        """Whether an invocation comes after the place."""
        if self.after is None:
            return InvocationRow.key > 0
        key = InvocationRow.key
        return key > self.after if self.oldest_first else key < self.after


def _nearby(
    connection: Connection, where: InvocationFilter, limit: int | None, place: _Place
) -> Sequence[AnyRow] | None:
    """The page, if the next few invocations fill it.

    What many have in common is found there at once, where an index would give all of them to be
    sorted. What few have is left to the index.
    """
    if limit is None or where == ALL or where.invocations:
        return None
    rows = _among(connection, where, limit, place, _NEARBY)
    if rows and len(rows) <= limit:
        # As many as should hold the page twice over, unless that is more than an index takes.
        wider = 2 * _NEARBY * (limit + 1) // len(rows)
        rows = _among(connection, where, limit, place, wider) if wider <= _WIDEST else ()
    return rows if len(rows) > limit else None


def _among(
    connection: Connection, where: InvocationFilter, limit: int, place: _Place, number: int
) -> Sequence[AnyRow]:
    # With its limit the part stays a part on both engines, whatever indexes there are.
    near = select(*_FILTERED).where(place.follows).order_by(place.order).limit(number)
    row = aliased(InvocationRow, near.subquery())
    order = row.key.asc() if place.oldest_first else row.key.desc()
    chosen = select(row.key).where(condition_of(where, row)).order_by(order).limit(limit + 1)
    return _chosen(connection, chosen, place)


def _following(
    connection: Connection, where: InvocationFilter, limit: int | None, place: _Place
) -> Sequence[AnyRow]:
    """The invocations of a page, and one more where there are more."""
    condition = and_(condition_of(where), place.follows)
    if limit is None or where == ALL:
        query = select_invocations().where(condition).order_by(place.order)
        return connection.execute(query if limit is None else query.limit(limit + 1)).all()
    # Keys alone are sorted: the rest is looked up of those that are shown.
    chosen = select(InvocationRow.key).where(condition).order_by(place.order).limit(limit + 1)
    return _chosen(connection, chosen, place)


def _chosen(connection: Connection, keys: Select[int], place: _Place) -> Sequence[AnyRow]:
    query = select_invocations().where(InvocationRow.key.in_(keys)).order_by(place.order)
    return connection.execute(query).all()


def count(connection: Connection, where: InvocationFilter) -> int:
    """How many invocations a filter means."""
    query = select(func.count()).select_from(InvocationRow)
    # Without a condition SQLite counts pages of an index, and not its rows one by one.
    if where != ALL:
        query = query.where(condition_of(where))
    return connection.scalars(query).one()


def sessions(
    connection: Connection,
    *,
    only: UUID | None = None,
    limit: int | None = None,
    cursor: UUID | None = None,
) -> list[SessionView]:
    """Sessions, the newest first, or those before the one that the cursor names."""
    _check_limit(limit)
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
    _check_limit(limit)
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


def _check_limit(limit: int | None) -> None:
    if limit is not None and limit < 1:
        raise InvalidRecordError(f"a list of at most {limit} rows shows nothing; ask for 1 or more")


def _key_of(cursor: str) -> int:
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= MAX_KEY_DIGITS):
        raise InvalidRecordError(f"not a cursor of this list: {cursor[:40]!r}")
    return int(cursor)
