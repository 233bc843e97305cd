"""Reads agent runs: legs with all submissions, versions of agents, accepted results.

Every function raises `UnavailableError` if the store cannot be reached, and `DamageError` if
something that it reads is damaged.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeVar
from uuid import UUID

from pydantic import JsonValue, TypeAdapter

from tooltrail.records import (
    AmbiguousNameError,
    DamageError,
    Digest,
    InvalidRecordError,
    InvocationState,
    LegEnded,
    LegStarted,
    NotFoundError,
    SchemaViolation,
    canonical_json,
    read_leg_fact,
)
from tooltrail.store.engines.connection import Connection
from tooltrail.store.engines.values import digest_from, moment_of, uuid_from
from tooltrail.store.read.bodies import Body, load_bodies
from tooltrail.store.read.reader import Reader
from tooltrail.store.read.rows import Row, Sql, fetch, where

Fact = TypeVar("Fact", LegStarted, LegEnded)

PAGE: Final = 200
"""Legs that one transaction reads."""

SUBMISSION: Final = "submit_result"
"""The name of the tool whose calls are submissions."""

# If a leg has several outcomes, the first one counts.
_LEGS: Final = """
SELECT l.message_key, l.session_key, s.id, l.started_at, m.document, e.document
FROM agent_legs AS l
JOIN sessions AS s ON s.key = l.session_key
JOIN messages AS m ON m.key = l.message_key
LEFT JOIN messages AS e ON e.key = (
    SELECT min(o.message_key) FROM agent_outcomes AS o WHERE o.session_key = l.session_key)"""

_ATTEMPTS: Final = f"""
SELECT i.session_key, i.id, i.state, v.attempt, v.valid, v.document FROM invocations AS i
LEFT JOIN structured_outputs AS v ON v.invocation_key = i.key
WHERE i.tool_name = '{SUBMISSION}' AND i.session_key IN (?) ORDER BY i.session_key, i.seq"""


@dataclass(frozen=True, slots=True)
class _Errors:
    """The errors that a verdict lists, and the number of all errors."""

    errors: tuple[SchemaViolation, ...] = ()
    error_count: int = 0


_ERRORS: Final = TypeAdapter(_Errors)


@dataclass(frozen=True, slots=True)
class AttemptView:
    """One submission of a result.

    Attributes:
        state: state of the call; `error` if its arguments could not be read.
        attempt: number of the attempt, from 1; None if there is no verdict.
        valid: the verdict; None if there is none.
        errors: violations of the schema that the canonical result lists.
        error_count: number of all violations.
    """

    invocation_id: UUID
    state: InvocationState
    attempt: int | None
    valid: bool | None
    errors: tuple[SchemaViolation, ...]
    error_count: int


@dataclass(frozen=True, slots=True)
class LegView:
    """One leg of an agent run, with its submissions. A leg is a session.

    `ended` is None until the end is recorded.
    """

    session_id: UUID
    started_at: datetime
    started: LegStarted
    ended: LegEnded | None
    attempts: tuple[AttemptView, ...]


@dataclass(frozen=True, slots=True)
class AgentVersionView:
    """One version of an agent, first run at `created_at`; see `tooltrail.records.AgentVersion`."""

    digest: Digest
    agent_id: str
    version: str | None
    document: str
    created_at: datetime


def iter_legs(
    reader: Reader, *, agent: str | None = None, since: datetime | None = None
) -> Iterator[LegView]:
    """The legs of an agent, or of all, that began at a time or later. Uses constant memory.

    The oldest leg comes first.
    """
    asked = {"l.agent_id = ?": agent, "l.started_at >= ?": since}
    conditions = [Sql(one, (value,)) for one, value in asked.items() if value is not None]
    after = 0
    while True:
        behind = Sql("l.message_key > ?", (after,))
        page = Sql(_LEGS) + where([behind, *conditions]) + f" ORDER BY l.message_key LIMIT {PAGE}"
        with reader.database.read() as connection:
            legs = fetch(connection, page)
            views = _leg_views(connection, legs)
        yield from views
        if len(legs) < PAGE:
            return
        after = legs[-1][0]


def agent_versions(
    reader: Reader, agent: str | None = None, *, beginning: str = ""
) -> list[AgentVersionView]:
    """The versions of one agent, or of all, that were run; ordered by agent, then by time.

    Only those whose digests begin with `beginning`.
    """
    query = Sql("SELECT agent, agent_id, min(agent_version), min(started_at) FROM agent_legs")
    only = [] if agent is None else [Sql("agent_id = ?", (agent,))]
    order = " GROUP BY agent, agent_id ORDER BY agent_id, min(started_at), agent"
    with reader.database.read() as connection:
        rows = fetch(connection, query + where(only) + order)
        found = [(digest_from(row[0]), row) for row in rows]
        found = [one for one in found if one[0].startswith(beginning)]
        bodies = load_bodies(connection, (digest for digest, _ in found))
        return [
            AgentVersionView(
                digest, agent_id, version, bodies[digest].read().decode(), moment_of(created_at)
            )
            for digest, (_, agent_id, version, created_at) in found
        ]


def agent_version(reader: Reader, name: str) -> AgentVersionView:
    """One version of an agent, by its digest or a unique prefix of it.

    The prefix `sha256:` may be omitted. Raises `NotFoundError` or `AmbiguousNameError` if no
    version or several have this name.
    """
    part = name if name.startswith("sha256:") else f"sha256:{name}"
    found = agent_versions(reader, beginning=part)
    if not found:
        raise NotFoundError(f"no version of an agent is named {name!r}")
    if len(found) > 1:
        raise AmbiguousNameError(name, [one.digest for one in found[:2]])
    return found[0]


def iter_accepted_values(reader: Reader, agent: str) -> Iterator[tuple[UUID, JsonValue]]:
    """Every submitted result of an agent that fits its schema, and the id of the call.

    The oldest comes first. Each result is read into memory.
    """
    for leg in iter_legs(reader, agent=agent):
        for attempt in leg.attempts if leg.started.schema_digest is not None else ():
            if attempt.valid:
                call = attempt.invocation_id
                stream = reader.invocation(call).stream("value")
                if stream is None:
                    raise DamageError(f"submission {call} has no value", path=str(call))
                with reader.open_stream(stream) as source:
                    value: Any = canonical_json.decode(source.read())
                yield call, value


def _leg_views(connection: Connection, legs: Sequence[Row]) -> list[LegView]:
    documents = (one for leg in legs for one in leg[4:] if one is not None)
    bodies = load_bodies(connection, map(digest_from, documents))
    attempts = _attempts(connection, [leg[1] for leg in legs])
    return [
        LegView(
            uuid_from(session),
            moment_of(started_at),
            _fact(bodies, started, LegStarted),
            None if ended is None else _fact(bodies, ended, LegEnded),
            attempts[key],
        )
        for _, key, session, started_at, started, ended in legs
    ]


def _fact(bodies: Mapping[Digest, Body], document: bytes, kind: type[Fact]) -> Fact:
    """Read the fact about a leg from a body."""
    try:
        fact = read_leg_fact(bodies[digest_from(document)].read().decode())
    except (InvalidRecordError, UnicodeDecodeError) as error:
        message = f"a fact of an agent run is damaged: {error}"
        raise DamageError(message, path="agent_legs") from error
    if not isinstance(fact, kind):
        raise DamageError("a fact of an agent run is damaged: wrong kind", path="agent_legs")
    return fact


def _attempts(
    connection: Connection, sessions: Sequence[int]
) -> Mapping[int, tuple[AttemptView, ...]]:
    found: defaultdict[int, tuple[AttemptView, ...]] = defaultdict(tuple)
    for key, call, state, attempt, valid, document in connection.query_each(_ATTEMPTS, sessions):
        verdict = None if valid is None else bool(valid)
        try:
            said = _Errors() if document is None else _ERRORS.validate_json(document)
        except (ValueError, TypeError) as error:
            message = f"a verdict is damaged: {error}"
            raise DamageError(message, path="structured_outputs") from error
        errors = (said.errors, said.error_count)
        found[key] += (AttemptView(uuid_from(call), state, attempt, verdict, *errors),)
    return found
