"""The tools that models were offered: all versions that a store has, and which one when."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

from tooltrail.records.digests import EMPTY
from tooltrail.store.engines.connection import Connection
from tooltrail.store.read.bodies import Body, load_bodies
from tooltrail.store.read.columns import Columns, Computed, damage_of
from tooltrail.store.read.rows import Row, Sql, fetch, fetch_value, where
from tooltrail.store.views import ToolView

OFFERING: Final = "tools"
"""The role of messages that say which tools are on offer."""

# The family of the latest call of a tool.
_FAMILY: Final = (
    "(SELECT i.family FROM invocations AS i WHERE i.tool_name = tools.name"
    " ORDER BY i.started_at DESC LIMIT 1)"
)
_OFFER: Final = "(SELECT {}(o.message_key) FROM tool_offers AS o WHERE o.tool = tools.digest)"
_BY_OFFER: Final = f"tools.created_at, {_OFFER.format('min')}"
_LATEST_LAST: Final = f"coalesce({_OFFER.format('max')}, 0)"

_TOOL: Final = Columns(
    "tools: digest name",
    Computed("tools.created_at", "offered_at", "time"),
    optional=(Computed(_FAMILY, "family", "text"),),
)

# The last join is an outer one, so that a lost version is damage, and not a tool less.
_OFFERED: Final = f"""
SELECT tool_offers.message_key, {_TOOL.sql} FROM tool_offers
JOIN messages ON messages.key = tool_offers.message_key
LEFT JOIN tools ON tools.digest = tool_offers.tool"""

# What a runtime says in that role is text, and offers nothing.
_LAST_OFFERING: Final = """
SELECT key FROM messages WHERE session_key = ? AND role = ?
AND (text = ? OR key IN (SELECT message_key FROM tool_offers)) ORDER BY seq DESC LIMIT 1"""


def list_tools(connection: Connection, name: str | None, *, latest: bool) -> list[ToolView]:
    """Every version of every tool, or of each tool the one that was offered last; by name."""
    only = [] if name is None else [Sql("tools.name = ?", (name,))]
    order = _LATEST_LAST if latest else _BY_OFFER
    behind = f" ORDER BY tools.name, {order}, tools.digest"
    query = Sql(f"SELECT {_TOOL.sql} FROM tools") + where(only) + behind
    rows = fetch(connection, query)
    if latest:
        rows = list({row[1]: row for row in rows}.values())
    return _views(connection, rows)


def offered_tools(connection: Connection, session_key: int) -> list[ToolView]:
    """What a session offered last, in its order."""
    query = Sql(_LAST_OFFERING, (session_key, OFFERING, connection.sha(EMPTY)))
    last = fetch_value(connection, query)
    offers = {} if last is None else offers_of(connection, Sql("messages.key = ?", (last,)))
    return [tool for found in offers.values() for tool in found]


def offers_of(connection: Connection, which: Sql) -> dict[int, list[ToolView]]:
    """What some messages offer, each in its order, by the key of the message."""
    order = " ORDER BY messages.seq, tool_offers.position"
    rows = fetch(connection, Sql(_OFFERED) + where([which]) + order)
    offers: dict[int, list[ToolView]] = defaultdict(list)
    for row, view in zip(rows, _views(connection, [row[1:] for row in rows]), strict=True):
        offers[row[0]].append(view)
    return offers


def _views(connection: Connection, rows: Sequence[Row]) -> list[ToolView]:
    read = [_TOOL.read(row) for row in rows]
    bodies = load_bodies(connection, (values["digest"] for values, _ in read))
    return [_view(values, problems, bodies[values["digest"]]) for values, problems in read]


def _view(values: dict[str, Any], problems: list[str], body: Body) -> ToolView:
    if body.damage is not None:
        problems.append(f"its definition cannot be read ({body.damage})")
    damage = damage_of("tools", values["digest"], problems)
    return ToolView(**values, definition_json=body.data, damage=damage, erasure=body.erasure)
