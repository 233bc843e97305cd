"""The tools that models were offered: all versions that a store has, and which one when."""

from collections import defaultdict
from dataclasses import replace
from typing import Any, cast
from uuid import UUID

from sqlalchemy import Connection, Select, select

from tooltrail.records import DamageError, DigestMismatchError, ToolDefinition, digest_of
from tooltrail.store._reading.queries import AnyRow
from tooltrail.store.tables import MessageRow, SessionRow, ToolOfferRow, ToolRow
from tooltrail.store.views import MessageView, ToolView

OFFERING = "tools"
"""The role of messages that say which tools are on offer."""

_COLUMNS = (ToolRow.digest, ToolRow.name, ToolRow.family, ToolRow.created_at, ToolRow.document)


def all_tools(connection: Connection, name: str | None = None) -> list[ToolView]:
    """Every version of every tool, or of one: by name, those offered first in front.

    Raises:
        DamageError: a definition is not what its digest names.
    """
    query = select(*_COLUMNS).order_by(ToolRow.name, ToolRow.created_at, ToolRow.digest)
    if name is not None:
        query = query.where(ToolRow.name == name)
    return [_tool_view(row) for row in connection.execute(query)]


def offered_tools(connection: Connection, session_id: UUID) -> list[ToolView]:
    """What a session offered last, in its order.

    Raises:
        DamageError: a definition is not what its digest names.
    """
    last = (
        select(MessageRow.key)
        .join(SessionRow, SessionRow.key == MessageRow.session_key)
        .where(SessionRow.id == session_id, MessageRow.role == OFFERING)
        .order_by(MessageRow.seq.desc())
        .limit(1)
        .scalar_subquery()
    )
    query = (
        select(*_COLUMNS)
        .join(ToolOfferRow, ToolOfferRow.tool_digest == ToolRow.digest)
        .where(ToolOfferRow.message_key == last)
        .order_by(ToolOfferRow.position)
    )
    return [_tool_view(row) for row in connection.execute(query)]


def with_offers(
    connection: Connection, session_id: UUID, messages: list[MessageView]
) -> list[MessageView]:
    """The messages of a session, those that offer tools with these.

    Raises:
        DamageError: a definition is not what its digest names.
    """
    if all(message.role != OFFERING for message in messages):
        return messages
    query: Select[*tuple[Any, ...]] = (
        select(*_COLUMNS, MessageRow.seq)
        .join(ToolOfferRow, ToolOfferRow.tool_digest == ToolRow.digest)
        .join(MessageRow, MessageRow.key == ToolOfferRow.message_key)
        .join(SessionRow, SessionRow.key == MessageRow.session_key)
        .where(SessionRow.id == session_id)
        .order_by(MessageRow.seq, ToolOfferRow.position)
    )
    offers: defaultdict[int, list[ToolView]] = defaultdict(list)
    for row in connection.execute(query):
        offers[row.seq].append(_tool_view(row))
    return [
        replace(message, tools=tuple(offers[message.seq]))
        if message.seq in offers or (message.role == OFFERING and not message.text)
        else message
        for message in messages
    ]


def offers_of(connection: Connection, message_key: int) -> list[ToolView]:
    """What one message offers, in its order.

    Raises:
        DamageError: a definition is not what its digest names.
    """
    query = (
        select(*_COLUMNS)
        .join(ToolOfferRow, ToolOfferRow.tool_digest == ToolRow.digest)
        .where(ToolOfferRow.message_key == message_key)
        .order_by(ToolOfferRow.position)
    )
    return [_tool_view(row) for row in connection.execute(query)]


def _tool_view(row: AnyRow) -> ToolView:
    document = cast("object", row.document)
    if not isinstance(document, str):  # SQLite keeps a blob where text belongs
        raise DamageError(f"tool {row.digest} is damaged: it is not text", path=row.digest)
    if digest_of(document.encode()) != row.digest:
        raise DigestMismatchError(
            f"the definition of tool {row.name!r} is not what its digest {row.digest} names",
            path=row.digest,
        )
    definition = ToolDefinition.from_json(document)
    return ToolView(row.digest, row.name, row.family, row.created_at, definition)
