"""Calls that were repeated: the same tool with the same arguments, again in the same session."""

from typing import Final

from tooltrail.records.frozen import Frozen
from tooltrail.store.engines.connection import Connection
from tooltrail.store.filters import InvocationFilter
from tooltrail.store.read.conditions import conditions_of
from tooltrail.store.read.pages import SMALL, invocation_view
from tooltrail.store.read.rows import Sql, check_limit, fetch, limited, where
from tooltrail.store.views import InvocationView

# A call whose arguments were erased is no repetition of another one.
_MATCHING: Final = """
WITH matching AS (
    SELECT invocations.key AS key, invocations.started_at AS started_at,
        min(invocations.key) OVER same AS first_key, count(*) OVER same AS attempts
    FROM invocations JOIN surfaces ON surfaces.invocation_key = invocations.key
"""
_NEWEST: Final = """
    WINDOW same AS (
        PARTITION BY invocations.session_key, invocations.tool_name, surfaces.arguments
    )
), newest AS (
    SELECT first_key, max(started_at) AS last_at FROM matching
    WHERE attempts > 1 GROUP BY first_key ORDER BY last_at DESC, first_key DESC
"""
_ATTEMPTS: Final = f""")
SELECT {SMALL.sql}, newest.first_key FROM newest
JOIN matching ON matching.first_key = newest.first_key
JOIN invocations ON invocations.key = matching.key
LEFT JOIN sessions ON sessions.key = invocations.session_key
ORDER BY newest.last_at DESC, newest.first_key DESC, invocations.seq"""


class Retried(Frozen):
    """A call that was made several times in one session, with the same arguments byte for byte.

    Attributes:
        attempts: each of its invocations in the order of the session, at least two.
    """

    attempts: tuple[InvocationView, ...]

    @property
    def outcomes(self) -> tuple[str, ...]:
        """The outcome of each attempt."""
        return tuple(one.outcome for one in self.attempts)

    @property
    def is_changed(self) -> bool:
        """Whether not all attempts had the same outcome."""
        return len({*self.outcomes}) > 1


def retried_calls(
    connection: Connection, filters: InvocationFilter, limit: int | None
) -> list[Retried]:
    """See `Reader.retries`."""
    check_limit(limit)
    conditions = [*conditions_of(filters), Sql("surfaces.arguments IS NOT NULL")]
    query = Sql(_MATCHING) + where(conditions) + _NEWEST + limited(limit) + _ATTEMPTS
    found: dict[int, list[InvocationView]] = {}
    for row in fetch(connection, query):
        found.setdefault(row[-1], []).append(invocation_view(row))
    return [Retried(tuple(attempts)) for attempts in found.values()]
