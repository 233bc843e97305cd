"""How a session begins and ends, each on the caller's transaction."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import cast
from uuid import UUID

from sqlalchemy import Connection, select

from tooltrail.records import Digest, InvalidRecordError, canonical_json, digest_of
from tooltrail.store._engines.prepared import Row
from tooltrail.store._recording import writes
from tooltrail.store._recording.keys import Claim, Taken, claim, take
from tooltrail.store._recording.writes import Chain
from tooltrail.store.tables import LedgerEntryRow

_ONLY_CALL = "only_call"


@dataclass(frozen=True, slots=True)
class Opening:
    """What is known of a session at its beginning.

    Attributes:
        id: of the session.
        at: when it began.
        environment: canonical JSON of where it takes place.
        title: what people call it.
        agent: who holds it.
        parent: key and id of the session that started it.
        only_call: the invocation that it is opened for and ends with; None for others.
    """

    id: UUID
    at: datetime
    environment: str
    title: str | None = None
    agent: str | None = None
    parent: tuple[int, UUID] | None = None
    only_call: UUID | None = None


def write_opened(connection: Connection, opening: Opening) -> Chain:
    """Write a session with the first entry of its ledger, which says what it is opened for."""
    facts: Row = {"title": opening.title, "agent": opening.agent}
    parent_key, parent_id = opening.parent or (None, None)
    row = {
        **facts,
        "id": opening.id,
        "parent_key": parent_key,
        "environment": opening.environment,
        "opened_at": opening.at,
    }
    chain = writes.insert_session(connection, row)
    payload = {
        **facts,
        "parent": None if parent_id is None else str(parent_id),
        "environment": digest_of(opening.environment.encode()),
    }
    if opening.only_call is not None:
        payload[_ONLY_CALL] = str(opening.only_call)
    event = writes.Event("session.opened", opening.id, opening.at, payload)
    writes.append_entry(connection, chain, event)
    return chain


def open_once(connection: Connection, opening: Opening, claimed: Claim | None) -> Chain | Taken:
    """Write a session, or say what its key names already; then nothing is written."""
    if claimed is not None:
        met = take(connection, [claimed]).get(opening.id)
        if met is not None:
            return met
    return write_opened(connection, opening)


def claim_session(key: str, opening: Opening) -> Claim:
    """Ask for a key for a session; the same one has the same title, agent and parent.

    Raises:
        InvalidRecordError: the key is empty or too long.
    """
    _, parent = opening.parent or (None, None)
    content: Row = {
        "title": opening.title,
        "agent": opening.agent,
        "parent": None if parent is None else str(parent),
    }
    return claim(key, "session", opening.id, content, opening.at)


def write_closed(
    connection: Connection, chain: Chain, closed_at: datetime, reason: str | None = None
) -> None:
    """End a session that is open; the ledger has the reason when there is something to say."""
    chain.closed_at = closed_at
    payload: Row = {} if reason is None else {"reason": reason}
    event = writes.Event("session.closed", chain.session_id, closed_at, payload)
    writes.append_entry(connection, chain, event)


def write_message(
    connection: Connection,
    chain: Chain,
    *,
    message_id: UUID,
    created_at: datetime,
    role: str,
    body_digest: Digest,
) -> None:
    """Write a message whose body is there at the next place of a session, with its ledger entry."""
    row: Row = {"seq": chain.take_seq(), "role": role, "body_digest": body_digest}
    named = {"id": message_id, "session_key": chain.session_key, "created_at": created_at}
    writes.insert_message(connection, {**row, **named})
    writes.append_entry(connection, chain, writes.Event("message", message_id, created_at, row))


def only_call_of(connection: Connection, session_key: int) -> UUID | None:
    """The invocation that a session was opened for and ends with, as its ledger says."""
    row = LedgerEntryRow
    query = select(row.payload).where(row.session_key == session_key, row.n == 0)
    document = cast("object", connection.scalar(query))
    # What cannot be read is for `verify` to say, and keeps no record from being ended.
    with suppress(InvalidRecordError, ValueError):
        match canonical_json.decode(document if isinstance(document, str) else "null"):
            case {"only_call": str(name)}:
                return UUID(name)
            case _:
                pass
    return None
