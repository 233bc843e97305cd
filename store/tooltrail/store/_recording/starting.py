"""The one transaction that begins an invocation, before the tool runs."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import Connection

from tooltrail.artifacts import remove_spool_folder
from tooltrail.journal.clock import new_id, now
from tooltrail.records import Digest, Family, Policy, StartUncertainError, ToolCall
from tooltrail.store._engines.prepared import Row
from tooltrail.store._recording import writes
from tooltrail.store._recording.committing import commit
from tooltrail.store._recording.writes import Chain, Event
from tooltrail.store.tables import CallOriginRow, PolicyRow

if TYPE_CHECKING:
    from tooltrail.store.store import Store

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

    @property
    def beginning(self) -> "Beginning":
        """What is written of it."""
        name, policy = self.family.name, self.policy
        return Beginning(self.id, self.at, self.call, name, policy.digest, policy.to_json())


@dataclass(frozen=True, slots=True)
class Beginning:
    """What is written of a start, by whichever program it was made.

    Attributes:
        id: of the invocation.
        at: when it began.
        call: what the model asked for.
        family: the name of it.
        policy_digest: of the budgets.
        policy_json: the budgets as they are stored.
    """

    id: UUID
    at: datetime
    call: ToolCall
    family: str
    policy_digest: Digest
    policy_json: bytes


def plan_start(
    store: "Store",
    call: ToolCall,
    family: str | None,
    policy: Policy | None,
    *,
    at: datetime | None = None,
    known_as: UUID | None = None,
) -> Started:
    """Everything that the start of a call needs to be written; see `Session.start`.

    It begins now, unless it is said when it did, and has an id of its own, unless it has one.

    Raises:
        NotFoundError: there is no such family.
        InvalidRecordError: the policy's numbers for a tool do not fit its family.
    """
    families = store.families
    budgets = store.policy if policy is None else policy.covering(families)
    if family is None:
        chosen = budgets.family_of(call.tool_name, families)
    else:
        chosen = families.named(family)
    return Started(known_as or new_id(), at or now(), call, chosen, budgets)


def commit_start(
    store: "Store", started: Started, chain_of: Callable[[Connection], Chain]
) -> tuple[int, Chain]:
    """Claim the spool and commit the start; the key of the invocation, and the chain it is in.

    Args:
        store: where to.
        started: what is known of it.
        chain_of: gives the chain of its session, locked, within the transaction.

    Raises:
        StartUncertainError: it may be committed. Unless the spool cannot be written, it says that
            the invocation is of this process, so that `repair` ends it later.
        SessionClosedError, UnavailableError: see `Session.start`; nothing is left in the spool.
    """
    folder = store.spool / str(started.id)
    arguments = writes.Body.of(started.call.arguments_bytes)
    # Before the row is there, so that a row that is not in this spool is of another one. Where
    # nothing can be written now, each capture tries again.
    with suppress(OSError):
        store.owner.claim(started.id)

    def write(connection: Connection) -> tuple[int, Chain]:
        chain = chain_of(connection)
        return write_started(connection, chain, started.beginning, arguments), chain

    uncertain = partial(_uncertain, started.id, folder)
    nothing = partial(remove_spool_folder, folder)
    return commit(store.writes, write, uncertain, nothing)


def _uncertain(name: UUID, folder: Path, reason: str) -> StartUncertainError:
    message = f"{reason}; whether the start of invocation {name} is recorded is not known"
    return StartUncertainError(message, invocation_id=name, folder=folder)


def write_started(
    connection: Connection, chain: Chain, beginning: Beginning, arguments: writes.Body
) -> int:
    """Write the invocation, its arguments, its policy and its ledger entry; return its key."""
    writes.put_once(connection, PolicyRow, policy_row(beginning))
    writes.put_bodies(connection, [arguments])
    row = started_row(chain, beginning, arguments.digest)
    writes.append_entry(connection, chain, start_event(beginning, row))
    # Last, since its answer is waited for.
    key = writes.insert_invocation(connection, row)
    if beginning.call.message_id is not None:
        rows = origin_rows(connection, [(key, beginning)])
        writes.insert_rows(connection, CallOriginRow, rows)
    return key


def origin_rows(connection: Connection, begun: Sequence[tuple[int, Beginning]]) -> list[Row]:
    """What says which messages asked for invocations; nothing is asked where none did.

    Of a message that the store does not have, as one that was dropped while it was away, the ledger
    alone knows.

    Args:
        connection: within the transaction.
        begun: the key of each invocation, and how it began.
    """
    ids = {one.call.message_id for _, one in begun if one.call.message_id is not None}
    if not ids:
        return []
    keys = writes.message_keys(connection, ids)
    return [
        {
            "invocation_key": key,
            "message_key": keys[one.call.message_id],
            "position": one.call.position,
        }
        for key, one in begun
        if one.call.message_id in keys
    ]


def policy_row(beginning: Beginning) -> Row:
    """The budgets of an invocation, which many share."""
    document = beginning.policy_json.decode()
    return {"digest": beginning.policy_digest, "document": document, "created_at": beginning.at}


def started_row(chain: Chain, beginning: Beginning, arguments_digest: Digest) -> Row:
    """An invocation as it is when it begins, at the next place of its session."""
    call = beginning.call
    return {
        "id": beginning.id,
        "session_key": chain.session_key,
        "seq": chain.take_seq(),
        "call_id": call.call_id,
        "tool_name": call.tool_name,
        "family": beginning.family,
        "policy_digest": beginning.policy_digest,
        "arguments_digest": arguments_digest,
        "arguments_preview": call.arguments_preview,
        "started_at": beginning.at,
        "state": "started",
    }


def start_event(beginning: Beginning, row: Row) -> Event:
    """What the ledger says of a start."""
    payload: Row = {name: row[name] for name in _COMMITTED}
    if beginning.call.message_id is not None:
        payload["message"] = str(beginning.call.message_id)
        payload["position"] = beginning.call.position
    return Event("invocation.started", beginning.id, beginning.at, payload)
