"""Invocations as a list shows them: small columns, and the views that are made of them."""

from collections.abc import Mapping
from typing import Any, Final

from tooltrail.records.argument_previews import PREVIEWED_CHARS, preview_arguments
from tooltrail.store.read.columns import Columns, Computed, damage_of, make_view
from tooltrail.store.read.rows import Row
from tooltrail.store.views import InvocationView

SMALL_COLUMNS: Final = (
    "invocations: key id",
    Computed("sessions.id", "session_id", "id"),
    "invocations: seq call_id tool_name family state",
    Computed(
        "COALESCE(invocations.title, (SELECT substr(surfaces.arguments, 1,"
        f" {PREVIEWED_CHARS}) FROM surfaces WHERE surfaces.invocation_key = invocations.key), '')",
        "arguments_preview",
        "text",
    ),
    "invocations: started_at finished_at duration_ms error_kind exit_status signal timed_out",
    "invocations: output_size truncated lost_size",
)
"""The key, and what an `InvocationView` holds."""

SMALL: Final = Columns(*SMALL_COLUMNS)

# The session may be lost. Its invocations must not be lost with it.
WITH_SESSION: Final = "invocations LEFT JOIN sessions ON sessions.key = invocations.session_key"


def invocation_view(row: Row) -> InvocationView:
    """The view of a row that begins with `SMALL`."""
    values, problems = SMALL.read(row)
    return view_of(values, damage_of("invocations", values["key"], problems))


def view_of(values: Mapping[str, Any], damage: str | None) -> InvocationView:
    """The view of values that have the names of `SMALL`, among others."""
    preview = preview_arguments(values["arguments_preview"])
    return make_view(InvocationView, values, arguments_preview=preview, damage=damage)
