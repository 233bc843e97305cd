"""Turns facts into rows of the tables. Pure functions: nothing is read or written."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar, cast
from uuid import UUID

from tooltrail.journal.invocation import SEEN
from tooltrail.records.argument_previews import preview_arguments
from tooltrail.records.canonical_json import decode
from tooltrail.records.command_documents import stream_members
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
from tooltrail.records.streams import ORDER_ROLE
from tooltrail.records.tool_calls import name_with_server
from tooltrail.store.bodies import encode_body
from tooltrail.store.column_groups import CLOSING, ENDING, OUTCOME
from tooltrail.store.engines.connection import Connection, Row
from tooltrail.store.ingest.known import Entry, MessageFact
from tooltrail.store.ingest.outcomes import Outcome

T = TypeVar("T")

Bodies = Mapping[Digest, bytes]

_ROLES: Final = {
    "tool.offered": "tools",
    "agent.leg": "agent_leg",
    "agent.outcome": "agent_outcome",
}
"""The roles of messages of the other kinds."""

_LEG_TEXTS: Final = ("tier", "model", "wire_format", "agent_id")

NO_END: Final[Row] = {name: None for name in ENDING if name != "state"}
NO_OUTCOME: Final[Row] = dict.fromkeys((*OUTCOME, "receipt_journal_key", "receipt_entry"))


class MessageRows(NamedTuple):
    """The rows of a message.

    Attributes:
        columns: columns of the row in `messages`.
        children: rows that refer to it, by table.
    """

    columns: Row
    children: Mapping[str, list[Row]]
    tools: list[Row]


def body_row(connection: Connection, digest: Digest, data: bytes) -> Row:
    """The row of a body, compressed if that saves space."""
    encoding, packed = encode_body(data)
    return {
        "digest": connection.sha(digest),
        "size": len(data),
        "encoding": encoding,
        "data": packed,
    }


def opening_columns(connection: Connection, fact: SessionOpened, entry: Entry) -> Row:
    """The columns `OPENING` of a session, in that order."""
    return {
        "name": connection.text(fact.name),
        "parent_id": connection.uuid(fact.parent),
        "title": connection.text(fact.title),
        "agent": connection.text(fact.agent),
        "environment": connection.sha(fact.environment),
        "open_journal_key": entry.journal_key,
        "entry": entry.n,
    }


def closing_columns(connection: Connection, fact: SessionClosed, entry: Entry) -> Row:
    """The columns `CLOSING` of a session, in that order."""
    values = (connection.moment(fact.at), connection.text(fact.reason), *entry)
    return dict(zip(CLOSING, values, strict=True))


def start_row(connection: Connection, fact: CallStarted, entry: Entry) -> Row:
    """The row of a call that starts, without its keys and its position in the session."""
    return {
        "id": connection.uuid(fact.id),
        "state": "started",
        "tool_name": connection.text(fact.tool_name),
        "family": connection.text(fact.family),
        "call_id": connection.text(fact.call_id),
        "message_id": connection.uuid(fact.message),
        "position": fact.position,
        "policy": connection.sha(fact.policy),
        "environment": connection.sha(fact.environment),
        "title": preview_arguments(fact.title) if fact.title else None,
        "started_at": connection.moment(fact.at),
        "journal_key": entry.journal_key,
        "start_entry": entry.n,
        "owner": connection.text(fact.owner),
    }


def end_columns(
    connection: Connection, fact: CallEnded, omissions: Sequence[OmissionFact], entry: Entry
) -> Row:
    """The columns `ENDING` of a call, in that order."""
    shown = [one for one in fact.streams if one.role != ORDER_ROLE]
    return {
        "state": fact.state,
        "finished_at": connection.moment(fact.at),
        "duration_ms": fact.duration_ms,
        "error_kind": connection.text(fact.error_kind),
        "exit_status": fact.exit_status,
        "signal": fact.signal,
        "timed_out": fact.timed_out,
        "output_size": None if fact.output == EMPTY else sum(one.produced_size for one in shown),
        "lost_size": sum(one.produced_size - one.size for one in shown),
        "truncated": bool(omissions),
        "end_journal_key": entry.journal_key,
        "end_entry": entry.n,
    }


def surface_columns(connection: Connection, outcome: Outcome, output_size: int | None) -> Row:
    """The columns `OUTCOME` of a call that ended, in that order."""
    shown, renderer, receipt = outcome.shown, outcome.renderer, outcome.receipt
    return {
        "output": outcome.output,
        "canonical": outcome.canonical,
        "receipt": receipt,
        "renderer": connection.text(renderer),
        "renderer_version": None if renderer is None else shown.renderer_version,
        "shown": connection.sha(outcome.made),
        "cut_size": cut_size(output_size, shown.omissions, renderer, receipt),
    }


def cut_size(
    output_size: int | None,
    omissions: Iterable[OmissionFact],
    renderer: str | None,
    receipt: str | None,
) -> int | None:
    """How many bytes of the output are not in the receipt; None if nothing is known to be cut.

    These are the bytes that all stages left out. Nobody counted them for a receipt that another
    program made: there it is by how much the output is longer than the receipt.
    """
    if renderer is None:
        return None
    if renderer == SEEN:
        return max((output_size or 0) - len((receipt or "").encode()), 0) or None
    return sum(one.before - one.after for one in omissions if one.unit == "bytes") or None


def outcome_rows(connection: Connection, key: int, outcome: Outcome) -> dict[str, list[Row]]:
    """The rows that refer to a call that ended, by table."""
    return {
        "streams": stream_rows(connection, key, outcome.streams),
        "omissions": omission_rows(connection, key, outcome.shown.omissions),
        "invocation_artifacts": artifact_rows(connection, key, outcome.shown.artifacts),
    }


def stream_rows(
    connection: Connection, key: int, streams: Iterable[tuple[StreamFact, int | None]]
) -> list[Row]:
    """The rows of the streams of a call, from each stream and its offset in the receipt."""
    rows = [
        {
            **stream_members(one),
            "role": connection.text(one.role),
            "digest": connection.sha(one.digest),
            "loss_reason": connection.text(one.loss_reason),
            "receipt_offset": offset,
        }
        for one, offset in streams
    ]
    return _numbered(key, rows)


def omission_rows(connection: Connection, key: int, omissions: Iterable[OmissionFact]) -> list[Row]:
    """The rows of the omissions of a call."""
    texts = ("stage", "field", "unit", "reason")
    rows = [
        {name: connection.text(getattr(one, name)) for name in texts}
        | {"before_count": one.before, "after_count": one.after}
        for one in omissions
    ]
    return _numbered(key, rows)


def artifact_rows(connection: Connection, key: int, artifacts: Iterable[ArtifactFact]) -> list[Row]:
    """The rows of the artifacts of the result of a call."""
    members = ((connection.text(one.role), connection.sha(one.digest)) for one in artifacts)
    return _numbered(key, [{"role": role, "digest": digest} for role, digest in members])


def _numbered(key: int, rows: Iterable[Row]) -> list[Row]:
    """Add to rows the key of their call and a number."""
    return [{"invocation_key": key, "n": n, **row} for n, row in enumerate(rows)]


def message_rows(connection: Connection, fact: MessageFact, bodies: Bodies) -> MessageRows:
    """The rows of a message of any kind.

    Raises:
        InvalidRecordError: a body that describes the message is missing or not a JSON object.
        LookupError, TypeError, ValueError: such a body lacks a member, or has an invalid one.
    """
    columns = message_columns(connection, fact)
    children: dict[str, list[Row]] = {}
    tools: list[Row] = []
    match fact:
        case MessageAdded():
            pass
        case ToolsOffered():
            children["tool_offers"] = [
                {"position": n, "tool": connection.sha(one)} for n, one in enumerate(fact.tools)
            ]
            tools = [
                {
                    "digest": connection.sha(one),
                    "name": tool_name(connection, one, bodies),
                    "created_at": connection.moment(fact.at),
                }
                for one in fact.tools
                if one in bodies  # others were offered before
            ]
        case AgentLeg():
            children["agent_legs"] = [_leg_row(connection, fact, bodies)]
        case AgentOutcome():
            children["agent_outcomes"] = [_outcome_row(connection, fact, bodies)]
    return MessageRows(columns, children, tools)


def message_columns(connection: Connection, fact: MessageFact) -> Row:
    """The columns of the row of a message that follow from its fact alone."""
    columns: Row = {
        "role": connection.text(_ROLES.get(fact.kind)),
        "text": connection.sha(EMPTY),
        "document": None if isinstance(fact, ToolsOffered) else connection.sha(fact.document),
        "payload": None,
        "wire_format": None,
    }
    if isinstance(fact, MessageAdded):
        columns |= {
            "role": connection.text(fact.role),
            "text": connection.sha(fact.text),
            "payload": connection.sha(fact.payload),
            "wire_format": connection.text(fact.wire_format),
        }
    return columns


def tool_name(connection: Connection, digest: Digest, bodies: Bodies) -> str | None:
    """The name in the definition of a tool, including its server."""
    definition = _object(bodies, digest)
    server = _member(definition, "namespace", str) if definition.get("namespace") else None
    return connection.text(name_with_server(server, _member(definition, "name", str)))


def _leg_row(connection: Connection, fact: AgentLeg, bodies: Bodies) -> Row:
    leg = _object(bodies, fact.document)
    named = None if leg.get("schema_digest") is None else _member(leg, "schema_digest", str)
    return {
        "run_id": connection.uuid(UUID(_member(leg, "run_id", str))),
        "position": _member(leg, "position", int),
        **{name: connection.text(_member(leg, name, str)) for name in _LEG_TEXTS},
        "agent": connection.sha(fact.agent),
        "agent_version": connection.text(fact.agent_version),
        "schema": None if named is None else connection.sha(parse_digest(named)),
        "started_at": connection.moment(fact.at),
    }


def _outcome_row(connection: Connection, fact: AgentOutcome, bodies: Bodies) -> Row:
    ended = _object(bodies, fact.document)
    is_last = ended.get("escalated_to") is None
    escalated_to = None if is_last else _member(ended, "escalated_to", str)
    return {
        "outcome": connection.text(_member(ended, "outcome", str)),
        "escalated_to": connection.text(escalated_to),
        "attempt_count": _member(ended, "attempt_count", int),
        "duration_ms": _member(ended, "duration_ms", int),
    }


def _object(bodies: Bodies, digest: Digest) -> dict[str, Any]:
    """The JSON object in a body."""
    if digest not in bodies:
        raise InvalidRecordError(f"body {digest} is missing")
    found = decode(bodies[digest])
    if not isinstance(found, dict):
        raise InvalidRecordError(f"body {digest} must be a JSON object")
    return cast("dict[str, Any]", found)


def _member(members: Mapping[str, Any], name: str, kind: type[T]) -> T:
    value = members[name]
    if type(value) is not kind:
        wanted = "a text" if kind is str else "an integer"
        raise InvalidRecordError(f"member {name} must be {wanted}, not {type(value).__name__}")
    return value
