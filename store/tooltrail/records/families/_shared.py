"""What several families need: shares of a budget, previews with artifacts, readable JSON."""

import json
import re
from collections.abc import Sequence

from pydantic import model_serializer
from pydantic_core.core_schema import SerializerFunctionWrapHandler

from tooltrail.records._model import Record
from tooltrail.records.omissions import Omission, omission_if_any
from tooltrail.records.policy import Policy
from tooltrail.records.previews import Preview, needed_chars, preview
from tooltrail.records.projection import ArtifactList, capture_omissions
from tooltrail.records.streams import StreamRecord

_INDENT = "  "
_JSON_LEXEME = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s"\[\]{},:]+')

_JSON_START = re.compile(r'\s*(?:\{\s*["}]|\[\s*[\[{"\]\d-])')
"""How JSON starts; a log line such as `[INFO] …` must not be taken for it."""


class SparseRecord(Record):
    """A record whose optional fields are left out of its JSON when they are None."""

    @model_serializer(mode="wrap")
    def _leave_out(self, handler: SerializerFunctionWrapHandler) -> dict[str, object]:
        members: dict[str, object] = handler(self)
        return {
            name: value
            for name, value in members.items()
            if value is not None or type(self).model_fields[name].is_required()
        }


def fair_shares(sizes: Sequence[int], total: int) -> list[int]:
    """Divide `total` so that nobody gets more than needed and the rest is shared equally."""
    shares = [0] * len(sizes)
    waiting = sorted(range(len(sizes)), key=sizes.__getitem__)
    while waiting:
        first = waiting[0]
        shares[first] = min(sizes[first], total // len(waiting))
        total -= shares[first]
        waiting = waiting[1:]
    return shares


def preview_stream(
    stream: StreamRecord, budget: int, policy: Policy, artifacts: ArtifactList
) -> tuple[Preview, int | None, tuple[Omission, ...]]:
    """Preview a stream; publish it when it is long or cut.

    Returns:
        The preview (with a closing line when the capture itself lost bytes), the artifact index
        or None, and the omissions of capture and projection.
    """
    notice = _loss_notice(stream)
    budget = max(budget - len(notice), 0)
    shown = preview(stream, budget)
    index = None
    if shown.truncated or stream.size > policy.inline_bytes:
        index = artifacts.add(stream)
        if shown.truncated:
            shown = preview(stream, budget, full_output=artifacts.path(index))
    omissions = capture_omissions(stream) + _projection_omissions(stream, shown)
    if notice:
        shown = Preview(
            shown.text + notice, shown.encoding, shown.omitted_bytes, shown.omitted_lines
        )
    return shown, index, omissions


def shares(streams: Sequence[StreamRecord], total: int) -> list[int]:
    """The share of a budget in characters that each stream gets for its preview."""
    return fair_shares([needed_chars(s) + len(_loss_notice(s)) for s in streams], total)


def is_cut(stream: StreamRecord, shown: Preview) -> bool:
    """Whether any stage so far left something of the stream out."""
    return shown.truncated or stream.loss_reason is not None


def readable(text: str, *, truncated: bool, room: int) -> str:
    """Text for a receipt: JSON is indented when it is whole and fits, and named when it is cut."""
    if _JSON_START.match(text) is None:
        return text
    if truncated:
        notice = "[the JSON above is incomplete]\n"
        separator = "" if text.endswith("\n") else "\n"
        return f"{text}{separator}{notice}" if len(text) + len(notice) < room else text
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return text
    indented = indent_json(text)
    return indented if len(indented) <= room else text


def indent_json(text: str) -> str:
    """Lay valid JSON out over lines without changing any of its lexemes.

    Numbers keep their spelling and repeated keys stay, which a parser would not promise.
    """
    lexemes = _JSON_LEXEME.findall(text)
    parts: list[str] = []
    depth = 0
    for position, lexeme in enumerate(lexemes):
        previous = lexemes[position - 1] if position else ""
        if lexeme in "]}":
            depth -= 1
            parts.append("" if previous in ("[", "{") else "\n" + _INDENT * depth)
        elif previous in ("[", "{", ","):
            parts.append("\n" + _INDENT * depth)
        parts.append(": " if lexeme == ":" else lexeme)
        depth += lexeme in ("[", "{")
    return "".join(parts) + "\n"


def _projection_omissions(stream: StreamRecord, shown: Preview) -> tuple[Omission, ...]:
    reason = "binary output is not shown" if shown.encoding == "binary" else "preview budget"
    return omission_if_any(
        "projection",
        stream.role,
        "bytes",
        before=stream.size,
        after=stream.size - shown.omitted_bytes,
        reason=reason,
    ) + omission_if_any(
        "projection",
        stream.role,
        "lines",
        before=stream.line_count,
        after=stream.line_count - shown.omitted_lines,
        reason=reason,
    )


def _loss_notice(stream: StreamRecord) -> str:
    if stream.loss_reason is None:
        return ""
    lost = stream.produced_size - stream.size
    return f"\n[output incomplete: the last {lost:,} bytes were not kept: {stream.loss_reason}]\n"
