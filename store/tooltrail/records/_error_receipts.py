"""Bounds and renders the error payload, in the same way for every family.

Only `details` is made smaller than in the complete output. With partial output it is an object:

    {"details": …, "partial_output": [{"role", "preview", "artifact", …}], "artifacts": […]}
"""

from collections.abc import Sequence
from typing import Any, TypeGuard

from pydantic import JsonValue

from tooltrail.records import canonical_json
from tooltrail.records._error_text import escaped, one_line
from tooltrail.records._text_cuts import spelled_out
from tooltrail.records.budgets import MAX_MESSAGE_CHARS, Budget, ErrorBudget
from tooltrail.records.cutting import Cutter
from tooltrail.records.digests import digest_of
from tooltrail.records.omissions import Omission
from tooltrail.records.shortened_json import ends, shorten_json
from tooltrail.records.streams import ORDER_ROLE, StreamRecord
from tooltrail.records.tool_errors import ToolError

ERROR_RENDERER_NAME = "error"
"""Renderer of every failure: the text does not depend on the family and has its own version."""

ERROR_RENDERER_VERSION = 3
"""The version of the text of `render_error`."""


def bound_error(
    error: ToolError,
    streams: Sequence[StreamRecord],
    bounds: ErrorBudget,
    budget: Budget,
    cutter: Cutter,
) -> ToolError:
    """The canonical error: bounded details; other fields unchanged up to `MAX_MESSAGE_CHARS`.

    `bounds` is for the details; `budget`, the family's, is for the previews of `streams`, which are
    the partial output.
    """
    details = _bound_details(error, bounds, cutter)
    by_role = {stream.role: stream for stream in streams}
    entries: list[JsonValue] = []
    message, stream = error.message, by_role.pop("error.message", None)
    # A message without an ellipsis is complete; its stream only adds the exact bytes.
    is_cut = len(message) > MAX_MESSAGE_CHARS // 2 and message.endswith("…")
    if stream is not None and is_cut:
        shown = cutter.stream(stream, MAX_MESSAGE_CHARS)
        if shown.text and shown.encoding != "binary":
            message = shown.text
        index = cutter.attach(stream) if shown.artifact is None else shown.artifact
        entries.append({"role": stream.role, "artifact": index, "size": stream.size})
    hint = error.recovery_hint
    fields: dict[str, JsonValue] = {
        "message": cutter.text("error.message", message, MAX_MESSAGE_CHARS),
        "recovery_hint": hint and cutter.text("error.recovery_hint", hint, MAX_MESSAGE_CHARS),
    }
    order = by_role.pop(ORDER_ROLE, None)
    if order is not None:
        cutter.count_losses(order)
    entries += _shown_streams(list(by_role.values()), budget, cutter)
    # Details of the tool that have this member must not look like partial output.
    if entries or _has_partial_output(details):
        details = {} if details is None else {"details": details}
        details["partial_output"] = entries
        hidden = cutter.hidden_list()
        if hidden is not None:
            details["hidden_artifact"] = hidden
        if cutter.references:
            details["artifacts"] = [{"path": one.path} for one in cutter.references]
    return error.model_copy(update={**fields, "details": details})


def render_error(error: ToolError, budget: ErrorBudget) -> tuple[str, tuple[Omission, ...]]:
    """The receipt of a failure, the same in every family, and what was too long for it.

    Above the partial output, only the receipt's own lines begin at the margin: continuation lines
    of a text are indented, and control characters are escaped.
    """
    details, partial, paths = error.details, list[dict[str, JsonValue]](), list[str]()
    if _has_partial_output(details):
        partial = _objects(details["partial_output"])
        paths = [str(one.get("path")) for one in _objects(details.get("artifacts"))]
        details = details.get("details")
    entry_of = {str(one.get("role")): one for one in partial}
    number_of = {role: one.get("artifact") for role, one in entry_of.items()}
    role_of = {n: role for n in range(len(paths)) for role, m in number_of.items() if n == m}
    omissions: list[Omission] = []

    def cut(name: str, text: str) -> str:
        if len(text) <= budget.message_chars:
            return _indented(text)
        field, before = f"error.{name}", len(text.encode())
        # The result has only the two ends of a text that is in an artifact.
        size = entry_of.get(field, {}).get("size")
        path = "".join(path for n, path in enumerate(paths) if role_of.get(n) == field)
        whole = size if isinstance(size, int) else before
        shown, after = _both_ends(text, whole, budget.message_chars, path)
        reason = f"longer than {budget.message_chars} characters"
        counts: dict[str, Any] = {"unit": "bytes", "before": before, "after": after}
        omissions.append(Omission(stage="rendering", field=field, reason=reason, **counts))
        return _indented(shown)

    lines = [f"Error ({error.kind}): {cut('message', error.message)}"]
    if error.recovery_hint:
        lines.append(f"Hint: {cut('recovery_hint', error.recovery_hint)}")
    lines.append(f"Retryable: {'yes' if error.retryable else 'no'}")
    if details is not None:
        lines.append(_details_line(details))
    for role, one in entry_of.items():
        if isinstance(text := one.get("preview"), str):
            lines += ["", f"{one_line(role)}:", text.removesuffix("\n")]
    if paths:
        listed = (f"{path} ({role_of.get(n, 'artifact')})" for n, path in enumerate(paths))
        lines += ["", "Artifacts:", *map(one_line, listed)]
    return "\n".join(lines) + "\n", tuple(omissions)


def _shown_streams(
    streams: Sequence[StreamRecord], budget: Budget, cutter: Cutter
) -> list[JsonValue]:
    room = cutter.fitting([[stream] for stream in streams], budget)
    listed = cutter.items("partial_output", streams, room)
    entries: list[JsonValue] = []
    for stream, shown in zip(listed, cutter.streams(listed, budget.preview_chars), strict=True):
        entry: dict[str, JsonValue] = {
            "role": stream.role,
            "preview": shown.text,
            "encoding": shown.encoding,
            "truncated": shown.truncated or None,
            "artifact": shown.artifact,
        }
        entries.append({name: value for name, value in entry.items() if value is not None})
    return entries


def _has_partial_output(details: JsonValue) -> TypeGuard[dict[str, JsonValue]]:
    return isinstance(details, dict) and isinstance(details.get("partial_output"), list)


def _objects(value: JsonValue) -> list[dict[str, JsonValue]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _both_ends(text: str, size: int, limit: int, path: str) -> tuple[str, int]:
    """The two ends of a text of `size` bytes, and the number of bytes that are shown."""
    where = f"; full output: {path}" if path else ""
    head, tail = ends(text, limit - len(f"\n[output truncated: {size:,} bytes omitted{where}]\n"))
    left = len((head + tail).encode())
    return f"{head}\n[output truncated: {size - left:,} bytes omitted{where}]\n{tail}", left


def _indented(text: str) -> str:
    return escaped(text.replace("\r\n", "\n")).replace("\n", "\n  ")


def _details_line(details: JsonValue) -> str:
    match details:
        case {"omitted": True, "reason": str(reason), "preview": shown}:
            text = shown if isinstance(shown, str) else canonical_json.encode_text(shown)
            return _indented(f"Details ({one_line(spelled_out(reason))}; incomplete):\n{text}")
        case _:
            return f"Details: {escaped(canonical_json.encode_text(details))}"


def _bound_details(error: ToolError, budget: ErrorBudget, cutter: Cutter) -> JsonValue:
    data = canonical_json.encode(error.details)
    char_count = len(data.decode())
    if char_count <= budget.details_chars:
        return error.details
    reason = f"longer than {budget.details_chars} characters"
    shown = shorten_json(error.details, budget.details_chars)
    cutter.count(
        "error.details", "bytes", len(data), shown.shown_bytes, f"details {reason}", stage="error"
    )
    return {
        "omitted": True,
        "reason": reason,
        "char_count": char_count,
        "digest": digest_of(data),
        "preview": shown.value,
    }
