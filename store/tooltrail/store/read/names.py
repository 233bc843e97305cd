"""How people point at an invocation or a session: an id, a part of it, a name, a place, the last.

A name is resolved to the key of a row, so that a row with a damaged id can be reached by its place.
"""

import re
from collections.abc import Sequence
from typing import Final
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Connection,
    LargeBinary,
    Select,
    String,
    Table,
    cast,
    func,
    select,
)

from tooltrail.records import AmbiguousNameError, NotFoundError
from tooltrail.store.read.pages import MAX_KEY_DIGITS
from tooltrail.store.read.rows import AnySelect, Columns, fetch
from tooltrail.store.schema import invocations, sessions

LAST: Final = "@last"
MIN_PART: Final = 4
"""Digits of a shortened id at the least; fewer fit too many."""

_CANDIDATES: Final = 5
_ID_DIGITS: Final = 32
_HEX: Final = re.compile(r"[0-9a-f]+")

_NAMED: Final = {table: Columns(table.c.key, table.c.id) for table in (invocations, sessions)}
"""Key and id of what has a name."""


def find_invocation(connection: Connection, name: str) -> int:
    """The key of the invocation that a name means.

    Args:
        connection: a snapshot.
        name: an id, a unique beginning or end of it, `SESSION#SEQ`, `@last` or `@last:TOOL`.

    Raises:
        NotFoundError: no invocation has this name.
        AmbiguousNameError: more than one has.
    """
    if name == LAST or name.startswith(f"{LAST}:"):
        return _last_invocation(connection, name.partition(":")[2])
    if "#" in name:
        return _at_place(connection, name)
    return _by_id(connection, name, invocations)


def find_session(connection: Connection, name: str) -> int:
    """The key of the session that a name means.

    Args:
        connection: a snapshot.
        name: an id, the name by which producers join the session, a unique beginning or end of an
            id, or `@last`.

    Raises:
        NotFoundError: no session has this name.
        AmbiguousNameError: more than one has.
    """
    if name == LAST:
        key = connection.scalar(select_last_session())
        if key is None:
            raise NotFoundError("the store has no session yet")
        return key
    named = _candidates(connection, sessions, select_by_session_name(name))
    if named and _whole_id(name) is None:
        return _only(named, name, "session")
    return _by_id(connection, name, sessions)


def select_last_session() -> Select[int]:
    """The key of the session that was opened last."""
    newest = (sessions.c.opened_at.desc(), sessions.c.key.desc())
    return select(sessions.c.key).order_by(*newest).limit(1)


def select_by_session_name(name: str) -> AnySelect:
    """The sessions that producers join by a name."""
    return (
        select(*_NAMED[sessions].selected)
        .where(sessions.c.name == name)
        .order_by(sessions.c.key.desc())
        .limit(_CANDIDATES)
    )


def select_last_invocation(tool: str) -> Select[int]:
    """The key of the invocation that started last, of one tool if one is named."""
    newest = (invocations.c.started_at.desc(), invocations.c.key.desc())
    query = select(invocations.c.key).order_by(*newest).limit(1)
    return query.where(invocations.c.tool_name == tool) if tool else query


def select_at_place(session_key: int, seq: int) -> Select[int]:
    """The key of the invocation at a place of a session."""
    here = (invocations.c.session_key == session_key, invocations.c.seq == seq)
    return select(invocations.c.key).where(*here)


def select_by_id(table: Table, name: UUID) -> Select[int]:
    """The key of the row with an id."""
    return select(table.c.key).where(table.c.id == name)


def select_by_beginning(table: Table, part: str) -> AnySelect:
    """Some rows whose ids begin with some digits, the newest first."""
    low, high = UUID(part.ljust(_ID_DIGITS, "0")), UUID(part.ljust(_ID_DIGITS, "f"))
    return _some(table, table.c.id.between(low, high))


def select_by_ending(table: Table, part: str, dialect: str) -> AnySelect:
    """Some rows whose ids end with some digits, the newest first; reads the index of all ids."""
    return _some(table, _ends_so(table, part, dialect))


def _some(table: Table, fits: ColumnElement[bool]) -> AnySelect:
    # By id, which is by time: so an index of the ids alone is read.
    query = select(*_NAMED[table].selected).where(fits)
    return query.order_by(table.c.id.desc()).limit(_CANDIDATES)


def _ends_so(table: Table, part: str, dialect: str) -> ColumnElement[bool]:
    if dialect == "postgresql":
        return func.right(func.replace(cast(table.c.id, String), "-", ""), len(part)) == part
    ending = func.substr(cast(table.c.id, LargeBinary), -((len(part) + 1) // 2))
    if len(part) % 2 == 0:
        # Bytes are compared in a sixth of the time that digits take.
        return ending == bytes.fromhex(part)
    return func.lower(func.substr(func.hex(ending), 2)) == part


def _last_invocation(connection: Connection, tool: str) -> int:
    key = connection.scalar(select_last_invocation(tool))
    if key is None:
        raise NotFoundError(f"the store has no invocation {f'of {tool} ' if tool else ''}yet")
    return key


def _at_place(connection: Connection, name: str) -> int:
    session_name, _, seq = name.rpartition("#")
    session_key = find_session(connection, session_name)
    if seq.isascii() and seq.isdigit() and len(seq) <= MAX_KEY_DIGITS:
        key = connection.scalar(select_at_place(session_key, int(seq)))
        if key is not None:
            return key
    raise NotFoundError(f"session {session_name} has no invocation at #{seq[:40]}")


def _by_id(connection: Connection, name: str, table: Table) -> int:
    kind, exact = table.name.removesuffix("s"), _whole_id(name)
    part = _digits_of(name)
    if exact is not None:
        key = connection.scalar(select_by_id(table, exact))
        if key is None:
            raise NotFoundError(f"no {kind} is named {name!r}")
        return key
    if not _HEX.fullmatch(part) or not MIN_PART <= len(part) < _ID_DIGITS:
        raise NotFoundError(f"no {kind} is named {name!r}")
    dialect = connection.dialect.name
    queries = (select_by_beginning(table, part), select_by_ending(table, part, dialect))
    found = {one for query in queries for one in _candidates(connection, table, query)}
    newest = sorted(found, key=lambda one: one[1], reverse=True)
    return _only(newest[:_CANDIDATES], name, kind)


def _candidates(connection: Connection, table: Table, query: AnySelect) -> list[tuple[int, str]]:
    """Key and id of the rows that a query finds; a damaged id is not what anybody means."""
    found: list[tuple[int, str]] = []
    for row in fetch(connection, query):
        problems: list[str] = []
        key, one = _NAMED[table].read(row, problems)
        if not problems:
            found.append((key, str(one)))
    return found


def _digits_of(name: str) -> str:
    return name.lower().replace("-", "")


def _whole_id(name: str) -> UUID | None:
    digits = _digits_of(name)
    is_whole = len(digits) == _ID_DIGITS and _HEX.fullmatch(digits) is not None
    return UUID(digits) if is_whole else None


def _only(found: Sequence[tuple[int, str]], name: str, kind: str) -> int:
    """The key of the only row that was found."""
    if not found:
        raise NotFoundError(f"no {kind} is named {name!r}")
    if len(found) > 1:
        raise AmbiguousNameError(name, [one for _, one in found])
    return found[0][0]
