"""A filter for invocations. Values of one field are joined by OR, different fields by AND.

The filter is a plain value; `read.conditions` turns it into SQL.
"""

from datetime import datetime
from types import NoneType
from typing import TYPE_CHECKING, get_args
from uuid import UUID

from tooltrail.records.errors import InvalidRecordError, check_type
from tooltrail.records.frozen import Frozen
from tooltrail.records.states import InvocationState

if TYPE_CHECKING:
    from tooltrail.store.expressions import Expression

STATES: tuple[str, ...] = get_args(InvocationState)
"""Every state of an invocation."""

FAILED = ("exit", "signal", "timeout", "error", "denied", "interrupted", "cancelled")
"""The outcomes of calls that did not do what was asked for."""

OUTCOMES = ("ok", "running", "unfinished", *FAILED)
"""Every outcome: `exit` is a command with another exit status than 0, `signal` one that a signal
ended, `error` a tool that failed, `unfinished` a call of which a hook or an import recorded no
result yet."""

COLUMN_OF = {
    "exit_statuses": "exit_status",
    "error_kinds": "error_kind",
    "outcomes": "outcome",
    "states": "state",
    "tools": "tool",
    "families": "family",
    "agents": "agent",
    "signals": "signal",
}
"""The column that a list of a filter compares, as `expressions` names the column."""

MOST_VALUES = 30_000
"""Most values of one filter. An SQLite statement accepts 32,766, including invocation keys."""


class InvocationFilter(Frozen):
    """Conditions on invocations. An empty filter matches all.

    Raises `InvalidRecordError` for an unknown state or outcome, and for a text instead of a tuple
    of texts: such a filter matches nothing, and an empty list would hide the mistake. Also raises
    it for a time without a zone, and for more than `MOST_VALUES` values in total.

    Attributes:
        sessions: ids of sessions.
        outcomes: some of `OUTCOMES`.
        signals: numbers of signals that ended a command.
        not_exit_statuses: exit statuses that a command must not have. It must have another one.
        agents: names of the agents of the session.
        since: started at this time or later, aware.
        until: started before this time, aware.
        min_size: least number of bytes that the tool produced.
        expression: a condition over columns and documents, see `tooltrail.store.expressions`.
    """

    sessions: tuple[UUID, ...] = ()
    tools: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()
    error_kinds: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    exit_statuses: tuple[int, ...] = ()
    not_exit_statuses: tuple[int, ...] = ()
    signals: tuple[int, ...] = ()
    min_size: int | None = None
    invocations: tuple[UUID, ...] = ()
    expression: "Expression | None" = None

    def __post_init__(self) -> None:
        for name in LISTS:
            values: object = getattr(self, name)
            if not isinstance(values, tuple):
                raise InvalidRecordError(f"filter {name} takes a tuple, not {values!r:.80}")
        for name, known in (("states", STATES), ("outcomes", OUTCOMES)):
            for value in getattr(self, name):
                if value not in known:
                    raise InvalidRecordError(
                        f"filter {name} has {value!r:.80}; known are {', '.join(known)}"
                    )
        check_type("filter min_size", self.min_size, int, NoneType)
        for name in ("since", "until"):
            at = getattr(self, name)
            check_type(f"filter {name}", at, datetime, NoneType)
            if at is not None and at.tzinfo is None:
                raise InvalidRecordError(f"filter time {at} has no zone")
        if self.expression is not None:
            from tooltrail.store.expressions import check_size  # noqa: PLC0415  rarely needed

            check_size(self.expression)
        count = sum(len(getattr(self, name)) for name in LISTS)
        if count > MOST_VALUES:
            raise InvalidRecordError(
                f"a filter has {count} values, and may have {MOST_VALUES}; ask several times"
            )


LISTS = tuple(
    name for name in InvocationFilter.member_types if getattr(InvocationFilter, name) == ()
)
"""The fields that accept several values."""

ALL = InvocationFilter()
