"""Filters as SQL."""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, and_, literal_column, select

from tooltrail.store.filters import STATES_OF_STATUS, InvocationFilter
from tooltrail.store.tables import InvocationRow, SessionRow


def condition_of(
    where: InvocationFilter, row: type[InvocationRow] = InvocationRow
) -> ColumnElement[bool]:
    """A filter as SQL over `invocations`, or over a part of them that has the same columns."""
    parts: list[ColumnElement[bool]] = [row.key > 0]
    for column, values in (
        (row.tool_name, where.tools),
        (row.family, where.families),
        (row.error_kind, where.error_kinds),
        (row.id, where.invocations),
        (row.exit_status, where.exit_statuses),
    ):
        if values:
            parts.append(column.in_(values))
    if where.states:
        parts.append(_in_states(row, where.states))
    if where.statuses:
        parts.append(_in_states(row, [s for one in where.statuses for s in STATES_OF_STATUS[one]]))
    if where.since is not None:
        parts.append(row.started_at >= where.since)
    if where.until is not None:
        parts.append(row.started_at < where.until)
    if where.min_size is not None:
        parts.append(row.output_size >= where.min_size)
    return and_(*parts, *_of_sessions(where, row))


def _of_sessions(where: InvocationFilter, row: type[InvocationRow]) -> list[ColumnElement[bool]]:
    parts: list[ColumnElement[bool]] = []
    if where.sessions:
        keys = select(SessionRow.key).where(SessionRow.id.in_(where.sessions))
        parts.append(row.session_key.in_(keys))
    if where.agents:
        keys = select(SessionRow.key).where(SessionRow.agent.in_(where.agents))
        parts.append(row.session_key.in_(keys))
    return parts


def _in_states(row: type[InvocationRow], states: Sequence[str]) -> ColumnElement[bool]:
    among = row.state.in_(states)
    if "success" in states:
        return among
    # The index of the states leaves successes out, and is used only where the SQL says so too.
    return and_(among, row.state != literal_column("'success'"))
