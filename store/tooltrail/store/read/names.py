"""Finds an invocation or a session by id, part of an id, name, `SESSION#SEQ`, `@last`, `@running`.

A name is resolved to the key of a row, so that `SESSION#SEQ` finds a row with a damaged id, too.
"""

import re
from collections.abc import Mapping
from typing import Final, Literal
from uuid import UUID

from tooltrail.records.errors import AmbiguousNameError, NotFoundError
from tooltrail.records.ids import MAX_KEY_CHARS, keyed_id
from tooltrail.store.engines.connection import Connection
from tooltrail.store.read.columns import Columns, refuse_damage
from tooltrail.store.read.rows import MAX_KEY_DIGITS, Sql, fetch, fetch_value, where
from tooltrail.store.read.values import has_value, near_names, near_values

LAST: Final = "@last"
RUNNING: Final = "@running"

_MOST_READ: Final = AmbiguousNameError.MOST_CANDIDATES + 1
"""One more than an error lists, to know whether there are more."""

_ID_DIGITS: Final = 32
_LEAST_DIGITS: Final = 4
"""Fewest digits of an id that are a name; fewer would fit too many ids."""

_PART: Final = rf"[0-9a-f]{{{_LEAST_DIGITS},{_ID_DIGITS}}}"
_SHORT: Final = rf"[0-9a-fA-F]{{1,{_LEAST_DIGITS - 1}}}"

_NAMED: Final = Columns("invocations: key id")
"""Key and id; also used for sessions, whose columns have the same kinds."""


def find_invocation(connection: Connection, name: str) -> int:
    """The key of the invocation with a name.

    A name is an id, a unique beginning or end of an id, the id that the provider gave the call,
    `SESSION#SEQ`, or the newest: `@last`, `@last:TOOL`, `@running`, `@running:TOOL`. Raises
    `NotFoundError` or `AmbiguousNameError` if no invocation or several have this name.
    """
    which, _, tool = name.partition(":")
    if which in (LAST, RUNNING):
        conditions = [Sql("tool_name = ?", (tool,))] if tool else []
        if which == RUNNING:
            conditions.append(Sql("outcome = 'running' AND outcome <> 'ok'"))
        latest = Sql("SELECT key FROM invocations") + where(conditions)
        latest += " ORDER BY started_at DESC, key DESC LIMIT 1"
        of_tool = f" of {tool}" if tool else ""
        problem = "no running invocation" if which == RUNNING else "no invocation"
        if tool and not has_value(connection, "tools", tool):
            of_tool += near_values(connection, "tools", tool)
        return _key(connection, latest, f"the store has {problem}{of_tool}")
    if "#" not in name:
        return _by_id(connection, name, "invocations")
    session_name, _, seq = name.rpartition("#")
    try:
        session = _session_key(connection, session_name)
    except NotFoundError:
        if called := _called(connection, name):
            return _only(called, name)
        raise
    problem = f"session {session_name} has no invocation at #{seq[:40]}"
    if not (seq.isascii() and seq.isdigit() and len(seq) <= MAX_KEY_DIGITS):
        raise NotFoundError(problem)
    query = "SELECT key FROM invocations WHERE session_key = ? AND seq = ?"
    return _key(connection, Sql(query, (session, int(seq))), problem)


def invocation_id(connection: Connection, name: str) -> UUID:
    """The id of the invocation with a name; raises like `find_invocation`, and `DamageError`."""
    return _id_of(connection, "invocations", find_invocation(connection, name))


def session_id(connection: Connection, name: str) -> UUID:
    """The id of the session with a name; raises like `find_session`, and `DamageError`."""
    return _id_of(connection, "sessions", find_session(connection, name))


def _id_of(connection: Connection, table: str, key: int) -> UUID:
    row = fetch(connection, Sql(f"SELECT key, id FROM {table} WHERE key = ?", (key,)))[0]
    values, problems = _NAMED.read(row)
    refuse_damage(table, key, problems)
    found: UUID = values["id"]
    return found


def find_session(connection: Connection, name: str) -> int:
    """The key of the session with a name; raises like `find_invocation`.

    A name is an id, a unique beginning or end of an id, the name for joining, or `@last`.
    """
    try:
        return _session_key(connection, name)
    except NotFoundError:
        if session := _session_of_call(connection, name):
            raise NotFoundError(
                f"no session is named {name!r}; an invocation of session {session} has this name:"
                " `tooltrail show` prints the invocation"
            ) from None
        raise


def _session_of_call(connection: Connection, name: str) -> str | None:
    """The id of the session of the invocation with a name; None if there is no such invocation."""
    try:
        key = find_invocation(connection, name)
    except (NotFoundError, AmbiguousNameError):
        return None
    query = (
        "SELECT sessions.key, sessions.id FROM sessions JOIN invocations"
        " ON invocations.session_key = sessions.key WHERE invocations.key = ?"
    )
    return next(iter(_found(connection, Sql(query, (key,)))), None)


def _session_key(connection: Connection, name: str) -> int:
    if name == LAST:
        newest = Sql("SELECT key FROM sessions ORDER BY opened_at DESC, key DESC LIMIT 1")
        return _key(connection, newest, "the store has no session yet")
    if len(_digits_of(name)) != _ID_DIGITS:
        # A session that was only joined has no name, but an id that is derived from the name.
        keyed = keyed_id("name", name) if 0 < len(name) <= MAX_KEY_CHARS else None
        query = "SELECT key, id FROM sessions WHERE name = ? OR id = ? ORDER BY key DESC LIMIT ?"
        if named := _found(connection, Sql(query, (name, keyed, _MOST_READ))):
            return _only(named, name)
    return _by_id(connection, name, "sessions")


def _by_id(connection: Connection, name: str, table: Literal["invocations", "sessions"]) -> int:
    digits, fits = _digits_of(name), list[Sql]()
    if digits:
        ends = (UUID(digits.ljust(_ID_DIGITS, "0")), UUID(digits.ljust(_ID_DIGITS, "f")))
        fits.append(Sql("id BETWEEN ? AND ?", ends))
    if 0 < len(digits) < _ID_DIGITS:
        fits.append(_ends_so(digits))
    found: dict[str, int] = {}
    for one in fits:
        # The order of ids is the order of time, and needs only the index of ids.
        newest = f" ORDER BY id DESC LIMIT {_MOST_READ}"
        found |= _found(connection, Sql(f"SELECT key, id FROM {table} WHERE ") + one + newest)
    if table == "invocations" and (not found or len(digits) < _ID_DIGITS):
        found |= _called(connection, name)
    if not found:
        short = f"; a part of an id has at least {_LEAST_DIGITS} characters"
        near = short if re.fullmatch(_SHORT, name) else near_names(connection, table, name)
        if table == "invocations" and _names_session(connection, name):
            near = "; a session has this name: `tooltrail transcript` prints the session"
        raise NotFoundError(f"no {table.removesuffix('s')} is named {name!r}{near}")
    return _only(found, name)


def _names_session(connection: Connection, name: str) -> bool:
    try:
        _session_key(connection, name)
    except (NotFoundError, AmbiguousNameError):
        return False
    return True


def _called(connection: Connection, name: str) -> Mapping[str, int]:
    """The keys of the calls with this id from the provider."""
    query = f"SELECT key, id FROM invocations WHERE call_id = ? LIMIT {_MOST_READ}"
    return _found(connection, Sql(query, (name,)))


def _ends_so(part: str) -> Sql:
    """The condition that an id ends with some digits. Scans the index of all ids."""
    on_server = Sql(f"right(replace(CAST(id AS text), '-', ''), {len(part)}) = ?", (part,))
    ending = f"substr(CAST(id AS BLOB), -{(len(part) + 1) // 2})"
    if len(part) % 2 == 0:
        # Comparing bytes takes a sixth of the time of comparing digits.
        return Sql(f"{ending} = ?", (bytes.fromhex(part),), on_server)
    return Sql(f"lower(substr(hex({ending}), 2)) = ?", (part,), on_server)


def _digits_of(name: str) -> str:
    """The digits of an id, or of a part of one; empty for any other name."""
    digits = name.lower().replace("-", "")
    return digits if re.fullmatch(_PART, digits) else ""


def _key(connection: Connection, query: Sql, problem: str) -> int:
    """The key that a query finds; raises `NotFoundError` with `problem` if it finds none."""
    if (key := fetch_value(connection, query)) is None:
        raise NotFoundError(problem)
    return int(key)


def _found(connection: Connection, query: Sql) -> Mapping[str, int]:
    """The keys that a query finds, by id. Rows with a damaged id are left out."""
    read = [_NAMED.read(row) for row in fetch(connection, query)]
    return {str(values["id"]): values["key"] for values, problems in read if not problems}


def _only(found: Mapping[str, int], name: str) -> int:
    """The key of the only row that was found; raises if there is more than one."""
    if len(found) > 1:
        raise AmbiguousNameError(name, sorted(found, reverse=True))
    return next(iter(found.values()))
