"""Filters as SQL.

An index of what is unusual leaves all else out, and is used only where the SQL says in the same
words that nothing else is asked for; so it says that, although another condition implies it.
"""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, and_, literal_column, select, true

from tooltrail.store.filters import STATES_OF_STATUS, InvocationFilter
from tooltrail.store.tables import InvocationRow, SessionRow
from tooltrail.store.tables.invocations import LARGE_BYTES

_FAILED = STATES_OF_STATUS["error"]
"""States in which there is an error with its kind."""


def condition_of(
    where: InvocationFilter, row: type[InvocationRow] = InvocationRow
) -> ColumnElement[bool]:
    """A filter as SQL over `invocations`, or over a part of them that has the same columns."""
    parts: list[ColumnElement[bool]] = [true()]
    for column, values in (
        (row.tool_name, where.tools),
        (row.family, where.families),
        (row.id, where.invocations),
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
    return and_(*parts, *_of_results(where, row), *_of_sessions(where, row))


def _of_results(where: InvocationFilter, row: type[InvocationRow]) -> list[ColumnElement[bool]]:
    parts: list[ColumnElement[bool]] = []
    if where.error_kinds:
        parts += [row.error_kind.in_(where.error_kinds), _in_states(row, _FAILED)]
    if where.exit_statuses:
        parts.append(row.exit_status.in_(where.exit_statuses))
        if 0 not in where.exit_statuses:
            parts.append(row.exit_status != literal_column("0"))
    if where.min_size is not None:
        parts.append(row.output_size >= where.min_size)
        if where.min_size >= LARGE_BYTES:
            parts.append(row.output_size >= literal_column(str(LARGE_BYTES)))
    return parts


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
    return and_(among, row.state != literal_column("'success'"))
