"""One invocation as `show` prints it: its facts, and its three surfaces."""

import json
import shlex
from collections.abc import Iterator
from typing import Any

from tooltrail.cli._output import counted, duration_of, on_terminal, short_digest, size_of
from tooltrail.cli._tables import BOLD, colour_of_outcome, coloured
from tooltrail.cli._times import shown
from tooltrail.records.ids import short_id
from tooltrail.records.plain_text import text_from
from tooltrail.store import InvocationDetail
from tooltrail.store.read.environments import members_of


class _Styled(str):
    """A line with colours, in which control characters were replaced."""

    __slots__ = ()


def as_record(detail: InvocationDetail) -> dict[str, Any]:
    """The invocation as one JSON object, with its surfaces as stored."""
    return {
        **detail.summary.as_dict(),
        "outcome": detail.summary.outcome,
        "arguments_raw": text_from(detail.arguments),
        "policy_digest": detail.policy_digest,
        "complete_output": _parsed(detail.complete_json),
        "streams": [stream.as_dict() for stream in detail.streams],
        "canonical_result": _parsed(detail.canonical_json),
        "artifacts": [{"role": role, "path": path} for role, path in detail.artifacts],
        "receipt": None if detail.receipt is None else detail.receipt.as_dict(),
        "omissions": [omission.as_dict() for omission in detail.omissions],
        "source": None if detail.source is None else detail.source.as_dict(),
        "not_recorded": list(detail.not_recorded),
        "redacted": [one.as_dict() for one in detail.redacted],
        "extras": _parsed(detail.extras),
        "environment": detail.environment and dict(members_of(detail.environment)),
    }


def describe(detail: InvocationDetail) -> str:
    """The overview that `show` prints: what the model saw, what was cut, and where the rest is.

    Reads no stream. Control characters are replaced, and line breaks within a line, too. So no
    recorded text can look like a line of this overview.
    """
    return "".join(
        f"{line if isinstance(line, _Styled) else _one_line(line)}\n"
        for lines_of in (_facts, _receipt, _omissions, _complete, _canonical)
        for line in lines_of(detail)
    )


def _one_line(text: str) -> str:
    return on_terminal(text).replace("\n", "\ufffd")


def _facts(detail: InvocationDetail) -> Iterator[str]:
    summary = detail.summary
    yield f"invocation {summary.id}"
    yield f"session    {summary.session_id}#{summary.seq}"
    yield f"tool       {summary.tool_name} ({summary.family} family)"
    if summary.call_id is not None:
        yield f"call id    {summary.call_id}"
    yield f"call       {summary.arguments_preview}"
    outcome = coloured(_one_line(summary.outcome), colour_of_outcome(summary.outcome))
    # The outcome says no exit status of a command that worked or timed out.
    is_known = summary.exit_status is not None and not summary.outcome.startswith("exit ")
    status = f", exit status {summary.exit_status}" if is_known else ""
    yield _Styled(f"outcome    {outcome}{status}")
    if summary.error_kind is not None:
        output: dict[str, Any] = _parsed(detail.complete_json) or {}
        error: dict[str, Any] = output.get("error") or {}
        message = f"error      {summary.error_kind}: {error.get('message') or '(no message)'}"
        yield from message.replace("\n", f"\n{' ' * 11}").split("\n")
    took = duration_of(summary.duration_ms)
    late = ", after its session was closed" if summary.is_late else ""
    yield f"started    {shown(summary.started_at)}{f', took {took}' if took else ''}{late}"
    if where := _where(detail):
        yield f"where      {where}"
    if source := detail.source:
        yield f"source     {source.format}: {source.file}, byte {source.offset:,}"
    if detail.redacted:
        count = sum(one.count for one in detail.redacted)
        places = ", ".join(f"{one.rule} in {one.field}" for one in detail.redacted)
        yield f"redacted   {counted(count, 'secret')}: {places}"


def _where(detail: InvocationDetail) -> str:
    """Who ran the call on which machine, in which folder, at which commit."""
    found = members_of(detail.environment)
    at = "@".join(str(found[name]) for name in ("user", "host") if found.get(name))
    folder = f"in {found['cwd']}" if found.get("cwd") else ""
    commit = f"at commit {found['git_commit']}" if found.get("git_commit") else ""
    return " ".join(filter(None, (at, folder, commit)))


def _complete(detail: InvocationDetail) -> Iterator[str]:
    yield from _title("complete output", size_of(detail.summary.output_size))
    name = short_id(detail.summary.id)
    if detail.complete_json is None:
        yield f"({detail.absence_of('output')})"
    if detail.summary.state == "started" and detail.source is None:
        yield f"  tooltrail tail -f {name}"
    for stream in detail.streams:
        lines, digest = counted(stream.line_count, "line"), short_digest(stream.digest)
        is_artifact = stream.artifact_path is not None or stream.pending_reason is not None
        where = "an artifact" if is_artifact else "in the database"
        yield f"[{stream.role}] {stream.size:,} bytes, {lines}, {digest}, {where}"
        if stream.pending_reason is not None:
            yield f"  could not be stored at once: {stream.pending_reason}"
        if stream.loss_reason is not None:
            yield f"  {stream.produced_size - stream.size:,} bytes lost: {stream.loss_reason}"
        if stream.role != "order" and stream.size:
            yield f"  tooltrail cat --stream {shlex.quote(stream.role)} {name}"


def _canonical(detail: InvocationDetail) -> Iterator[str]:
    text = detail.canonical_json
    yield from _title("canonical result", "" if text is None else f"{_size_of(text):,} bytes")
    if text is None:
        yield f"({detail.absence_of('canonical')})"
    else:
        yield f"  tooltrail show --surface canonical {short_id(detail.summary.id)}"


def _receipt(detail: InvocationDetail) -> Iterator[str]:
    receipt = detail.receipt
    if receipt is None:
        yield from _title("receipt", "")
        yield f"({detail.absence_of('receipt')})"
        return
    maker = f"made by renderer {receipt.renderer_name} {receipt.renderer_version}"
    if not receipt.renderer_version:
        maker = "recorded as the model saw it"
    yield from _title("receipt", f"{_size_of(receipt.text):,} bytes, {maker}")
    yield from receipt.text.splitlines()


def _size_of(text: str) -> int:
    """The bytes of a stored text, which may have lone surrogates."""
    return len(text.encode("utf-8", "surrogatepass"))


def _omissions(detail: InvocationDetail) -> Iterator[str]:
    if detail.omissions:
        yield from _title("left out", "")
    for cut in detail.omissions:
        shown_part = f"{cut.field} shows {cut.after:,} of {cut.before:,} {cut.unit}"
        yield f"{cut.stage}: {shown_part} ({cut.before - cut.after:,} left out): {cut.reason}"


def _title(name: str, note: str) -> Iterator[str]:
    yield ""
    title = f"── {name}{f', {note}' if note else ''} ──"
    yield _Styled(coloured(_one_line(title), BOLD))


def _parsed(document: str | None) -> Any:
    return None if document is None else json.loads(document)
