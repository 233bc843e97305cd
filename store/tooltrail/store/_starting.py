"""The one transaction that begins an invocation, before the tool runs."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection

from tooltrail.records import Family, Policy, ToolCall
from tooltrail.store import _writes as writes
from tooltrail.store._writes import Chain, Row
from tooltrail.store.tables import PolicyRow

_COMMITTED = ("seq", "call_id", "tool_name", "family", "policy_digest", "arguments_digest")
"""Columns that the ledger entry of the start commits to."""


@dataclass(frozen=True, slots=True)
class Started:
    """What is known of an invocation at its start."""

    id: UUID
    at: datetime
    call: ToolCall
    family: Family
    policy: Policy


def write_started(
    connection: Connection, chain: Chain, started: Started, arguments: writes.Body
) -> int:
    """Write the invocation, its arguments, its policy and its ledger entry; return its key."""
    call, policy = started.call, started.policy
    document = policy.to_json().decode()
    writes.put_once(
        connection,
        PolicyRow,
        {"digest": policy.digest, "document": document, "created_at": started.at},
    )
    row: Row = {
        "id": started.id,
        "session_key": chain.session_key,
        "seq": chain.take_seq(),
        "call_id": call.call_id,
        "tool_name": call.tool_name,
        "family": started.family.name,
        "policy_digest": policy.digest,
        "arguments_digest": writes.put_bodies(connection, [arguments])[0],
        "arguments_preview": call.arguments_preview,
        "started_at": started.at,
        "state": "started",
    }
    key = writes.insert_invocation(connection, row)
    payload = {name: row[name] for name in _COMMITTED}
    event = writes.Event("invocation.started", started.id, started.at, payload)
    writes.append_entry(connection, chain, event)
    return key
