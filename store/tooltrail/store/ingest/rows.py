"""Rows of the tables, made of facts. Pure: nothing is read or written here."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast
from uuid import UUID

from sqlalchemy import Table

from tooltrail.records.canonical_json import decode
from tooltrail.records.digests import EMPTY, Digest, parse_digest
from tooltrail.records.errors import InvalidRecordError
from tooltrail.records.facts import (
    AgentLeg,
    AgentOutcome,
    ArtifactFact,
    CallEnded,
    CallStarted,
    MessageAdded,
    OmissionFact,
    SessionClosed,
    SessionOpened,
    StreamFact,
    ToolsOffered,
)
from tooltrail.records.tool_calls import preview_arguments
from tooltrail.store import schema
from tooltrail.store._recording.bodies import encode_body
from tooltrail.store.ingest.interruption import ORDER_ROLE
from tooltrail.store.ingest.known import Entry, MessageFact
from tooltrail.store.ingest.native import Native, Row
from tooltrail.store.ingest.outcomes import Outcome, Verdict

Bodies = Mapping[Digest, bytes]

OPENING: Final = (
    "name",
    "parent_id",
    "title",
    "agent",
    "environment",
    "open_journal_key",
    "entry",
)
"""Columns of a session that its `session.opened` fills."""

CLOSING: Final = ("closed_at", "close_reason", "close_journal_key", "close_entry")
"""Columns of a session that its `session.closed` fills."""

ENDING: Final = (
    "state",
    "finished_at",
    "duration_ms",
    "error_kind",
    "exit_status",
    "signal",
    "timed_out",
    "output_size",
    "lost_size",
    "truncated",
    "end_journal_key",
    "end_entry",
)
"""Columns of an invocation that its end fills."""

NO_END: Final[Row] = {name: None for name in ENDING if name != "state"}
NO_SURFACES: Final[Row] = dict.fromkeys(
    ("output", "canonical", "receipt", "renderer", "renderer_version", "shown")
)


class MessageRows(NamedTuple):
    """A message, and the rows that say what it is besides.

    Attributes:
        columns: of the message.
        children: rows that refer to it, by table.
        tools: new rows of `tools`.
    """

    columns: Row
    children: Mapping[Table, list[Row]]
    tools: list[Row]


def body_row(native: Native, digest: Digest, data: bytes) -> Row:
    """A short byte string, compressed where that saves room."""
    encoding, packed = encode_body(data)
    return {"digest": native.sha(digest), "size": len(data), "encoding": encoding, "data": packed}


def opening_columns(native: Native, fact: SessionOpened, entry: Entry) -> Row:
    """What a session is, in the order of `OPENING`."""
    return {
        "name": native.text(fact.name),
        "parent_id": native.uuid(fact.parent),
        "title": native.text(fact.title),
        "agent": native.text(fact.agent),
        "environment": native.sha(fact.environment),
        "open_journal_key": entry.journal_key,
        "entry": entry.n,
    }


def closing_values(native: Native, fact: SessionClosed, entry: Entry) -> tuple[object, ...]:
    """How a session ended, in the order of `CLOSING`."""
    return (native.moment(fact.at), native.text(fact.reason), entry.journal_key, entry.n)


def start_row(native: Native, fact: CallStarted, entry: Entry, arguments: str) -> Row:
    """A call that starts, without the keys and the place in its session."""
    return {
        "id": native.uuid(fact.id),
        "state": "started",
        "tool_name": native.text(fact.tool_name),
        "family": native.text(fact.family),
        "call_id": native.text(fact.call_id),
        "message_id": native.uuid(fact.message),
        "position": fact.position,
        "policy": native.sha(fact.policy),
        "environment": native.sha(fact.environment),
        "arguments_preview": preview_arguments(fact.title or arguments),
        "started_at": native.moment(fact.at),
        "journal_key": entry.journal_key,
        "start_entry": entry.n,
        "owner": native.text(fact.owner),
    }


def end_columns(
    native: Native, fact: CallEnded, omissions: Sequence[OmissionFact], entry: Entry
) -> Row:
    """How a call ended, in the order of `ENDING`."""
    shown = [one for one in fact.streams if one.role != ORDER_ROLE]
    return {
        "state": fact.state,
        "finished_at": native.moment(fact.at),
        "duration_ms": fact.duration_ms,
        "error_kind": native.text(fact.error_kind),
        "exit_status": fact.exit_status,
        "signal": fact.signal,
        "timed_out": fact.timed_out,
        "output_size": sum(one.produced_size for one in shown),
        "lost_size": sum(one.produced_size - one.size for one in shown),
        "truncated": bool(omissions),
        "end_journal_key": entry.journal_key,
        "end_entry": entry.n,
    }


def surface_columns(native: Native, outcome: Outcome) -> Row:
    """The texts of a call that ended, in the order of `NO_SURFACES`."""
    return {
        "output": outcome.output,
        "canonical": outcome.canonical,
        "receipt": outcome.receipt,
        "renderer": native.text(outcome.renderer),
        "renderer_version": outcome.renderer_version,
        "shown": native.sha(outcome.shown),
    }


def outcome_rows(native: Native, key: int, outcome: Outcome) -> dict[Table, list[Row]]:
    """The rows that refer to a call that ended."""
    rows = {
        schema.streams: stream_rows(native, key, outcome.streams),
        schema.omissions: omission_rows(native, key, outcome.omissions),
        schema.invocation_artifacts: artifact_rows(native, key, outcome.artifacts),
    }
    if outcome.verdict is not None:
        rows[schema.structured_outputs] = [verdict_row(native, key, outcome.verdict)]
    return rows


def stream_rows(
    native: Native, key: int, streams: Iterable[tuple[StreamFact, int | None]]
) -> list[Row]:
    """The streams of a call, each with the place of its bytes in the receipt."""
    return [
        {
            "invocation_key": key,
            "n": n,
            "role": native.text(one.role),
            "digest": native.sha(one.digest),
            "size": one.size,
            "line_count": one.line_count,
            "produced_size": one.produced_size,
            "produced_line_count": one.produced_line_count,
            "loss_reason": native.text(one.loss_reason),
            "receipt_offset": offset,
        }
        for n, (one, offset) in enumerate(streams)
    ]


def omission_rows(native: Native, key: int, omissions: Iterable[OmissionFact]) -> list[Row]:
    """What the stages of a call left out."""
    return [
        {
            "invocation_key": key,
            "n": n,
            "stage": native.text(one.stage),
            "field": native.text(one.field),
            "unit": native.text(one.unit),
            "before_count": one.before,
            "after_count": one.after,
            "reason": native.text(one.reason),
        }
        for n, one in enumerate(omissions)
    ]


def artifact_rows(native: Native, key: int, artifacts: Iterable[ArtifactFact]) -> list[Row]:
    """The artifacts of the result of a call."""
    return [
        {
            "invocation_key": key,
            "n": n,
            "role": native.text(one.role),
            "digest": native.sha(one.digest),
        }
        for n, one in enumerate(artifacts)
    ]


def verdict_row(native: Native, key: int, verdict: Verdict) -> Row:
    """One attempt of an agent to submit its structured result."""
    return {
        "invocation_key": key,
        "schema": native.sha(verdict.schema),
        "attempt": verdict.attempt,
        "valid": verdict.valid,
        "document": native.text(verdict.document),
    }


def message_rows(native: Native, fact: MessageFact, bodies: Bodies) -> MessageRows:
    """A message of any kind.

    Raises:
        InvalidRecordError: a body that describes the message is missing or not a JSON object.
        LookupError, TypeError, ValueError: such a body lacks a member, or has a bad one.
    """
    match fact:
        case MessageAdded():
            columns = _message_columns(
                native,
                fact.role,
                text=fact.text,
                document=fact.document,
                payload=fact.payload,
                wire_format=fact.wire_format,
            )
            return MessageRows(columns, {}, [])
        case ToolsOffered():
            offers = [{"position": n, "tool": native.sha(one)} for n, one in enumerate(fact.tools)]
            # A definition that does not travel with the offer was offered before.
            tools = [_tool_row(native, one, fact, bodies) for one in fact.tools if one in bodies]
            columns = _message_columns(native, "tools")
            return MessageRows(columns, {schema.tool_offers: offers}, tools)
        case AgentLeg():
            columns = _message_columns(native, "agent_leg", document=fact.document)
            return MessageRows(columns, {schema.agent_legs: [_leg_row(native, fact, bodies)]}, [])
        case AgentOutcome():
            columns = _message_columns(native, "agent_outcome", document=fact.document)
            rows = [_outcome_row(native, fact, bodies)]
            return MessageRows(columns, {schema.agent_outcomes: rows}, [])


def _message_columns(
    native: Native,
    role: str,
    *,
    text: Digest = EMPTY,
    document: Digest | None = None,
    payload: Digest | None = None,
    wire_format: str | None = None,
) -> Row:
    return {
        "role": native.text(role),
        "text": native.sha(text),
        "document": native.sha(document),
        "payload": native.sha(payload),
        "wire_format": native.text(wire_format),
    }


def _tool_row(native: Native, digest: Digest, fact: ToolsOffered, bodies: Bodies) -> Row:
    return {
        "digest": native.sha(digest),
        "name": tool_name(native, digest, bodies),
        "created_at": native.moment(fact.at),
    }


def tool_name(native: Native, digest: Digest, bodies: Bodies) -> str | None:
    """The name in the definition of a tool."""
    return native.text(_text(_object(bodies, digest), "name"))


def _leg_row(native: Native, fact: AgentLeg, bodies: Bodies) -> Row:
    leg = _object(bodies, fact.document)
    named = None if leg.get("schema_digest") is None else _text(leg, "schema_digest")
    return {
        "run_id": native.uuid(UUID(_text(leg, "run_id"))),
        "position": _count(leg, "position"),
        "tier": native.text(_text(leg, "tier")),
        "model": native.text(_text(leg, "model")),
        "wire_format": native.text(_text(leg, "wire_format")),
        "agent_id": native.text(_text(leg, "agent_id")),
        "agent": native.sha(fact.agent),
        "agent_version": native.text(fact.agent_version),
        "schema": None if named is None else native.sha(parse_digest(named)),
        "started_at": native.moment(fact.at),
    }


def _outcome_row(native: Native, fact: AgentOutcome, bodies: Bodies) -> Row:
    ended = _object(bodies, fact.document)
    escalated_to = None if ended.get("escalated_to") is None else _text(ended, "escalated_to")
    return {
        "outcome": native.text(_text(ended, "outcome")),
        "escalated_to": native.text(escalated_to),
        "attempt_count": _count(ended, "attempt_count"),
        "duration_ms": _count(ended, "duration_ms"),
    }


def _object(bodies: Bodies, digest: Digest) -> dict[str, Any]:
    """The JSON object that a body holds."""
    if digest not in bodies:
        raise InvalidRecordError(f"body {digest} is missing")
    found = decode(bodies[digest])
    if not isinstance(found, dict):
        raise InvalidRecordError(f"body {digest} must be a JSON object")
    return cast("dict[str, Any]", found)


def _text(members: Mapping[str, Any], name: str) -> str:
    value = members[name]
    if not isinstance(value, str):
        raise InvalidRecordError(f"member {name} must be a text, not {type(value).__name__}")
    return value


def _count(members: Mapping[str, Any], name: str) -> int:
    value = members[name]
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidRecordError(f"member {name} must be an integer, not {type(value).__name__}")
    return value
