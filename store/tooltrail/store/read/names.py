"""How people point at an invocation or a session: an id, a part of it, a name, a place, the last.

A name is resolved to the key of a row, so that a row with a damaged id can be reached by its place.
"""

import re
from collections.abc import Sequence
from typing import Final, Literal
from uuid import UUID

from tooltrail.records.errors import AmbiguousNameError, NotFoundError
from tooltrail.store.engines.connection import Connection
from tooltrail.store.read.pages import MAX_KEY_DIGITS
from tooltrail.store.read.rows import Columns, Sql, fetch, fetch_value

LAST: Final = "@last"
MIN_PART: Final = 4
"""Digits of a shortened id at the least; fewer fit too many."""

_CANDIDATES: Final = 5
_ID_DIGITS: Final = 32
_HEX: Final = re.compile(r"[0-9a-f]+")

_Table = Literal["invocations", "sessions"]
_NAMED: Final = Columns("invocations.key", "invocations.id")
"""Key and id of what has a name; the same for sessions."""


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
    return _by_id(connection, name, "invocations")


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
        key = fetch_value(connection, select_last_session())
        if key is None:
            raise NotFoundError("the store has no session yet")
        return int(key)
    named = _candidates(connection, select_by_session_name(name))
    if named and _whole_id(name) is None:
        return _only(named, name, "session")
    return _by_id(connection, name, "sessions")


def session_key(connection: Connection, session_id: UUID) -> int:
    """The key of a session.

    Raises:
        NotFoundError: there is no such session.
    """
    key = fetch_value(connection, select_by_id("sessions", session_id))
    if key is None:
        raise NotFoundError(f"no session has the id {session_id}")
    return int(key)


def select_last_session() -> Sql:
    """The key of the session that was opened last."""
    return Sql("SELECT key FROM sessions ORDER BY opened_at DESC, key DESC LIMIT 1")


def select_by_session_name(name: str) -> Sql:
    """The sessions that producers join by a name."""
    query = f"SELECT key, id FROM sessions WHERE name = ? ORDER BY key DESC LIMIT {_CANDIDATES}"
    return Sql(query, (name,))


def select_last_invocation(tool: str) -> Sql:
    """The key of the invocation that started last, of one tool if one is named."""
    newest = " ORDER BY started_at DESC, key DESC LIMIT 1"
    of_tool = Sql(" WHERE tool_name = ?", (tool,)) if tool else ""
    return Sql("SELECT key FROM invocations") + of_tool + newest


def select_at_place(session: int, seq: int) -> Sql:
    """The key of the invocation at a place of a session."""
    return Sql("SELECT key FROM invocations WHERE session_key = ? AND seq = ?", (session, seq))


def select_by_id(table: _Table, name: UUID) -> Sql:
    """The key of the row with an id."""
    return Sql(f"SELECT key FROM {table} WHERE id = ?", (name,))


def select_by_beginning(table: _Table, part: str) -> Sql:
    """Some rows whose ids begin with some digits, the newest first."""
    ends = (UUID(part.ljust(_ID_DIGITS, "0")), UUID(part.ljust(_ID_DIGITS, "f")))
    return _some(table, Sql("id BETWEEN ? AND ?", ends))


def select_by_ending(table: _Table, part: str, *, is_sqlite: bool) -> Sql:
    """Some rows whose ids end with some digits, the newest first; reads the index of all ids."""
    return _some(table, _ends_so(part, is_sqlite=is_sqlite))


def _some(table: _Table, fits: Sql) -> Sql:
    # By id, which is by time: so an index of the ids alone is read.
    behind = f" ORDER BY id DESC LIMIT {_CANDIDATES}"
    return Sql(f"SELECT key, id FROM {table} WHERE ") + fits + behind


def _ends_so(part: str, *, is_sqlite: bool) -> Sql:
    if not is_sqlite:
        return Sql(f"right(replace(CAST(id AS text), '-', ''), {len(part)}) = ?", (part,))
    ending = f"substr(CAST(id AS BLOB), -{(len(part) + 1) // 2})"
    if len(part) % 2 == 0:
        # Bytes are compared in a sixth of the time that digits take.
        return Sql(f"{ending} = ?", (bytes.fromhex(part),))
    return Sql(f"lower(substr(hex({ending}), 2)) = ?", (part,))


def _last_invocation(connection: Connection, tool: str) -> int:
    key = fetch_value(connection, select_last_invocation(tool))
    if key is None:
        raise NotFoundError(f"the store has no invocation {f'of {tool} ' if tool else ''}yet")
    return int(key)


def _at_place(connection: Connection, name: str) -> int:
    session_name, _, seq = name.rpartition("#")
    session = find_session(connection, session_name)
    if seq.isascii() and seq.isdigit() and len(seq) <= MAX_KEY_DIGITS:
        key = fetch_value(connection, select_at_place(session, int(seq)))
        if key is not None:
            return int(key)
    raise NotFoundError(f"session {session_name} has no invocation at #{seq[:40]}")


def _by_id(connection: Connection, name: str, table: _Table) -> int:
    kind, exact, part = table.removesuffix("s"), _whole_id(name), _digits_of(name)
    if exact is not None:
        key = fetch_value(connection, select_by_id(table, exact))
        if key is None:
            raise NotFoundError(f"no {kind} is named {name!r}")
        return int(key)
    if not _HEX.fullmatch(part) or not MIN_PART <= len(part) < _ID_DIGITS:
        raise NotFoundError(f"no {kind} is named {name!r}")
    ending = select_by_ending(table, part, is_sqlite=connection.is_sqlite)
    found = {*_candidates(connection, select_by_beginning(table, part))}
    found.update(_candidates(connection, ending))
    newest = sorted(found, key=lambda one: one[1], reverse=True)
    return _only(newest[:_CANDIDATES], name, kind)


def _candidates(connection: Connection, query: Sql) -> list[tuple[int, str]]:
    """Key and id of the rows that a query finds; a damaged id is not what anybody means."""
    found: list[tuple[int, str]] = []
    for row in fetch(connection, query):
        problems: list[str] = []
        key, one = _NAMED.read(row, problems)
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
