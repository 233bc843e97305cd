"""How people point at an invocation or a session: a full id, a part of it, a place, or the last."""

import re
from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, LargeBinary, String, cast, func, select

from tooltrail.records import AmbiguousNameError, NotFoundError
from tooltrail.store._reading.pages import MAX_KEY_DIGITS
from tooltrail.store.tables import InvocationRow, SessionRow

LAST = "@last"
MIN_PART = 4
"""Digits of a shortened id at the least; fewer fit too many."""

_CANDIDATES = 5
_HEX = re.compile(r"[0-9a-f]+")


def find_invocation(connection: Connection, name: str) -> UUID:
    """The invocation that a name means.

    Args:
        connection: a snapshot.
        name: an id, a unique beginning or end of it, `SESSION#SEQ`, `@last` or `@last:TOOL`.

    Raises:
        NotFoundError: no invocation has this name.
        AmbiguousNameError: more than one has.
    """
    if name == LAST or name.startswith(f"{LAST}:"):
        return _last(connection, name)
    if "#" in name:
        return _at_place(connection, name)
    return _by_id(connection, name, "invocation", InvocationRow)


def find_session(connection: Connection, name: str) -> UUID:
    """The session that a name means: an id, a unique beginning or end of it, or `@last`.

    Raises:
        NotFoundError: no session has this name.
        AmbiguousNameError: more than one has.
    """
    if name == LAST:
        found = connection.scalar(select(SessionRow.id).order_by(SessionRow.key.desc()).limit(1))
        if found is None:
            raise NotFoundError("the store has no session yet")
        return found
    return _by_id(connection, name, "session", SessionRow)


def session_key(connection: Connection, session_id: UUID) -> int:
    """The internal key of a session.

    Raises:
        NotFoundError: there is no such session.
    """
    key = connection.scalar(select(SessionRow.key).where(SessionRow.id == session_id))
    if key is None:
        raise NotFoundError(f"no session has the id {session_id}")
    return key


def _last(connection: Connection, name: str) -> UUID:
    query = select(InvocationRow.id).where(InvocationRow.key > 0)
    query = query.order_by(InvocationRow.key.desc()).limit(1)
    tool = name.partition(":")[2]
    if tool:
        query = query.where(InvocationRow.tool_name == tool)
    found = connection.scalar(query)
    if found is None:
        what = f"invocation of {tool}" if tool else "invocation"
        raise NotFoundError(f"the store has no {what} yet")
    return found


def _at_place(connection: Connection, name: str) -> UUID:
    session_name, _, seq = name.rpartition("#")
    session_id = find_session(connection, session_name)
    if seq.isascii() and seq.isdigit() and len(seq) <= MAX_KEY_DIGITS:
        found = connection.scalar(
            select(InvocationRow.id)
            .join(SessionRow, SessionRow.key == InvocationRow.session_key)
            .where(SessionRow.id == session_id, InvocationRow.seq == int(seq))
        )
        if found is not None:
            return found
    raise NotFoundError(f"session {session_id} has no invocation at #{seq[:40]}")


def _by_id(
    connection: Connection, name: str, kind: str, row: type[InvocationRow | SessionRow]
) -> UUID:
    part = name.lower().replace("-", "")
    if not _HEX.fullmatch(part) or not MIN_PART <= len(part) <= 32:
        raise NotFoundError(f"no {kind} is named {name!r}")
    if len(part) == 32:
        exact = connection.scalar(select(row.id).where(row.id == UUID(part)))
        if exact is None:
            raise NotFoundError(f"no {kind} is named {name!r}")
        return exact
    beginning = row.id.between(UUID(part.ljust(32, "0")), UUID(part.ljust(32, "f")))
    found = {
        one
        for fits in (beginning, _ends_so(connection, row, part))
        # By id, which is by time: so an index of the ids alone is read.
        for one in connection.scalars(
            select(row.id).where(fits).order_by(row.id.desc()).limit(_CANDIDATES)
        )
    }
    return _only(sorted(found, reverse=True)[:_CANDIDATES], name, kind)


def _ends_so(
    connection: Connection, row: type[InvocationRow | SessionRow], part: str
) -> ColumnElement[bool]:
    if connection.dialect.name == "postgresql":
        return func.right(func.replace(cast(row.id, String), "-", ""), len(part)) == part
    ending = func.substr(cast(row.id, LargeBinary), -((len(part) + 1) // 2))
    if len(part) % 2 == 0:
        # Bytes are compared in a sixth of the time that digits take.
        return ending == bytes.fromhex(part)
    return func.lower(func.substr(func.hex(ending), 2)) == part


def _only(found: Sequence[UUID], name: str, kind: str) -> UUID:
    if not found:
        raise NotFoundError(f"no {kind} is named {name!r}")
    if len(found) > 1:
        raise AmbiguousNameError(name, [str(candidate) for candidate in found])
    return found[0]
