"""Invocations as a list shows them: small columns, and the views that are made of them."""

from typing import Any, Final

from tooltrail.store.read.columns import Columns, Computed, damage_of
from tooltrail.store.read.rows import Row
from tooltrail.store.views import InvocationView

SMALL: Final = Columns(
    "invocations: key id",
    Computed("sessions.id", "session_id", "id"),
    "invocations: seq call_id tool_name family state arguments_preview started_at finished_at"
    " duration_ms error_kind exit_status signal timed_out output_size truncated lost_size",
)
"""The key, and what an `InvocationView` holds in its order."""

# The session may be lost. Its invocations must not be lost with it.
WITH_SESSION: Final = "invocations LEFT JOIN sessions ON sessions.key = invocations.session_key"


def invocation_view(row: Row) -> InvocationView:
    """The view of a row that begins with `SMALL`."""
    problems: list[str] = []
    key, *values = SMALL.read(row, problems)
    return view_of(key, values, problems)


def view_of(key: int, values: list[Any], problems: list[str]) -> InvocationView:
    """The view of values that `SMALL` read."""
    values.append(damage_of("invocations", key, problems))
    return InvocationView(*values)
