"""Totals of a store; each reads every row of the table that it counts."""

from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Connection, case, cast, func, select

from tooltrail.store.read.rows import AnySelect, fetch
from tooltrail.store.schema import artifacts, bodies, invocations, sessions
from tooltrail.store.views import StoreCounts


def select_invocation_totals() -> AnySelect:
    """By state: number, produced bytes, lost bytes, number of those that lost some."""
    row = invocations.c
    is_lossy = case((row.lost_size > 0, 1), else_=0)
    return select(
        row.state,
        func.count(),
        _sum_of(row.output_size),
        _sum_of(row.lost_size),
        _sum_of(is_lossy),
    ).group_by(row.state)


def select_artifact_totals() -> AnySelect:
    """Number, plain bytes, stored bytes of the artifacts."""
    row = artifacts.c
    return select(func.count(), _sum_of(row.size), _sum_of(row.stored_size)).select_from(artifacts)


def select_body_totals() -> AnySelect:
    """Number, plain bytes, stored bytes of the bodies."""
    row = bodies.c
    stored = _sum_of(func.length(row.data))
    return select(func.count(), _sum_of(row.size), stored).select_from(bodies)


def select_session_total() -> AnySelect:
    """The number of sessions."""
    return select(func.count()).select_from(sessions)


def count_store(connection: Connection, *, with_bodies: bool) -> StoreCounts:
    """Totals of the store; of the bodies only when asked for, by far the largest table.

    A number that is damaged counts as 0.
    """
    by_state = [tuple(row) for row in fetch(connection, select_invocation_totals())]
    produced, lost, lossy = (sum(row[n] for row in by_state) for n in (2, 3, 4))
    body_totals: Any = (None, None, None)
    if with_bodies:
        body_totals = fetch(connection, select_body_totals())[0]
    return StoreCounts(
        fetch(connection, select_session_total())[0][0],
        {str(row[0]): row[1] for row in by_state},
        produced,
        lost,
        lossy,
        *body_totals,
        *fetch(connection, select_artifact_totals())[0],
    )


def _sum_of(column: ColumnElement[Any]) -> ColumnElement[int]:
    """The sum, 0 of no rows; an integer, where PostgreSQL gives a decimal."""
    return cast(func.coalesce(func.sum(column), 0), BigInteger)
