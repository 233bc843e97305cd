"""The tools that models were offered: all versions that a store has, and which one when."""

from collections import defaultdict
from dataclasses import replace
from typing import Any, cast
from uuid import UUID

from sqlalchemy import Connection, Select, Subquery, exists, func, select

from tooltrail.records import DamageError, DigestMismatchError, ToolDefinition, digest_of
from tooltrail.records.digests import EMPTY
from tooltrail.store._reading.queries import AnyRow
from tooltrail.store.tables import MessageRow, SessionRow, ToolOfferRow, ToolRow
from tooltrail.store.views import MessageView, ToolView

OFFERING = "tools"
"""The role of messages that say which tools are on offer."""

_COLUMNS = (ToolRow.digest, ToolRow.name, ToolRow.family, ToolRow.created_at, ToolRow.document)


def all_tools(
    connection: Connection, name: str | None = None, *, latest: bool = False
) -> list[ToolView]:
    """Every version of every tool, or of one: by name, those offered first in front.

    Args:
        connection: within a transaction.
        name: of the tool; all when None.
        latest: whether to give of each tool only the version that was offered last, by the order in
            which offers were recorded.

    Raises:
        DamageError: a definition is not what its digest names.
    """
    offers = _places(latest=latest)
    place = (func.coalesce(offers.c.message_key, 0), func.coalesce(offers.c.position, 0))
    query = select(*_COLUMNS).outerjoin(offers, offers.c.tool_digest == ToolRow.digest)
    order = place if latest else (ToolRow.created_at, *place)
    if name is not None:
        query = query.where(ToolRow.name == name)
    rows = connection.execute(query.order_by(ToolRow.name, *order, ToolRow.digest)).all()
    return [
        _tool_view(row) for row in ({row.name: row for row in rows}.values() if latest else rows)
    ]


def _places(*, latest: bool) -> Subquery:
    """The place of each version in the first offer that has it, or in the last one."""
    row, end = ToolOfferRow, func.max if latest else func.min
    # Aggregates need one pass; to sort all offers for a window takes several times as long.
    offer = (
        select(row.tool_digest, end(row.message_key).label("message_key"))
        .group_by(row.tool_digest)
        .subquery()
    )
    is_of_it = (row.tool_digest == offer.c.tool_digest) & (row.message_key == offer.c.message_key)
    return (
        select(row.tool_digest, row.message_key, end(row.position).label("position"))
        .join(offer, is_of_it)
        .group_by(row.tool_digest, row.message_key)
        .subquery()
    )


def offered_tools(connection: Connection, session_id: UUID) -> list[ToolView]:
    """What a session offered last, in its order.

    Raises:
        DamageError: a definition is not what its digest names.
    """
    has_tools = exists().where(ToolOfferRow.message_key == MessageRow.key)
    last = (
        select(MessageRow.key)
        .join(SessionRow, SessionRow.key == MessageRow.session_key)
        .where(
            SessionRow.id == session_id,
            MessageRow.role == OFFERING,
            # What a runtime says in that role is text, and offers nothing.
            has_tools | (MessageRow.body_digest == EMPTY),
        )
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
