"""Sessions: their views, the newest first."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from tooltrail.records.errors import NotFoundError
from tooltrail.store.engines.connection import Connection
from tooltrail.store.read.bodies import Body, load_bodies
from tooltrail.store.read.columns import Columns, Computed, damage_of, make_view
from tooltrail.store.read.rows import Row, Sql, check_limit, fetch, fetch_value, limited, where
from tooltrail.store.views import SessionView

_NO_ENVIRONMENT: Final = Body()
"""Of a session whose opening the store has not seen, or says nothing of one."""

_COUNTED: Final = "(SELECT count(*) FROM invocations AS i WHERE i.session_key = sessions.key{})"
_IS_OPEN: Final = " AND i.state <> 'success' AND i.state = 'started'"

_SESSION: Final = Columns(
    "sessions: key id parent_id title agent environment opened_at closed_at",
    Computed(_COUNTED.format(""), "invocation_count", "integer"),
    Computed(_COUNTED.format(_IS_OPEN), "open_count", "integer"),
    "sessions: name close_reason",
)
_SELECTED: Final = Sql(f"SELECT {_SESSION.sql} FROM sessions")


def list_sessions(
    connection: Connection, *, limit: int | None, cursor: UUID | None
) -> list[SessionView]:
    """See `Reader.sessions`."""
    check_limit(limit)
    behind: list[Sql] = []
    if cursor is not None:
        after = fetch_value(connection, Sql("SELECT key FROM sessions WHERE id = ?", (cursor,)))
        if after is None:
            raise NotFoundError(f"no session has the id {cursor}")
        at = "(SELECT last.opened_at FROM sessions AS last WHERE last.key = ?)"
        behind = [
            Sql(f"sessions.opened_at <= {at}", (after,)),
            Sql(f"(sessions.opened_at < {at} OR sessions.key < ?)", (after, after)),
        ]
    newest = " ORDER BY sessions.opened_at DESC, sessions.key DESC"
    return _views(
        connection, fetch(connection, _SELECTED + where(behind) + newest + limited(limit))
    )


def session_view(connection: Connection, key: int) -> SessionView:
    """One session."""
    one = Sql(" WHERE sessions.key = ?", (key,))
    return _views(connection, fetch(connection, _SELECTED + one))[0]


def _views(connection: Connection, rows: Sequence[Row]) -> list[SessionView]:
    read = [_SESSION.read(row) for row in rows]
    digests = (values["environment"] for values, _ in read)
    bodies = load_bodies(connection, (one for one in digests if one is not None))
    views: list[SessionView] = []
    for values, problems in read:
        body = bodies.get(values["environment"], _NO_ENVIRONMENT)
        if body.damage is not None:
            problems.append("environment names a body that is missing or damaged")
        environment = "{}" if body.data is None else body.data.decode(errors="surrogateescape")
        damage = damage_of("sessions", values["key"], problems)
        views.append(make_view(SessionView, values, environment=environment, damage=damage))
    return views
