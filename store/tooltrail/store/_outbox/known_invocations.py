"""What the store knows of an invocation, for whoever is about to end it."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import Connection, select, text

from tooltrail.records import Digest, InvocationState
from tooltrail.store.tables import InvocationRow, SessionRow

if TYPE_CHECKING:
    from tooltrail.store.store import Store


@dataclass(frozen=True, slots=True)
class KnownInvocation:
    """As much of an invocation's row as its end needs."""

    key: int
    id: UUID
    session_key: int
    session_id: UUID
    state: InvocationState
    tool_name: str
    family: str
    policy_digest: Digest
    started_at: datetime


def find_known_invocation(connection: Connection, invocation_id: UUID) -> KnownInvocation | None:
    """The row of an invocation, None when this store has none."""
    return find_known_invocations(connection, [invocation_id]).get(invocation_id)


def find_known_invocations(
    connection: Connection, ids: Collection[UUID]
) -> dict[UUID, KnownInvocation]:
    """The rows of those invocations that this store has."""
    row = InvocationRow
    query = (
        select(
            row.key,
            row.id,
            row.session_key,
            SessionRow.id.label("session_id"),
            row.state,
            row.tool_name,
            row.family,
            row.policy_digest,
            row.started_at,
        )
        .join(SessionRow, SessionRow.key == row.session_key)
        .where(row.id.in_(ids))
    )
    names = KnownInvocation.__slots__
    return {
        found.id: KnownInvocation(**{name: getattr(found, name) for name in names})
        for found in connection.execute(query)
    }


def find_known_invocation_for_sure(store: "Store", invocation_id: UUID) -> KnownInvocation | None:
    """The same, when whoever is committing has come to an end.

    A server may commit what a client asked for that was killed a moment later.
    """
    with store.database.write() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("LOCK TABLE invocations IN SHARE MODE"))
        return find_known_invocation(connection, invocation_id)
