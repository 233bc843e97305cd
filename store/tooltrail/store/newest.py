"""Lists the invocations of an SQLite store by the standard library alone.

To import the database toolkit and the tables takes several times as long as to list the newest
invocations of a store of any size. So the list that is asked for most, of all invocations, has a
short way, which gives exactly what `Reader.invocations` gives, or None where anything is unusual.
"""

from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

from tooltrail.store._engines.plain_sqlite import plain_connection, plain_file_of, plain_info
from tooltrail.store._engines.sqlite import sqlite3
from tooltrail.store.spools import SPOOL_FOLDER
from tooltrail.store.views import InvocationView, Page

_COLUMNS = """
SELECT i.key, i.id, s.id, i.seq, i.call_id, i.tool_name, i.family, i.state, i.arguments_preview,
    i.started_at, i.finished_at, i.duration_ms, i.error_kind, i.exit_status, i.signal, i.timed_out,
    i.output_size, i.truncated,
    CASE WHEN i.truncated = 1 THEN (
        SELECT coalesce(sum(o.produced_size - o.size), 0) FROM output_streams o
        WHERE o.invocation_key = i.key AND o.role <> 'order'
    ) ELSE i.output_size * 0 END
FROM invocations i CROSS JOIN sessions s ON s.key = i.session_key
"""
_NEWEST = f"{_COLUMNS} WHERE i.key > 0 AND i.key < ? ORDER BY i.key DESC LIMIT ?"
_OLDEST = f"{_COLUMNS} WHERE i.key > ? ORDER BY i.key LIMIT ?"
_COUNT = "SELECT count(*) FROM invocations"

_BEYOND_ALL = 2**63 - 1
_MAX_CURSOR_DIGITS = 18


class Newest(NamedTuple):
    """A page of all invocations of a store.

    Attributes:
        page: as `Reader.invocations` gives it.
        total: how many invocations there are, where the page does not show the last of them.
        spool: where the store's captured output waits, unless another folder is named.
    """

    page: Page[InvocationView]
    total: int
    spool: Path


def look_up_newest(
    database: str, *, limit: int, cursor: str | None = None, oldest_first: bool = False
) -> Newest | None:
    """A page of all invocations of a store of this program's revision.

    Args:
        database: as for `open_store`.
        limit: at most so many, 1 or more.
        cursor: of the page before.
        oldest_first: in the order in which they began.

    Returns:
        None when the store is no such file, is not there, cannot be read now, or holds anything
        that the recorder does not write; and for a cursor that no page gave.
    """
    file = plain_file_of(database)
    if file is None or limit < 1 or not _is_cursor(cursor):
        return None
    after = int(cursor) if cursor is not None else 0 if oldest_first else _BEYOND_ALL
    try:
        with plain_connection(file) as connection:
            connection.execute("BEGIN")
            if plain_info(connection) is None:
                return None
            sql = _OLDEST if oldest_first else _NEWEST
            rows = connection.execute(sql, (after, limit + 1)).fetchall()
            total = connection.execute(_COUNT).fetchone()[0] if len(rows) > limit else len(rows)
            return Newest(_page(rows, limit), total, file.parent / SPOOL_FOLDER)
    except (sqlite3.Error, OSError, ValueError):
        return None


def _is_cursor(cursor: str | None) -> bool:
    if cursor is None:
        return True
    return cursor.isascii() and cursor.isdigit() and len(cursor) <= _MAX_CURSOR_DIGITS


def _page(rows: list[Any], limit: int) -> Page[InvocationView]:
    shown = rows[:limit]
    more = len(rows) > limit
    return Page(tuple(map(_view, shown)), str(shown[-1][0]) if more else None)


def _view(row: tuple[Any, ...]) -> InvocationView:
    """The view of a row.

    Raises:
        ValueError: it holds what the recorder does not write.
    """
    values: dict[str, Any] = dict(zip(_NAMES, row, strict=True))
    for name, value in values.items():
        if name in _MAY_BE_MISSING:
            fits = value is None or isinstance(value, _MAY_BE_MISSING[name])
        else:
            fits = isinstance(value, _KINDS.get(name, str))
        if not fits:
            raise ValueError(f"the recorder writes no such {name}")
    del values["key"]
    for name in ("id", "session_id"):
        values[name] = UUID(bytes=values[name])
    for name in ("started_at", "finished_at"):
        values[name] = values[name] and datetime.fromisoformat(values[name])
    for name in ("timed_out", "truncated"):
        values[name] = None if values[name] is None else bool(values[name])
    return InvocationView(**values)


_NAMES = ("key", *(name for name in InvocationView.__slots__ if name != "damage"))
_MAY_BE_MISSING = {
    "call_id": str,
    "finished_at": str,
    "error_kind": str,
    **dict.fromkeys(("duration_ms", "exit_status", "signal", "timed_out"), int),
    **dict.fromkeys(("output_size", "truncated", "lost_size"), int),
}
_KINDS = {"key": int, "id": bytes, "session_id": bytes, "seq": int}
"""What a column holds that always holds something; text, where it is not said."""
