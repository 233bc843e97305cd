"""Invocations as a list shows them: small columns, and the views that are made of them."""

from typing import Any, Final

from sqlalchemy import FromClause, Join

from tooltrail.store.read.rows import AnyRow, Columns, damage_of
from tooltrail.store.schema import invocations, sessions
from tooltrail.store.views import InvocationView

SMALL: Final = Columns(
    invocations.c.key,
    invocations.c.id,
    # The session may be lost. Its invocations must not be lost with it.
    sessions.c.id.label("session_id"),
    invocations.c.seq,
    invocations.c.call_id,
    invocations.c.tool_name,
    invocations.c.family,
    invocations.c.state,
    invocations.c.arguments_preview,
    invocations.c.started_at,
    invocations.c.finished_at,
    invocations.c.duration_ms,
    invocations.c.error_kind,
    invocations.c.exit_status,
    invocations.c.signal,
    invocations.c.timed_out,
    invocations.c.output_size,
    invocations.c.truncated,
    invocations.c.lost_size,
)
"""The key, and what an `InvocationView` holds in its order."""


def with_session(invocation: FromClause = invocations) -> Join:
    """Invocations, each with its session where the session is not lost."""
    return invocation.outerjoin(sessions, sessions.c.key == invocation.c.session_key)


def invocation_view(row: AnyRow) -> InvocationView:
    """The view of a row that begins with `SMALL`."""
    problems: list[str] = []
    key, *values = SMALL.read(row, problems)
    return view_of(key, values, problems)


def view_of(key: int, values: list[Any], problems: list[str]) -> InvocationView:
    """The view of values that `SMALL` read."""
    values.append(damage_of(invocations.name, key, problems))
    return InvocationView(*values)
