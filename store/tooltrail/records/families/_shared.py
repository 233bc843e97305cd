"""What several families need: shares of a budget, previews with artifacts, readable JSON."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from pydantic import model_serializer
from pydantic_core.core_schema import SerializerFunctionWrapHandler

from tooltrail.records._model import Record, spelled_out
from tooltrail.records._text_cuts import shorten
from tooltrail.records.omissions import Omission, omission_if_any
from tooltrail.records.policy import Policy
from tooltrail.records.previews import Preview, needed_chars, preview
from tooltrail.records.projection import ArtifactList, capture_omissions
from tooltrail.records.streams import StreamRecord

_INDENT = "  "
_JSON_LEXEME = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s"\[\]{},:]+')

_JSON_START = re.compile(r'\s*(?:\{\s*["}]|\[\s*(?:[\[{"\]\d-]|true\b|false\b|null\b))')
"""How JSON starts; a log line such as `[INFO] …` must not be taken for it."""

_JSON_STUMP = 8
"""Longer than anything that a cut leaves of a literal or an escape, `\\ud83` for instance."""

_NOTICE = re.compile(r"\n?\[output (?:truncated|incomplete): ")
"""How the notice begins that stands in a preview where something is missing."""

_REASON_CHARS = 200
"""Longest reason for a loss that a preview repeats."""


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
    notice = _loss_notice(stream)[: max(budget, 0)]
    budget -= len(notice)
    shown = preview(stream, budget, edge_bytes=policy.edge_bytes)
    index = None
    if shown.truncated or stream.size > policy.inline_bytes:
        index = artifacts.add(stream)
        if shown.truncated:
            path = artifacts.path(index)
            shown = preview(stream, budget, edge_bytes=policy.edge_bytes, full_output=path)
    omissions = capture_omissions(stream) + _projection_omissions(stream, shown)
    if notice:
        if not shown.text or shown.text.endswith("\n"):
            notice = notice.removeprefix("\n")
        shown = replace(shown, text=shown.text + notice)
    return shown, index, omissions


def shares(streams: Sequence[StreamRecord], total: int, policy: Policy) -> list[int]:
    """The share of a budget in characters that each stream gets for its preview."""
    edge_bytes = policy.edge_bytes
    needs = [needed_chars(s, edge_bytes) + len(_loss_notice(s)) for s in streams]
    return fair_shares(needs, total)


def is_cut(stream: StreamRecord, shown: Preview) -> bool:
    """Whether any stage so far left something of the stream out."""
    return shown.truncated or stream.loss_reason is not None


def readable(texts: Iterable[tuple[str, bool]], room: int) -> list[str]:
    """Texts for a receipt: JSON is indented when it is whole and fits, and named when it is cut.

    Args:
        texts: each with whether it was cut.
        room: characters for all of them; only what they leave is used to indent.
    """
    pairs = list(texts)
    spare = room - sum(len(text) for text, _ in pairs)
    bodies: list[str] = []
    for text, truncated in pairs:
        body = _name_cut_json(text) if truncated else _indent_json(text, len(text) + spare)
        # The notice about cut JSON stands in the frame, so that no cut can go without it.
        spare -= 0 if truncated else len(body) - len(text)
        bodies.append(body)
    return bodies


def _name_cut_json(text: str) -> str:
    if _JSON_START.match(text) is None or not _is_json_beginning(_NOTICE.split(text)[0]):
        return text
    separator = "" if text.endswith("\n") else "\n"
    return f"{text}{separator}[the JSON above is incomplete]\n"


def _is_json_beginning(text: str) -> bool:
    """Whether JSON could go on where `text` ends; a log line in brackets could not."""
    text = text.rstrip()
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        rest = text[error.pos :]
        return (
            len(rest) < _JSON_STUMP
            or error.msg.startswith("Unterminated")
            or (error.msg == "Extra data" and _JSON_START.match(rest) is not None)
        )
    except (ValueError, RecursionError):
        pass  # a number too long or a nesting too deep for Python is still JSON
    return True


def _indent_json(text: str, room: int) -> str:
    if _JSON_START.match(text) is None:
        return text
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
    reason = shorten(spelled_out(stream.loss_reason), _REASON_CHARS)
    return f"\n[output incomplete: the last {lost:,} bytes were not kept: {reason}]\n"
