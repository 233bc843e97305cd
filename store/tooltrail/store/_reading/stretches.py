"""Looking through a stretch of the keys of invocations for those that a filter means.

What many have in common is found at once among the next few. What few have is looked up in an index
and sorted, where there is one, or passed by for. That takes the longer the longer the stretch is,
and so `range_search` is asked about all but the newest.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, UnaryExpression, and_, bindparam, select
from sqlalchemy.orm import InstrumentedAttribute, aliased

from tooltrail.store._reading.conditions import condition_of, shape_of, values_of
from tooltrail.store._reading.queries import AnyRow, AnySelect, select_invocations
from tooltrail.store.filters import InvocationFilter
from tooltrail.store.tables import InvocationRow
from tooltrail.store.tables.invocations import LARGE_BYTES

NEARBY = 1_000
"""Invocations among which a page is looked for first; that takes a millisecond or two."""

WIDEST = 20_000
"""Invocations among which it is looked for at the most."""

BEYOND_ALL = 2**63 - 1
"""A key that no invocation gets."""

_SHORT = 8_192
"""Keys of a stretch that is looked through as a whole."""

_SHAPES = 512
"""Statements of each kind that are kept."""

_key = InvocationRow.key

_FILTERED = (
    _key,
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


class Stretch(NamedTuple):
    """Some consecutive keys, in the order of a list.

    Attributes:
        first: the smallest of them.
        end: the one after the largest.
        oldest_first: the order.
    """

    first: int
    end: int
    oldest_first: bool

    @property
    def width(self) -> int:
        """How many they are."""
        return max(self.end - self.first, 0)


def look_through(
    connection: Connection, where: InvocationFilter, limit: int, stretch: Stretch
) -> Sequence[AnyRow]:
    """The first invocations of a stretch that a filter means, in its order, up to a limit."""
    if stretch.width <= _SHORT:
        return among(connection, where, limit, stretch, stretch.width)
    rows = among(connection, where, limit, stretch, NEARBY)
    if rows and len(rows) < limit:
        # As many as should hold the page twice over, unless that is more than an index takes.
        wider = 2 * NEARBY * limit // len(rows)
        rows = among(connection, where, limit, stretch, wider) if wider <= WIDEST else ()
    return rows if len(rows) == limit else by_index(connection, where, limit, stretch)


def among(
    connection: Connection, where: InvocationFilter, limit: int, stretch: Stretch, number: int
) -> Sequence[AnyRow]:
    """The same among the first so many invocations of the stretch."""
    query = _among(shape_of(where), oldest_first=stretch.oldest_first)
    values = _bounds(stretch, limit) | {"number": number}
    return connection.execute(query, values_of(where) | values).all()


def of_keys(
    connection: Connection,
    where: InvocationFilter,
    keys: Sequence[int],
    limit: int,
    *,
    oldest_first: bool,
) -> Sequence[AnyRow]:
    """The first of some invocations that a filter means, in an order, up to a limit."""
    query = _of_keys(shape_of(where), oldest_first=oldest_first)
    values = {"keys": keys, "number": len(keys), "limit": limit}
    return connection.execute(query, values_of(where) | values).all()


def by_index(
    connection: Connection, where: InvocationFilter, limit: int, stretch: Stretch
) -> Sequence[AnyRow]:
    """As `look_through`, by an index where there is one for the filter, and sorted then."""
    query = _by_index(shape_of(where), oldest_first=stretch.oldest_first)
    return connection.execute(query, values_of(where) | _bounds(stretch, limit)).all()


def every(
    connection: Connection, where: InvocationFilter, limit: int | None, stretch: Stretch
) -> Sequence[AnyRow]:
    """As `look_through`, in the order of the keys, for what most invocations are."""
    query = _every(shape_of(where), oldest_first=stretch.oldest_first, is_limited=limit is not None)
    return connection.execute(query, values_of(where) | _bounds(stretch, limit)).all()


def _bounds(stretch: Stretch, limit: int | None) -> dict[str, Any]:
    bounds = {"first": stretch.first, "end": stretch.end}
    return bounds if limit is None else {**bounds, "limit": limit}


@lru_cache(_SHAPES)
def _among(shape: InvocationFilter, *, oldest_first: bool) -> AnySelect:
    near = select(*_FILTERED).where(_key >= bindparam("first"), _key < bindparam("end"))
    return _fitting(shape, near, oldest_first=oldest_first)


@lru_cache(_SHAPES)
def _of_keys(shape: InvocationFilter, *, oldest_first: bool) -> AnySelect:
    named = select(*_FILTERED).where(_key.in_(bindparam("keys", expanding=True)))
    return _fitting(shape, named, oldest_first=oldest_first)


@lru_cache(_SHAPES)
def _by_index(shape: InvocationFilter, *, oldest_first: bool) -> AnySelect:
    # SQLite has no statistics, and takes those without a value of their own for many: it would go
    # through all in the order asked for, had they one.
    key = _key + 0 if shape == InvocationFilter(min_size=LARGE_BYTES) else _key
    # Keys alone are sorted: the rest is looked up of those that are shown.
    chosen = select(_key).where(
        condition_of(shape), key >= bindparam("first"), key < bindparam("end")
    )
    order = key.asc() if oldest_first else key.desc()
    return _chosen(chosen.order_by(order).limit(bindparam("limit")), oldest_first=oldest_first)


@lru_cache(_SHAPES)
def _every(shape: InvocationFilter, *, oldest_first: bool, is_limited: bool) -> AnySelect:
    within = and_(condition_of(shape), _key >= bindparam("first"), _key < bindparam("end"))
    query = select_invocations().where(within).order_by(_order(_key, oldest_first=oldest_first))
    return query.limit(bindparam("limit")) if is_limited else query


def _fitting(shape: InvocationFilter, part: AnySelect, *, oldest_first: bool) -> AnySelect:
    order = _order(_key, oldest_first=oldest_first)
    # With its limit the part stays a part on both engines, whatever indexes there are.
    row = aliased(InvocationRow, part.order_by(order).limit(bindparam("number")).subquery())
    chosen = select(row.key).where(condition_of(shape, row))
    chosen = chosen.order_by(_order(row.key, oldest_first=oldest_first)).limit(bindparam("limit"))
    return _chosen(chosen, oldest_first=oldest_first)


def _chosen(keys: Select[int], *, oldest_first: bool) -> AnySelect:
    return (
        select_invocations().where(_key.in_(keys)).order_by(_order(_key, oldest_first=oldest_first))
    )


def _order(key: InstrumentedAttribute[int], *, oldest_first: bool) -> UnaryExpression[int]:
    return key.asc() if oldest_first else key.desc()
