"""The tools that models were offered: all versions that a store has, and which one when."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

from pydantic import ValidationError
from sqlalchemy import ColumnElement, Connection, func, or_, select

from tooltrail.records import DamageError, ToolDefinition
from tooltrail.records.digests import EMPTY
from tooltrail.store.read.bodies import Body, load_bodies
from tooltrail.store.read.rows import AnyRow, AnySelect, Columns, damage_of, fetch
from tooltrail.store.schema import invocations, messages, tool_offers, tools
from tooltrail.store.views import ToolView

OFFERING: Final = "tools"
"""The role of messages that say which tools are on offer."""

_FAMILY = (
    select(invocations.c.family)
    .where(invocations.c.tool_name == tools.c.name)
    .order_by(invocations.c.started_at.desc())
    .limit(1)
    .correlate(tools)
    .scalar_subquery()
)
"""The family of the latest call of a tool."""

_TOOL: Final = Columns(
    tools.c.digest, tools.c.name, tools.c.created_at, optional=(_FAMILY.label("family"),)
)


def select_tools(name: str | None) -> AnySelect:
    """Every version of every tool, or of one: by name, those that were offered first in front."""
    first = _offer_of(func.min(tool_offers.c.message_key))
    query = select(*_TOOL.selected)
    if name is not None:
        query = query.where(tools.c.name == name)
    return query.order_by(tools.c.name, tools.c.created_at, first, tools.c.digest)


def select_latest_tools(name: str | None) -> AnySelect:
    """As `select_tools`; of each tool the version that was offered last comes last."""
    last = _offer_of(func.max(tool_offers.c.message_key))
    query = select(*_TOOL.selected)
    if name is not None:
        query = query.where(tools.c.name == name)
    return query.order_by(tools.c.name, func.coalesce(last, 0), tools.c.digest)


def select_offers(which: ColumnElement[bool]) -> AnySelect:
    """The tools that some messages offer: the key of the message, and the tool."""
    return (
        select(tool_offers.c.message_key, tool_offers.c.tool, *_TOOL.selected)
        .select_from(tool_offers)
        .join(messages, messages.c.key == tool_offers.c.message_key)
        # Outer, so that a lost version is damage, and not a tool less.
        .outerjoin(tools, tools.c.digest == tool_offers.c.tool)
        .where(which)
        .order_by(messages.c.seq, tool_offers.c.position)
    )


def select_last_offering(session_key: int) -> AnySelect:
    """The key of the last message of a session that says which tools are on offer."""
    offering = select(tool_offers.c.message_key)
    return (
        select(messages.c.key)
        .where(
            messages.c.session_key == session_key,
            messages.c.role == OFFERING,
            # What a runtime says in that role is text, and offers nothing.
            or_(messages.c.text == EMPTY, messages.c.key.in_(offering)),
        )
        .order_by(messages.c.seq.desc())
        .limit(1)
    )


def list_tools(connection: Connection, name: str | None, *, latest: bool) -> list[ToolView]:
    """Every version of every tool, or of each tool the one that was offered last."""
    rows = fetch(connection, select_latest_tools(name) if latest else select_tools(name))
    if latest:
        rows = list({row[1]: row for row in rows}.values())
    return _views(connection, rows)


def offered_tools(connection: Connection, session_key: int) -> list[ToolView]:
    """What a session offered last, in its order."""
    last = fetch(connection, select_last_offering(session_key))
    if not last:
        return []
    offers = offers_of(connection, messages.c.key == last[0][0])
    return [tool for found in offers.values() for tool in found]


def offers_of(connection: Connection, which: ColumnElement[bool]) -> dict[int, list[ToolView]]:
    """What some messages offer, each in its order, by the key of the message."""
    rows = fetch(connection, select_offers(which))
    offers: dict[int, list[ToolView]] = defaultdict(list)
    for row, view in zip(rows, _views(connection, [row[2:] for row in rows]), strict=True):
        offers[row[0]].append(view)
    return offers


def _offer_of(key: ColumnElement[int]) -> ColumnElement[int]:
    offers = select(key).where(tool_offers.c.tool == tools.c.digest)
    return offers.correlate(tools).scalar_subquery()


def _views(connection: Connection, rows: Sequence[AnyRow]) -> list[ToolView]:
    read = [(_TOOL.read(row, problems), problems) for row in rows for problems in [list[str]()]]
    bodies = load_bodies(connection, (values[0] for values, _ in read))
    return [_view(values, problems, bodies[values[0]]) for values, problems in read]


def _view(values: list[Any], problems: list[str], body: Body) -> ToolView:
    digest, name, offered_at, family = values
    definition = ToolDefinition(name=str(name))
    try:
        definition = ToolDefinition.from_json(body.read())
    except DamageError as error:
        problems.append(f"its definition cannot be read ({error})")
    except (ValidationError, ValueError) as error:
        problems.append(f"its definition is none ({error})")
    damage = damage_of(tools.name, digest, problems)
    return ToolView(digest, name, family, offered_at, definition, damage)
