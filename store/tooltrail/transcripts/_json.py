"""Prints a transcript as JSON or JSON lines, and the payloads that providers sent."""

import base64
import json
from collections.abc import Iterator
from typing import Any

from tooltrail.store.read.environments import members_of as environment_members
from tooltrail.store.views import InvocationDetail, MessageView
from tooltrail.transcripts._pairs import Pairs
from tooltrail.transcripts._parts import members_of
from tooltrail.transcripts._wording import arguments
from tooltrail.transcripts.transcript import Entry, Transcript

SCHEMA_VERSION = 1


def write_json(transcript: Transcript) -> Iterator[str]:
    """`{"schema_version", "session", "entries": [{"type": "message" | "tool_call", …}]}`.

    A message that is more than text has `blocks`, its content in order. A block of a call that was
    run, or of a result that repeats the receipt, has only `invocation_seq`, the `seq` of the entry
    of the tool call. A compacted tool call has the receipt of the compacted result as `compacted`
    instead of `receipt`. Its `receipt_digest` is still the digest of the stored receipt.
    """
    pairs = Pairs(transcript)
    yield f'{{"schema_version":{SCHEMA_VERSION},"session":{_dump(_head(transcript))},"entries":['
    for number, entry in enumerate(transcript.entries):
        yield ",\n" if number else "\n"
        yield _dump(_entry(transcript, entry, pairs))
    yield "\n]}\n"


def write_jsonl(transcript: Transcript) -> Iterator[str]:
    """The session as `{"type": "session", "schema_version", …}`, then the entries of the document.

    Each object is one line, so that a long session can be read while it is printed.
    """
    pairs = Pairs(transcript)
    head = {"type": "session", "schema_version": SCHEMA_VERSION, **_head(transcript)}
    yield _dump(head) + "\n"
    for entry in transcript.entries:
        yield _dump(_entry(transcript, entry, pairs)) + "\n"


def write_payloads(transcript: Transcript) -> Iterator[str]:
    """`{"seq", "id", "role", "wire_format", "payload" | "payload_base64"}` for each payload.

    A payload in UTF-8 is printed as text, any other payload in base64. Both represent the recorded
    bytes exactly.
    """
    for entry in transcript.entries:
        if isinstance(entry, MessageView) and entry.payload is not None:
            line = {
                "seq": entry.seq,
                "id": str(entry.id),
                "role": entry.role,
                "wire_format": entry.wire_format,
                **_spelled_payload(entry.payload),
            }
            yield _dump(line) + "\n"


def _spelled_payload(payload: bytes) -> dict[str, str]:
    try:
        return {"payload": payload.decode()}
    except UnicodeDecodeError:
        return {"payload_base64": base64.b64encode(payload).decode()}


def _head(transcript: Transcript) -> dict[str, Any]:
    session = transcript.session
    return {
        "id": str(session.id),
        "parent_id": None if session.parent_id is None else str(session.parent_id),
        "name": session.name,
        "title": session.title,
        "agent": session.agent,
        "opened_at": session.opened_at.isoformat(),
        "closed_at": None if session.closed_at is None else session.closed_at.isoformat(),
        "environment": dict(environment_members(session.environment)),
    }


def _entry(transcript: Transcript, entry: Entry, pairs: Pairs) -> dict[str, Any]:
    if isinstance(entry, MessageView):
        return _message(entry, pairs)
    return _call(entry, transcript.compacted.get(entry.summary.id))


def _message(message: MessageView, pairs: Pairs) -> dict[str, Any]:
    offered = [{"name": tool.name, "digest": tool.digest} for tool in message.tools or ()]
    return {
        "type": "message",
        "seq": message.seq,
        "id": str(message.id),
        "role": message.role,
        "text": message.text,
        "created_at": message.created_at.isoformat(),
        **members_of(message, pairs),
        **({} if message.tools is None else {"tools": offered}),
        **({} if message.leg is None else {"leg": message.leg.model_dump()}),
    }


def _call(detail: InvocationDetail, compacted: str | None) -> dict[str, Any]:
    summary, receipt = detail.summary, detail.receipt
    return {
        "type": "tool_call",
        "seq": summary.seq,
        "id": str(summary.id),
        "call_id": summary.call_id,
        "tool_name": summary.tool_name,
        "arguments_raw": arguments(detail),
        "state": summary.state,
        "outcome": summary.outcome,
        "started_at": summary.started_at.isoformat(),
        "finished_at": None if summary.finished_at is None else summary.finished_at.isoformat(),
        "receipt": receipt.text if receipt is not None and compacted is None else None,
        "receipt_digest": None if receipt is None else receipt.digest,
        "compacted": compacted,
        **({"redacted": [one.as_dict() for one in detail.redacted]} if detail.redacted else {}),
    }


def _dump(value: dict[str, Any]) -> str:
    # Escaped to ASCII, so that a lone surrogate in a message is still valid JSON.
    return json.dumps(value, separators=(",", ":"))
