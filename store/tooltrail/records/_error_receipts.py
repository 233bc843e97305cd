"""Bounds and renders the error payload, in the same way for every family.

Only `details` is made smaller than in the complete output. With partial output it is an object:

    {"details": …, "partial_output": [{"role", "preview", "artifact", …}], "artifacts": […]}
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

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


_TEXTS = ("message", "recovery_hint")
"""The fields whose text is kept in a stream of the role `error.FIELD` if it is too long."""


class WordedError(NamedTuple):
    """The receipt of a failure.

    Attributes:
        text: the text of the receipt.
        omissions: the texts that were too long for the receipt.
    """

    text: str
    omissions: tuple[Omission, ...]


def bound_error(
    error: ToolError,
    streams: Sequence[StreamRecord],
    bounds: ErrorBudget,
    budget: Budget,
    cutter: Cutter,
) -> ToolError:
    """The canonical error: bounded details; other fields unchanged up to `MAX_MESSAGE_CHARS`.

    Args:
        error: the error of the complete output.
        streams: the partial output of the failure.
        bounds: the bounds of the details.
        budget: the family's budget, for the previews of the streams.
        cutter: counts what is left out, and publishes streams.
    """
    details = _bound_details(error, bounds, cutter)
    by_role = {stream.role: stream for stream in streams}
    entries: list[JsonValue] = []
    fields: dict[str, str] = {}
    for name in _TEXTS:
        text, stream = getattr(error, name), by_role.pop(f"error.{name}", None)
        # A text without an ellipsis is complete; its stream only adds the exact bytes.
        is_cut = text is not None and len(text) > MAX_MESSAGE_CHARS // 2 and text.endswith("…")
        if stream is not None and is_cut:
            shown = cutter.stream(stream, MAX_MESSAGE_CHARS)
            if shown.text and shown.encoding != "binary":
                text = shown.text
            index = cutter.attach(stream) if shown.artifact is None else shown.artifact
            entries.append({"role": stream.role, "artifact": index, "size": stream.size})
        if text is not None:
            fields[name] = cutter.text(f"error.{name}", text, MAX_MESSAGE_CHARS)
    order = by_role.pop(ORDER_ROLE, None)
    if order is not None:
        cutter.count_losses(order)
    entries += _shown_streams(list(by_role.values()), budget, cutter)
    if entries:
        details = {} if details is None else {"details": details}
        details["partial_output"] = entries
        hidden = cutter.hidden_list()
        if hidden is not None:
            details["hidden_artifact"] = hidden
        if cutter.references:
            details["artifacts"] = [{"path": one.path} for one in cutter.references]
    return error.model_copy(update={**fields, "details": details})


def render_error(error: ToolError, budget: ErrorBudget) -> WordedError:
    """Render the receipt of a failure, in the same way for every family.

    Above the partial output, only the receipt's own lines begin at the margin: continuation lines
    of a text are indented, and control characters are escaped. So that part is up to
    `MOST_PER_CHAR` times as long as the texts in it.
    """
    details, partial = error.details, list[dict[str, JsonValue]]()
    paths: list[str] = []
    if isinstance(details, dict) and isinstance(entries := details.get("partial_output"), list):
        partial = [one for one in entries if isinstance(one, dict)]
        paths = _paths(details.get("artifacts"))
        details = details.get("details")
    roles = {one["artifact"]: one["role"] for one in partial if "artifact" in one}
    path_of = {role: paths[n] for n, role in roles.items() if isinstance(n, int) and n < len(paths)}
    entry_of = {one.get("role"): one for one in partial}
    omissions: list[Omission] = []

    def cut(name: str, text: str) -> str:
        if len(text) <= budget.message_chars:
            return _indented(text)
        field = f"error.{name}"
        size = max(len(text.encode()), _size_in(entry_of.get(field, {})))
        shown, left = _both_ends(text, size, budget.message_chars, path_of.get(field))
        reason = f"longer than {budget.message_chars} characters"
        counts: dict[str, Any] = {"unit": "bytes", "before": len(text.encode()), "after": left}
        omissions.append(Omission(stage="rendering", field=field, reason=reason, **counts))
        return _indented(shown)

    lines = [f"Error ({error.kind}): {cut('message', error.message)}"]
    if error.recovery_hint:
        lines.append(f"Hint: {cut('recovery_hint', error.recovery_hint)}")
    lines.append(f"Retryable: {'yes' if error.retryable else 'no'}")
    if details is not None:
        lines.append(_details_line(details))
    for one in partial:
        if isinstance(text := one.get("preview"), str):
            lines += ["", f"{one_line(str(one.get('role')))}:", text.removesuffix("\n")]
    if paths:
        listed = [f"{path} ({roles.get(n, 'artifact')})" for n, path in enumerate(paths)]
        lines += ["", "Artifacts:", *map(one_line, listed)]
    return WordedError("\n".join(lines) + "\n", tuple(omissions))


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


def _paths(artifacts: JsonValue) -> list[str]:
    listed = artifacts if isinstance(artifacts, list) else []
    return [str(one.get("path")) for one in listed if isinstance(one, dict)]


def _size_in(entry: Mapping[str, JsonValue]) -> int:
    """Bytes of a text of which the result has only the two ends; 0 if it has the complete text."""
    size = entry.get("size")
    return size if isinstance(size, int) else 0


def _both_ends(text: str, size: int, limit: int, path: str | None) -> tuple[str, int]:
    """The two ends of a text of `size` bytes, and the number of bytes that are shown."""
    where = f"; full output: {path}" if path else ""
    room = limit - len(f"\n[output truncated: {size:,} bytes omitted{where}]\n")
    head, tail = ends(text, room)
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
