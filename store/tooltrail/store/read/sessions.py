"""Sessions: their views, the newest first."""

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, and_, func, or_, select

from tooltrail.records import DamageError, NotFoundError
from tooltrail.store.read.bodies import load_bodies
from tooltrail.store.read.names import select_by_id
from tooltrail.store.read.pages import check_limit
from tooltrail.store.read.rows import AnyRow, AnySelect, Columns, damage_of, fetch
from tooltrail.store.schema import invocations, sessions
from tooltrail.store.views import SessionView

_NO_ENVIRONMENT: Final = "{}"
"""The environment of a session whose opening the store has not seen, or says nothing of one."""

_MINE = invocations.c.session_key == sessions.c.key
_COUNTED = select(func.count()).select_from(invocations).where(_MINE).correlate(sessions)
_IS_OPEN = and_(invocations.c.state != "success", invocations.c.state == "started")

_SESSION: Final = Columns(
    sessions.c.key,
    sessions.c.id,
    sessions.c.parent_id,
    sessions.c.title,
    sessions.c.agent,
    sessions.c.environment,
    sessions.c.opened_at,
    sessions.c.closed_at,
    _COUNTED.scalar_subquery().label("invocation_count"),
    _COUNTED.where(_IS_OPEN).scalar_subquery().label("open_count"),
    sessions.c.name,
    sessions.c.close_reason,
)


def select_sessions(after: int | None, limit: int | None) -> AnySelect:
    """Sessions, the newest first.

    Args:
        after: the key of the last session of the page before.
        limit: at most so many.
    """
    newest = (sessions.c.opened_at.desc(), sessions.c.key.desc())
    query = select(*_SESSION.selected).order_by(*newest).limit(limit)
    return query if after is None else query.where(*_behind(after))


def select_session(key: int) -> AnySelect:
    """One session."""
    return select(*_SESSION.selected).where(sessions.c.key == key)


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


def session_key(connection: Connection, session_id: UUID) -> int:
    """The key of a session.

    Raises:
        NotFoundError: there is no such session.
    """
    key = connection.scalar(select_by_id(sessions, session_id))
    if key is None:
        raise NotFoundError(f"no session has the id {session_id}")
    return key


def _behind(after: int) -> list[ColumnElement[bool]]:
    last = sessions.alias("last")
    at = select(last.c.opened_at).where(last.c.key == after).scalar_subquery()
    opened_at = sessions.c.opened_at
    return [opened_at <= at, or_(opened_at < at, sessions.c.key < after)]


def _views(connection: Connection, rows: Sequence[AnyRow]) -> list[SessionView]:
    read: list[tuple[list[Any], list[str]]] = []
    for row in rows:
        problems: list[str] = []
        read.append((_SESSION.read(row, problems), problems))
    environments = load_bodies(connection, {v[5] for v, _ in read if v[5] is not None})
    views: list[SessionView] = []
    for (key, *values), problems in read:
        digest = values[4]
        values[4] = _NO_ENVIRONMENT
        if digest is not None:
            try:
                values[4] = environments[digest].read().decode()
            except (DamageError, UnicodeDecodeError):
                problems.append("environment names a body that is missing or damaged")
        values.append(damage_of(sessions.name, key, problems))
        views.append(SessionView(*values))
    return views
