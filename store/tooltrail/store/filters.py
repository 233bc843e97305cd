"""Which invocations are meant. A field with several values is OR, different fields are AND."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import get_args
from uuid import UUID

from sqlalchemy import ColumnElement, and_, literal_column, select

from tooltrail.records import InvalidRecordError, InvocationState
from tooltrail.store.tables import InvocationRow, SessionRow

_STATES_OF_STATUS: dict[str, tuple[InvocationState, ...]] = {
    "success": ("success",),
    "error": ("error", "interrupted", "denied", "cancelled"),
}
"""The state says the status too, so that a list need not look into the canonical results."""


STATES: tuple[str, ...] = get_args(InvocationState)
"""Every state that an invocation can be in."""

_LISTS = (
    "sessions",
    "invocations",
    "tools",
    "families",
    "states",
    "statuses",
    "error_kinds",
    "agents",
)


@dataclass(frozen=True, slots=True)
class InvocationFilter:
    """Conditions on invocations; an empty one means all.

    Raises `InvalidRecordError` for an unknown state or status, or text where a tuple of texts
    belongs: a filter that can fit nothing is a mistake that an empty list would hide.

    Attributes:
        sessions: ids of sessions.
        invocations: ids of invocations.
        tools: tool names.
        families: family names.
        states: invocation states.
        statuses: `success` or `error` of the canonical result.
        error_kinds: kinds of error.
        agents: names of agents that held the session.
        since: started at this time or later, aware.
        until: started before this time, aware.
        exit_statuses: exit statuses of commands.
        min_size: produced at least so many bytes.
    """

    sessions: tuple[UUID, ...] = ()
    tools: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    error_kinds: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    exit_statuses: tuple[int, ...] = ()
    min_size: int | None = None
    invocations: tuple[UUID, ...] = ()

    def __post_init__(self) -> None:
        for name in _LISTS:
            values: object = getattr(self, name)
            if not isinstance(values, tuple):
                raise InvalidRecordError(f"filter {name} takes a tuple, not {values!r:.80}")
        for name, known in (("states", STATES), ("statuses", tuple(_STATES_OF_STATUS))):
            for value in getattr(self, name):
                if value not in known:
                    raise InvalidRecordError(
                        f"filter {name} has {value!r:.80}; known are {', '.join(known)}"
                    )

    def condition(self) -> ColumnElement[bool]:
        """The filter as SQL over `invocations`."""
        row = InvocationRow
        parts: list[ColumnElement[bool]] = [row.key > 0]
        for column, values in (
            (row.tool_name, self.tools),
            (row.family, self.families),
            (row.error_kind, self.error_kinds),
            (row.id, self.invocations),
            (row.exit_status, self.exit_statuses),
        ):
            if values:
                parts.append(column.in_(values))
        if self.states:
            parts.append(_in_states(self.states))
        if self.statuses:
            states = [s for status in self.statuses for s in _STATES_OF_STATUS.get(status, ())]
            parts.append(_in_states(states))
        if self.since is not None:
            parts.append(row.started_at >= self.since)
        if self.until is not None:
            parts.append(row.started_at < self.until)
        if self.min_size is not None:
            parts.append(row.output_size >= self.min_size)
        return and_(*parts, *self._of_other_tables())

    def _of_other_tables(self) -> list[ColumnElement[bool]]:
        parts: list[ColumnElement[bool]] = []
        if self.sessions:
            keys = select(SessionRow.key).where(SessionRow.id.in_(self.sessions))
            parts.append(InvocationRow.session_key.in_(keys))
        if self.agents:
            keys = select(SessionRow.key).where(SessionRow.agent.in_(self.agents))
            parts.append(InvocationRow.session_key.in_(keys))
        return parts


def _in_states(states: Sequence[str]) -> ColumnElement[bool]:
    among = InvocationRow.state.in_(states)
    if "success" in states:
        return among
    # The index of the states leaves successes out, and is used only where the SQL says so too.
    return and_(among, InvocationRow.state != literal_column("'success'"))


ALL = InvocationFilter()
