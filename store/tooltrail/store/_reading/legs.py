"""What is recorded of agent runs: facts about their legs, and the versions of agents."""

from collections.abc import Mapping
from dataclasses import replace
from typing import cast
from uuid import UUID

from sqlalchemy import Connection, select, union_all

from tooltrail.records import DamageError, LegFact, digest_of, read_leg_fact
from tooltrail.store.tables import AgentLegRow, AgentOutcomeRow, AgentRow, MessageRow, SessionRow
from tooltrail.store.views import MessageView

AGENT_RUN = "agent"
"""The role of messages that tell a fact about a leg of an agent run."""


def fact_of(document: object) -> LegFact:
    """The fact that a row holds.

    Raises:
        DamageError: it is none.
    """
    if not isinstance(document, str):  # SQLite keeps a blob where text belongs
        raise DamageError("a fact of an agent run is damaged: it is not text", path="agent_legs")
    try:
        return read_leg_fact(document)
    except ValueError as error:
        raise DamageError(
            f"a fact of an agent run is damaged: {error}", path="agent_legs"
        ) from error


def with_legs(
    connection: Connection, session_id: UUID, messages: list[MessageView]
) -> list[MessageView]:
    """The messages of a session, those that tell of its leg with what they tell.

    Raises:
        DamageError: a fact cannot be read.
    """
    if all(message.role != AGENT_RUN for message in messages):
        return messages
    parts = (
        select(MessageRow.seq, row.document)
        .join(row, row.message_key == MessageRow.key)
        .join(SessionRow, SessionRow.key == MessageRow.session_key)
        .where(SessionRow.id == session_id)
        for row in (AgentLegRow, AgentOutcomeRow)
    )
    facts = {seq: fact_of(document) for seq, document in connection.execute(union_all(*parts))}
    return [
        replace(message, leg=facts[message.seq]) if message.seq in facts else message
        for message in messages
    ]


def leg_row_of(connection: Connection, message_key: int) -> Mapping[str, object] | None:
    """The row of the fact that a message tells, by its columns; None where it tells none."""
    for row in (AgentLegRow, AgentOutcomeRow):
        query = select(*row.__table__.columns).where(row.message_key == message_key)
        found = connection.execute(query).mappings().one_or_none()
        if found is not None:
            return cast("Mapping[str, object]", found)
    return None


def agent_problem(connection: Connection, leg: Mapping[str, object] | None) -> str:
    """What is wrong with the version of the agent that a leg names; empty if nothing is."""
    if leg is None or "agent_digest" not in leg:
        return ""
    row = AgentRow
    query = select(row.agent_id, row.document).where(row.digest == leg["agent_digest"])
    found = connection.execute(query).one_or_none()
    if found is None:
        return "the version of its agent is missing"
    document = cast("object", found.document)
    is_same = isinstance(document, str) and digest_of(document.encode()) == leg["agent_digest"]
    return (
        ""
        if is_same and found.agent_id == leg["agent_id"]
        else "the version of its agent is altered"
    )
