"""Invocations as a list shows them: small columns, and the views that are made of them."""

from typing import Any, Final

from tooltrail.store.read.rows import Columns, Row, damage_of
from tooltrail.store.views import InvocationView

SMALL: Final = Columns(
    "invocations.key",
    "invocations.id",
    "sessions.id AS session_id",
    "invocations.seq",
    "invocations.call_id",
    "invocations.tool_name",
    "invocations.family",
    "invocations.state",
    "invocations.arguments_preview",
    "invocations.started_at",
    "invocations.finished_at",
    "invocations.duration_ms",
    "invocations.error_kind",
    "invocations.exit_status",
    "invocations.signal",
    "invocations.timed_out",
    "invocations.output_size",
    "invocations.truncated",
    "invocations.lost_size",
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
    return InvocationView(*values, damage=damage_of("invocations", key, problems))
