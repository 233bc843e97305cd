"""Reads what a comparison of calls needs: the same call before, and all calls of a session."""

from collections.abc import Iterator
from typing import Final
from uuid import UUID

from tooltrail.records.errors import NotFoundError
from tooltrail.store.read.details import details_of
from tooltrail.store.read.reader import Reader
from tooltrail.store.read.rows import Sql, fetch
from tooltrail.store.views import InvocationDetail

_AT_ONCE: Final = 50
_MOST_CANDIDATES: Final = 20
"""Calls to compare byte by byte: a column may have a substitute for a text; see `texts`."""

_SAME_BEFORE: Final = """
SELECT earlier.key FROM invocations AS this
JOIN surfaces AS ours ON ours.invocation_key = this.key
JOIN invocations AS earlier ON earlier.tool_name = this.tool_name
    AND earlier.started_at <= this.started_at
    AND (earlier.started_at < this.started_at OR earlier.key < this.key)
JOIN surfaces AS theirs
    ON theirs.invocation_key = earlier.key AND theirs.arguments = ours.arguments
WHERE this.id = ? ORDER BY earlier.started_at DESC, earlier.key DESC LIMIT ?"""

_NEXT: Final = f"""invocations.key IN (
SELECT invocations.key FROM invocations JOIN sessions ON sessions.key = invocations.session_key
WHERE sessions.id = ? AND invocations.seq > ? ORDER BY invocations.seq LIMIT {_AT_ONCE})"""


def same_call_before(reader: Reader, call: InvocationDetail) -> InvocationDetail:
    """The newest call before this one with the same tool and arguments, in any session.

    Raises `NotFoundError` if there is none.
    """
    with reader.database.read() as connection:
        for row in fetch(connection, Sql(_SAME_BEFORE, (call.summary.id, _MOST_CANDIDATES))):
            (found,) = details_of(connection, Sql("invocations.key = ?", (row[0],)))
            if found.arguments == call.arguments and found.damage is None:
                return found
    raise NotFoundError(
        f"no call of {call.summary.tool_name} before invocation {call.summary.id} has the same"
        " arguments; name two invocations to compare different ones"
    )


def calls_of(reader: Reader, session: UUID) -> Iterator[InvocationDetail]:
    """The calls of a session in order, read a few at a time. A damaged call has `damage`."""
    last = -1
    while True:
        with reader.database.read() as connection:
            found = details_of(connection, Sql(_NEXT, (session, last)))
        yield from found
        if len(found) < _AT_ONCE:
            return
        last = found[-1].summary.seq
