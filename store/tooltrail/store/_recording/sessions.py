"""How a session begins and ends, each on the caller's transaction."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Self, cast
from uuid import UUID

from sqlalchemy import Connection, select

from tooltrail.records import InvalidRecordError, ToolDefinition, canonical_json, digest_of
from tooltrail.store._engines.prepared import Row
from tooltrail.store._recording import writes
from tooltrail.store._recording.keys import Claim, Taken, claim, take
from tooltrail.store._recording.legs import LegRows
from tooltrail.store._recording.writes import Chain
from tooltrail.store.entries import MessageAdded
from tooltrail.store.tables import (
    AgentRow,
    Base,
    LedgerEntryRow,
    MessageDocumentRow,
    ToolOfferRow,
    ToolRow,
)

if TYPE_CHECKING:
    from tooltrail.store.store import Store

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


@dataclass(frozen=True, slots=True)
class MessageBodies:
    """What is kept of a message, hashed and compressed before its transaction.

    Attributes:
        text: what is said in it.
        document: the whole of it; None where the text is all.
        payload: what the provider sent, verbatim; None where it sent nothing.
        wire_format: that the provider sent it in.
        tools: rows of the tools that it offers, in their order; None of one that offers nothing.
        leg: the fact about a leg of an agent run that it tells; None of one that tells none.
    """

    text: writes.Body
    document: writes.Body | None = None
    payload: writes.Body | None = None
    wire_format: str | None = None
    tools: tuple[Row, ...] | None = None
    leg: LegRows | None = None

    @classmethod
    def of(cls, store: "Store", entry: MessageAdded) -> Self:
        """What is kept of a message that an entry tells of, hashed and compressed.

        Raises:
            InvalidRecordError: a tool of it is none.
            NotFoundError: the store's policy names a family for one that is not registered.
        """
        document, payload, tools = entry.document, entry.payload, entry.tools
        return cls(
            writes.Body.of(entry.text.encode("utf-8", "surrogatepass")),
            None if document is None else writes.Body.of(document.encode()),
            None if payload is None else writes.Body.of(payload),
            entry.wire_format,
            None if tools is None else tuple(_tool_row(store, tool, entry.at) for tool in tools),
            LegRows.of(entry),
        )

    def all(self) -> list[writes.Body]:
        """Those that there are."""
        return [one for one in (self.text, self.document, self.payload) if one is not None]

    def document_row(self) -> Row | None:
        """What the row beside that of the message holds; None where there is none."""
        if self.document is None:
            return None
        return {
            "wire_format": self.wire_format,
            "document_digest": self.document.digest,
            "payload_digest": None if self.payload is None else self.payload.digest,
        }

    def tool_digests(self) -> list[str] | None:
        """Those of the tools that are on offer; None where nothing is said of them."""
        return None if self.tools is None else [tool["digest"] for tool in self.tools]

    def besides(self, session_key: int) -> Mapping[type[Base], Sequence[Row]]:
        """The rows beside that of the message, without its key.

        Args:
            session_key: of the session that it is in.
        """
        document, digests = self.document_row(), self.tool_digests() or ()
        rows: dict[type[Base], Sequence[Row]] = {
            MessageDocumentRow: [] if document is None else [document],
            ToolOfferRow: [{"position": n, "tool_digest": one} for n, one in enumerate(digests)],
        }
        if self.leg is not None:
            rows[self.leg.table] = [{"session_key": session_key, **self.leg.row}]
        return rows


def _tool_row(store: "Store", document: str, offered_at: datetime) -> Row:
    tool = ToolDefinition.from_json(document)
    return {
        "digest": digest_of(document.encode()),
        "name": tool.name,
        "family": store.policy.family_of(tool.name, store.families).name,
        "document": document,
        "created_at": offered_at,
    }


def put_versions(connection: Connection, messages: Iterable[MessageBodies]) -> None:
    """Store the versions of tools and agents that messages name, in the order of their digests."""
    told = list(messages)
    tools = {tool["digest"]: tool for message in told for tool in message.tools or ()}
    legs = [message.leg for message in told if message.leg is not None]
    agents = {leg.agent["digest"]: leg.agent for leg in legs if leg.agent is not None}
    for table, rows in ((ToolRow, tools), (AgentRow, agents)):
        for _, row in sorted(rows.items()):
            writes.put_once(connection, table, row)


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
    bodies: MessageBodies,
) -> None:
    """Write a message at the next place of a session, with its ledger entry.

    Its bodies and tools are there. The entry commits to what is kept beside the text, if anything.
    """
    row: Row = {"seq": chain.take_seq(), "role": role, "body_digest": bodies.text.digest}
    named = {"id": message_id, "session_key": chain.session_key, "created_at": created_at}
    besides = bodies.besides(chain.session_key)
    writes.insert_message(connection, {**row, **named}, besides)
    committed = {**row, **(bodies.document_row() or {})}
    tools = bodies.tool_digests()
    if tools is not None:
        committed["tools"] = tools
    if bodies.leg is not None:
        committed["leg"] = bodies.leg.digest
    event = writes.Event("message", message_id, created_at, committed)
    writes.append_entry(connection, chain, event)


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
