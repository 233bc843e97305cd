"""The error payload of every family: how it is bounded, and how it is worded."""

from pydantic import JsonValue

from tooltrail.records import canonical_json
from tooltrail.records._error_text import escaped, one_line
from tooltrail.records._text_cuts import spelled_out
from tooltrail.records.budgets import ErrorBudget
from tooltrail.records.cutting import Cutter
from tooltrail.records.digests import digest_of
from tooltrail.records.previews import preview
from tooltrail.records.streams import StreamRecord
from tooltrail.records.tool_errors import ToolError

ERROR_RENDERER_NAME = "error"
"""Who worded the receipt of a failure: not the family, so its wording has its own version."""

ERROR_RENDERER_VERSION = 1
"""Of the wording of `render_error`."""


def bound_error(error: ToolError, budget: ErrorBudget, cutter: Cutter) -> ToolError:
    """The canonical error: kind and retryable as they are, everything else within its bounds."""
    hint = error.recovery_hint
    message = cutter.text("error.message", error.message, budget.message_chars)
    details = _bound_details(error, budget, cutter)
    if hint is not None:
        hint = cutter.text("error.recovery_hint", hint, budget.message_chars)
    return error.model_copy(update={"message": message, "details": details, "recovery_hint": hint})


def render_error(error: ToolError) -> str:
    """The receipt of a failure, the same for every family.

    Only its own lines begin at the margin: the further lines of a text are indented, and control
    characters are escaped. So it is up to `MOST_PER_CHAR` times as long as what it is made of.
    """
    lines = [f"Error ({error.kind}): {_indented(error.message)}"]
    if error.recovery_hint:
        lines.append(f"Hint: {_indented(error.recovery_hint)}")
    lines.append(f"Retryable: {'yes' if error.retryable else 'no'}")
    if error.details is not None:
        lines.append(_details_line(error.details))
    return "\n".join(lines) + "\n"


def _indented(text: str) -> str:
    return escaped(text.replace("\r\n", "\n")).replace("\n", "\n  ")


def _details_line(details: JsonValue) -> str:
    # JSON that was cut is shown as it is: as a string inside of JSON it would be escaped twice.
    match details:
        case {"omitted": True, "reason": str(reason), "preview": str(text)}:
            return _indented(f"Details ({one_line(spelled_out(reason))}; incomplete):\n{text}")
        case _:
            return f"Details: {escaped(canonical_json.encode_text(details))}"


def _bound_details(error: ToolError, budget: ErrorBudget, cutter: Cutter) -> JsonValue:
    text = canonical_json.encode_text(error.details)
    if len(text) <= budget.details_chars:
        return error.details
    data = text.encode()
    reason = f"longer than {budget.details_chars} characters"
    shown = preview(StreamRecord.from_bytes("details", data), budget.details_chars)
    left = len(data) - shown.omitted_bytes
    cutter.count("error.details", "bytes", len(data), left, f"details {reason}", stage="error")
    return {
        "omitted": True,
        "reason": reason,
        "char_count": len(text),
        "digest": digest_of(data),
        "preview": shown.text,
    }
