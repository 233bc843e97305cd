"""A filter for invocations. Values of one field are joined by OR, different fields by AND.

The filter is a plain value; `read.conditions` turns it into SQL.
"""

from dataclasses import dataclass, fields
from datetime import datetime
from typing import get_args
from uuid import UUID

from tooltrail.records.errors import InvalidRecordError
from tooltrail.records.states import InvocationState

STATES_OF_STATUS: dict[str, tuple[InvocationState, ...]] = {
    "success": ("success",),
    "error": ("error", "interrupted", "denied", "cancelled"),
}
"""The states of each status, so that a list does not have to read the canonical results."""


STATES: tuple[str, ...] = get_args(InvocationState)
"""Every state of an invocation."""

MOST_VALUES = 30_000
"""Most values of one filter. An SQLite statement accepts 32,766, including invocation keys."""


@dataclass(frozen=True, slots=True)
class InvocationFilter:
    """Conditions on invocations. An empty filter matches all.

    Raises `InvalidRecordError` for an unknown state or status, and for a text instead of a tuple of
    texts: such a filter matches nothing, and an empty list would hide the mistake. Also raises it
    for a time without a zone, and for more than `MOST_VALUES` values in total.

    Attributes:
        sessions: ids of sessions.
        statuses: `success` or `error`, the status of the canonical result.
        agents: names of the agents of the session.
        since: started at this time or later, aware.
        until: started before this time, aware.
        min_size: least number of bytes that the tool produced.
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
        for name in LISTS:
            values: object = getattr(self, name)
            if not isinstance(values, tuple):
                raise InvalidRecordError(f"filter {name} takes a tuple, not {values!r:.80}")
        for name, known in (("states", STATES), ("statuses", tuple(STATES_OF_STATUS))):
            for value in getattr(self, name):
                if value not in known:
                    raise InvalidRecordError(
                        f"filter {name} has {value!r:.80}; known are {', '.join(known)}"
                    )
        for at in (self.since, self.until):
            if at is not None and at.tzinfo is None:
                raise InvalidRecordError(f"filter time {at} has no zone")
        count = sum(len(getattr(self, name)) for name in LISTS)
        if count > MOST_VALUES:
            raise InvalidRecordError(
                f"a filter has {count} values, and may have {MOST_VALUES}; ask several times"
            )


LISTS = tuple(one.name for one in fields(InvocationFilter) if one.default == ())
"""The fields that accept several values."""

ALL = InvocationFilter()
