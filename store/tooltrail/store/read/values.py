"""The values that a store has in some columns, and the nearest ones to a mistyped value."""

from collections.abc import Mapping
from typing import Final
from uuid import UUID

from tooltrail.records.ids import short_id
from tooltrail.store.engines.connection import Connection
from tooltrail.store.read.columns import Columns
from tooltrail.store.read.rows import Sql, fetch, fetch_value

SOURCES: Final = {
    "agents": ("agent", "sessions"),
    "error_kinds": ("error_kind", "invocations"),
    "families": ("family", "invocations"),
    "tools": ("tool_name", "invocations"),
}
"""Column and table of each kind of value. Each column has an index."""

_LIKE: Final = 0.8
"""Least likeness of a name to a mistyped one: one wrong digit in five."""

_MOST_CHARS: Final = 200
_MOST_VALUES: Final = 1000
_NEAREST: Final = 3
_NEWEST: Final = {"invocations": "started_at", "sessions": "opened_at"}
_RECENT: Final = {
    "invocations": Columns("invocations: id tool_name title"),
    "sessions": Columns("sessions: id name title"),
}


def has_value(connection: Connection, kind: str, value: str) -> bool:
    """Whether a row has this value."""
    column, table = SOURCES[kind]
    query = Sql(f"SELECT 1 FROM {table} WHERE {column} = ? LIMIT 1", (value,))
    return fetch_value(connection, query) is not None


def distinct_values(connection: Connection, kind: str) -> list[str]:
    """The different values in order. Each takes one search of the index, not a scan."""
    column, table = SOURCES[kind]
    after = f"SELECT min({column}) FROM {table} WHERE {column} >"
    query = (
        f"WITH RECURSIVE found(value) AS ({after}= '' UNION ALL"
        f" SELECT ({after} found.value) FROM found WHERE found.value IS NOT NULL)"
        " SELECT value FROM found WHERE value IS NOT NULL LIMIT ?"
    )
    found = fetch(connection, Sql(query, (_MOST_VALUES,)))
    return [value for (value,) in found if type(value) is str]


def recent_names(connection: Connection, table: str) -> list[tuple[UUID, str, str]]:
    """The newest rows: the id, the tool or the name, and the title. Damaged rows are left out."""
    columns = _RECENT[table]
    newest = f" FROM {table} ORDER BY {_NEWEST[table]} DESC, key DESC LIMIT ?"
    rows = fetch(connection, Sql(f"SELECT {columns.sql}{newest}", (_MOST_VALUES,)))
    read = [columns.read(row) for row in rows]
    return [
        (one["id"], one.get("tool_name") or one.get("name") or "", one["title"] or "")
        for one, problems in read
        if not problems
    ]


def near_values(connection: Connection, kind: str, value: str) -> str:
    """The end of a message about a value that no row has: the nearest values, if there are any."""
    return nearest(value, {one: one for one in distinct_values(connection, kind)})


def near_names(connection: Connection, table: str, name: str) -> str:
    """The end of a message about an unknown name: near names and ids, of the newest rows alone."""
    digits = name.replace("-", "")
    if not digits:
        return ""
    known: dict[str, str] = {}
    for id_, label, _ in recent_names(connection, table):
        short = short_id(id_)
        # The beginning of the end that lists show is no name, and a likely mistake.
        for part in (short[: len(digits)], id_.hex[: len(digits)], id_.hex[-len(digits) :]):
            known[part] = short
        if table == "sessions":
            known[label] = label
    return nearest(digits, known, least=_LIKE) or nearest(name, known, least=_LIKE)


def nearest(value: str, known: Mapping[str, str], *, least: float = 0) -> str:
    """The nearest of known values, ignoring case, as the end of a message. Each has a spelling."""
    from difflib import get_close_matches  # noqa: PLC0415  only for mistyped values

    folded = {one.casefold(): text for one, text in known.items() if text and text.isprintable()}
    found = get_close_matches(value[:_MOST_CHARS].casefold(), folded, n=_NEAREST, cutoff=least)
    return f"; nearest: {', '.join(f'`{folded[one]}`' for one in found)}" if found else ""
