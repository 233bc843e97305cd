"""Finds an invocation or a session by id, part of an id, name, place in a session, or `@last`.

A name is resolved to the key of a row, so that a row with a damaged id can be reached by its place.
"""

import re
from collections.abc import Sequence
from typing import Final, Literal
from uuid import UUID

from tooltrail.records.errors import AmbiguousNameError, NotFoundError
from tooltrail.records.ids import MAX_KEY_CHARS, keyed_id
from tooltrail.store.engines.connection import Connection
from tooltrail.store.read.columns import Columns
from tooltrail.store.read.pages import MAX_KEY_DIGITS
from tooltrail.store.read.rows import Sql, fetch, fetch_value

LAST: Final = "@last"
MIN_PART: Final = 4
"""Digits of a shortened id at the least; fewer fit too many."""

_CANDIDATES: Final = 5
_ID_DIGITS: Final = 32
_HEX: Final = re.compile(r"[0-9a-f]+")

_Table = Literal["invocations", "sessions"]
_NAMED: Final = Columns("invocations: key id")
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
        newest = Sql("SELECT key FROM sessions ORDER BY opened_at DESC, key DESC LIMIT 1")
        return _key(connection, newest, "the store has no session yet")
    # A session that was only joined has no name of its own, but an id that is made of the name.
    keyed = keyed_id("name", name) if 0 < len(name) <= MAX_KEY_CHARS else None
    query = (
        "SELECT key, id FROM sessions WHERE name = ? OR id = ?"
        f" ORDER BY key DESC LIMIT {_CANDIDATES}"
    )
    named = _candidates(connection, Sql(query, (name, keyed)))
    if named and _whole_id(name) is None:
        return _only(named, name, "session")
    return _by_id(connection, name, "sessions")


def session_key(connection: Connection, session_id: UUID) -> int:
    """The key of a session.

    Raises:
        NotFoundError: there is no such session.
    """
    query = Sql("SELECT key FROM sessions WHERE id = ?", (session_id,))
    return _key(connection, query, f"no session has the id {session_id}")


def _last_invocation(connection: Connection, tool: str) -> int:
    of_tool = Sql(" WHERE tool_name = ?", (tool,)) if tool else ""
    newest = " ORDER BY started_at DESC, key DESC LIMIT 1"
    problem = f"the store has no invocation {f'of {tool} ' if tool else ''}yet"
    return _key(connection, Sql("SELECT key FROM invocations") + of_tool + newest, problem)


def _at_place(connection: Connection, name: str) -> int:
    session_name, _, seq = name.rpartition("#")
    session = find_session(connection, session_name)
    problem = f"session {session_name} has no invocation at #{seq[:40]}"
    if not (seq.isascii() and seq.isdigit() and len(seq) <= MAX_KEY_DIGITS):
        raise NotFoundError(problem)
    query = "SELECT key FROM invocations WHERE session_key = ? AND seq = ?"
    return _key(connection, Sql(query, (session, int(seq))), problem)


def _by_id(connection: Connection, name: str, table: _Table) -> int:
    kind, exact, part = table.removesuffix("s"), _whole_id(name), _digits_of(name)
    problem = f"no {kind} is named {name!r}"
    if exact is not None:
        query = Sql(f"SELECT key FROM {table} WHERE id = ?", (exact,))
        return _key(connection, query, problem)
    if not _HEX.fullmatch(part) or not MIN_PART <= len(part) < _ID_DIGITS:
        raise NotFoundError(problem)
    ends = (UUID(part.ljust(_ID_DIGITS, "0")), UUID(part.ljust(_ID_DIGITS, "f")))
    found: set[tuple[int, str]] = set()
    for fits in (Sql("id BETWEEN ? AND ?", ends), _ends_so(part, is_sqlite=connection.is_sqlite)):
        # By id, which is by time: so an index of the ids alone is read.
        newest = f" ORDER BY id DESC LIMIT {_CANDIDATES}"
        query = Sql(f"SELECT key, id FROM {table} WHERE ") + fits + newest
        found.update(_candidates(connection, query))
    by_id = sorted(found, key=lambda one: one[1], reverse=True)
    return _only(by_id[:_CANDIDATES], name, kind)


def _ends_so(part: str, *, is_sqlite: bool) -> Sql:
    """The condition that an id ends with some digits; reads the index of all ids."""
    if not is_sqlite:
        return Sql(f"right(replace(CAST(id AS text), '-', ''), {len(part)}) = ?", (part,))
    ending = f"substr(CAST(id AS BLOB), -{(len(part) + 1) // 2})"
    if len(part) % 2 == 0:
        # Bytes are compared in a sixth of the time that digits take.
        return Sql(f"{ending} = ?", (bytes.fromhex(part),))
    return Sql(f"lower(substr(hex({ending}), 2)) = ?", (part,))


def _key(connection: Connection, query: Sql, problem: str) -> int:
    """The key that a query finds.

    Raises:
        NotFoundError: none, in the words of `problem`.
    """
    key = fetch_value(connection, query)
    if key is None:
        raise NotFoundError(problem)
    return int(key)


def _candidates(connection: Connection, query: Sql) -> list[tuple[int, str]]:
    """Key and id of the rows that a query finds; a damaged id is not what anybody means."""
    found: list[tuple[int, str]] = []
    for row in fetch(connection, query):
        values, problems = _NAMED.read(row)
        if not problems:
            found.append((values["key"], str(values["id"])))
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
