"""Which invocations are meant. A field with several values is OR, different fields are AND.

A plain value; `read.conditions` makes SQL of it.
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
"""The state says the status too, so that a list need not look into the canonical results."""


STATES: tuple[str, ...] = get_args(InvocationState)
"""Every state that an invocation can be in."""

MOST_VALUES = 30_000
"""Values of one filter; a statement of SQLite takes 32,766, with keys of invocations among them."""


@dataclass(frozen=True, slots=True)
class InvocationFilter:
    """Conditions on invocations; an empty one means all.

    Raises `InvalidRecordError` for an unknown state or status, or text where a tuple of texts
    belongs: a filter that can fit nothing is a mistake that an empty list would hide. Likewise for
    a time without a zone, and for more than `MOST_VALUES` values in all.

    Attributes:
        sessions: ids of sessions.
        statuses: `success` or `error` of the canonical result.
        agents: names of agents that held the session.
        since: started at this time or later, aware.
        until: started before this time, aware.
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
"""The fields that take several values."""

ALL = InvocationFilter()
