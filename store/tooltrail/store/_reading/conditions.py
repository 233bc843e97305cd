"""Filters as SQL.

An index of what is unusual leaves all else out, and is used only where the SQL says in the same
words that nothing else is asked for; so it says that, although another condition implies it.

To build SQL takes longer than to find a page. Filters that differ in their values alone have one
shape, and what is built for it serves all of them.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    and_,
    bindparam,
    exists,
    literal_column,
    select,
    true,
)
from sqlalchemy.orm import InstrumentedAttribute

from tooltrail.store.filters import STATES_OF_STATUS, InvocationFilter
from tooltrail.store.tables import InvocationRow, SessionRow
from tooltrail.store.tables.invocations import LARGE_BYTES

_FAILED = STATES_OF_STATUS["error"]
"""States in which there is an error with its kind."""

_SOME_TIME = datetime(2000, 1, 1, tzinfo=UTC)


def shape_of(where: InvocationFilter) -> InvocationFilter:
    """One filter for all of the same shape: their SQL is the same but for `values_of` them."""
    size = where.min_size
    return InvocationFilter(
        sessions=(UUID(int=0),) if where.sessions else (),
        tools=("",) if where.tools else (),
        families=("",) if where.families else (),
        states=_shape_of_states(where.states),
        statuses=where.statuses,
        error_kinds=("",) if where.error_kinds else (),
        agents=("",) if where.agents else (),
        since=None if where.since is None else _SOME_TIME,
        until=None if where.until is None else _SOME_TIME,
        exit_statuses=where.exit_statuses and ((0,) if 0 in where.exit_statuses else (1,)),
        min_size=None if size is None else LARGE_BYTES if size >= LARGE_BYTES else 0,
        invocations=(UUID(int=0),) if where.invocations else (),
    )


def values_of(where: InvocationFilter) -> dict[str, Any]:
    """The values by which the SQL of a shape becomes that of a filter."""
    values = {
        "sessions": where.sessions,
        "tools": where.tools,
        "families": where.families,
        "states": where.states,
        "error_kinds": where.error_kinds,
        "agents": where.agents,
        "exit_statuses": where.exit_statuses,
        "invocations": where.invocations,
    }
    bounds = {"since": where.since, "until": where.until, "min_size": where.min_size}
    return {name: value for name, value in values.items() if value} | {
        name: value for name, value in bounds.items() if value is not None
    }


def condition_of(
    where: InvocationFilter, row: type[InvocationRow] = InvocationRow
) -> ColumnElement[bool]:
    """A filter as SQL over `invocations`, or over a part of them that has the same columns."""
    parts: list[ColumnElement[bool]] = [true()]
    if where.tools:
        parts.append(row.tool_name.in_(_values("tools", where.tools, row.tool_name)))
    if where.families:
        parts.append(row.family.in_(_values("families", where.families, row.family)))
    if where.invocations:
        parts.append(row.id.in_(_values("invocations", where.invocations, row.id)))
    if where.states:
        parts.append(row.state.in_(_values("states", where.states, row.state)))
        parts += _of_unusual(row, where.states)
    if where.statuses:
        parts += _in_states(row, [s for one in where.statuses for s in STATES_OF_STATUS[one]])
    if where.since is not None:
        parts.append(row.started_at >= _value("since", where.since, row.started_at))
    if where.until is not None:
        parts.append(row.started_at < _value("until", where.until, row.started_at))
    return and_(*parts, *_of_results(where, row), *_of_sessions(where, row))


def _of_results(where: InvocationFilter, row: type[InvocationRow]) -> list[ColumnElement[bool]]:
    parts: list[ColumnElement[bool]] = []
    if where.error_kinds:
        parts.append(row.error_kind.in_(_values("error_kinds", where.error_kinds, row.error_kind)))
        parts += _in_states(row, _FAILED)
    if where.exit_statuses:
        wanted = _values("exit_statuses", where.exit_statuses, row.exit_status)
        parts.append(row.exit_status.in_(wanted))
        if 0 not in where.exit_statuses:
            parts.append(row.exit_status != literal_column("0"))
    if where.min_size is not None:
        parts.append(row.output_size >= _value("min_size", where.min_size, row.output_size))
        if where.min_size >= LARGE_BYTES:
            parts.append(row.output_size >= literal_column(str(LARGE_BYTES)))
    return parts


def _of_sessions(where: InvocationFilter, row: type[InvocationRow]) -> list[ColumnElement[bool]]:
    parts: list[ColumnElement[bool]] = []
    if where.sessions:
        named = SessionRow.id.in_(_values("sessions", where.sessions, SessionRow.id))
        parts.append(row.session_key.in_(select(SessionRow.key).where(named)))
    if where.agents:
        held = SessionRow.agent.in_(_values("agents", where.agents, SessionRow.agent))
        if row is InvocationRow:
            parts.append(row.session_key.in_(select(SessionRow.key).where(held)))
        else:
            # An agent has very many sessions, and a part of the invocations few.
            parts.append(exists().where(SessionRow.key == row.session_key, held))
    return parts


def _in_states(row: type[InvocationRow], states: Sequence[str]) -> list[ColumnElement[bool]]:
    return [row.state.in_(states), *_of_unusual(row, states)]


def _of_unusual(row: type[InvocationRow], states: Sequence[str]) -> list[ColumnElement[bool]]:
    return [] if "success" in states else [row.state != literal_column("'success'")]


def _shape_of_states(states: Sequence[str]) -> tuple[str, ...]:
    return ("success",) if "success" in states else ("error",) if states else ()


def _value(name: str, value: object, column: InstrumentedAttribute[Any]) -> BindParameter[Any]:
    return bindparam(name, value, type_=column.type)


def _values(
    name: str, values: Sequence[object], column: InstrumentedAttribute[Any]
) -> BindParameter[Any]:
    return bindparam(name, list(values), type_=column.type, expanding=True)
