"""The one transaction that begins an invocation, before the tool runs."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import Connection

from tooltrail.artifacts import remove_spool_folder
from tooltrail.records import Digest, Family, Policy, StartUncertainError, ToolCall
from tooltrail.store import _writes as writes
from tooltrail.store._clock import new_id, now
from tooltrail.store._committing import commit
from tooltrail.store._prepared import Row
from tooltrail.store._writes import Chain, Event
from tooltrail.store.tables import PolicyRow

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


def plan_start(
    store: "Store",
    call: ToolCall,
    family: str | None,
    policy: Policy | None,
    at: datetime | None = None,
) -> Started:
    """Everything that the start of a call needs to be written; see `Session.start`.

    It begins now, unless it is said when it did.

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
    return Started(new_id(), at or now(), call, chosen, budgets)


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
        return write_started(connection, chain, started, arguments), chain

    uncertain = partial(_uncertain, started.id, folder)
    nothing = partial(remove_spool_folder, folder)
    return commit(store.writes, write, uncertain, nothing)


def _uncertain(name: UUID, folder: Path, reason: str) -> StartUncertainError:
    message = f"{reason}; whether the start of invocation {name} is recorded is not known"
    return StartUncertainError(message, invocation_id=name, folder=folder)


def write_started(
    connection: Connection, chain: Chain, started: Started, arguments: writes.Body
) -> int:
    """Write the invocation, its arguments, its policy and its ledger entry; return its key."""
    writes.put_once(connection, PolicyRow, policy_row(started))
    writes.put_bodies(connection, [arguments])
    row = started_row(chain, started, arguments.digest)
    writes.append_entry(connection, chain, start_event(started, row))
    # Last, since its answer is waited for.
    return writes.insert_invocation(connection, row)


def policy_row(started: Started) -> Row:
    """The budgets of an invocation, which many share."""
    policy = started.policy
    document = policy.to_json().decode()
    return {"digest": policy.digest, "document": document, "created_at": started.at}


def started_row(chain: Chain, started: Started, arguments_digest: Digest) -> Row:
    """An invocation as it is when it begins, at the next place of its session."""
    call = started.call
    return {
        "id": started.id,
        "session_key": chain.session_key,
        "seq": chain.take_seq(),
        "call_id": call.call_id,
        "tool_name": call.tool_name,
        "family": started.family.name,
        "policy_digest": started.policy.digest,
        "arguments_digest": arguments_digest,
        "arguments_preview": call.arguments_preview,
        "started_at": started.at,
        "state": "started",
    }


def start_event(started: Started, row: Row) -> Event:
    """What the ledger says of a start."""
    payload = {name: row[name] for name in _COMMITTED}
    return Event("invocation.started", started.id, started.at, payload)
