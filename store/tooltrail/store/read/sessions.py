"""Sessions: their views, the newest first."""

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from tooltrail.records.errors import DamageError, NotFoundError
from tooltrail.store.engines.connection import Connection
from tooltrail.store.read.bodies import load_bodies
from tooltrail.store.read.names import session_key
from tooltrail.store.read.pages import check_limit
from tooltrail.store.read.rows import Columns, Computed, Row, Sql, damage_of, fetch, limited, where
from tooltrail.store.views import SessionView

_NO_ENVIRONMENT: Final = "{}"
"""The environment of a session whose opening the store has not seen, or says nothing of one."""

_COUNTED: Final = "(SELECT count(*) FROM invocations AS i WHERE i.session_key = sessions.key{})"
_IS_OPEN: Final = " AND i.state <> 'success' AND i.state = 'started'"

_SESSION: Final = Columns(
    "sessions.key",
    "sessions.id",
    "sessions.parent_id",
    "sessions.title",
    "sessions.agent",
    "sessions.environment",
    "sessions.opened_at",
    "sessions.closed_at",
    Computed(_COUNTED.format(""), "invocation_count", "integer"),
    Computed(_COUNTED.format(_IS_OPEN), "open_count", "integer"),
    "sessions.name",
    "sessions.close_reason",
)
_SELECTED: Final = Sql(f"SELECT {_SESSION.sql} FROM sessions")
_ENVIRONMENT: Final = 4
"""Place of the environment behind the key."""


def select_sessions(after: int | None, limit: int | None) -> Sql:
    """Sessions, the newest first.

    Args:
        after: the key of the last session of the page before.
        limit: at most so many.
    """
    newest = " ORDER BY sessions.opened_at DESC, sessions.key DESC"
    return _SELECTED + where([] if after is None else _behind(after)) + newest + limited(limit)


def select_session(key: int) -> Sql:
    """One session."""
    return _SELECTED + Sql(" WHERE sessions.key = ?", (key,))


def list_sessions(
    connection: Connection, *, limit: int | None, cursor: UUID | None
) -> list[SessionView]:
    """Sessions, the newest first, or those behind the one that the cursor names.

    Raises:
        InvalidRecordError: a limit below 1.
        NotFoundError: there is no session of that id.
    """
    check_limit(limit)
    after = None if cursor is None else session_key(connection, cursor)
    return _views(connection, fetch(connection, select_sessions(after, limit)))


def session_view(connection: Connection, key: int) -> SessionView:
    """One session."""
    return _views(connection, fetch(connection, select_session(key)))[0]


def _behind(after: int) -> list[Sql]:
    at = "(SELECT last.opened_at FROM sessions AS last WHERE last.key = ?)"
    return [
        Sql(f"sessions.opened_at <= {at}", (after,)),
        Sql(f"(sessions.opened_at < {at} OR sessions.key < ?)", (after, after)),
    ]


def _views(connection: Connection, rows: Sequence[Row]) -> list[SessionView]:
    read: list[tuple[list[Any], list[str]]] = []
    for row in rows:
        problems: list[str] = []
        read.append((_SESSION.read(row, problems), problems))
    digests = (values[_ENVIRONMENT + 1] for values, _ in read)
    environments = load_bodies(connection, (one for one in digests if one is not None))
    views: list[SessionView] = []
    for (key, *values), problems in read:
        digest = values[_ENVIRONMENT]
        values[_ENVIRONMENT] = _NO_ENVIRONMENT
        try:
            if digest is not None:
                values[_ENVIRONMENT] = environments[digest].read().decode()
        except NotFoundError:
            pass  # erased
        except (DamageError, UnicodeDecodeError):
            problems.append("environment names a body that is missing or damaged")
        views.append(SessionView(*values, damage=damage_of("sessions", key, problems)))
    return views
