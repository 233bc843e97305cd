"""Reading agent runs: their legs with all submissions, versions of agents, accepted results."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, cast
from uuid import UUID

from pydantic import JsonValue, TypeAdapter, ValidationError

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
from tooltrail.store.engines.values import digest_from, moment_of
from tooltrail.store.read.bodies import load_bodies
from tooltrail.store.read.reader import Reader
from tooltrail.store.read.rows import Row, Sql, fetch, where

PAGE: Final = 200
"""Legs that are read at once."""

SUBMISSION: Final = "submit_result"
"""The name of the tool whose calls are submissions."""

_LEGS: Final = """
SELECT l.message_key, l.session_key, s.id, l.started_at, m.document FROM agent_legs AS l
JOIN sessions AS s ON s.key = l.session_key JOIN messages AS m ON m.key = l.message_key"""

_ERRORS: Final = TypeAdapter(tuple[SchemaViolation, ...])


@dataclass(frozen=True, slots=True)
class AttemptView:
    """One submission of a result.

    Attributes:
        invocation_id: of the call.
        state: of the call; `error` when its arguments could not be read.
        attempt: its number, from 1; None where there is no verdict.
        valid: the verdict; None where there is none.
        errors: ways in which the schema was broken, as many as the canonical result lists.
        error_count: of all of them.
    """

    invocation_id: UUID
    state: InvocationState
    attempt: int | None
    valid: bool | None
    errors: tuple[SchemaViolation, ...]
    error_count: int


@dataclass(frozen=True, slots=True)
class LegView:
    """One leg of an agent run.

    Attributes:
        session_id: that the leg is.
        started_at: when it began, aware UTC.
        started: how it began.
        ended: how it ended; None until that is recorded.
        attempts: submissions, in their order.
    """

    session_id: UUID
    started_at: datetime
    started: LegStarted
    ended: LegEnded | None
    attempts: tuple[AttemptView, ...]


@dataclass(frozen=True, slots=True)
class AgentVersionView:
    """One version of an agent.

    Attributes:
        digest: of its description.
        agent_id: the same for all its versions.
        version: what its author calls it.
        document: canonical JSON of its description.
        created_at: when it was first run, aware UTC.
    """

    digest: Digest
    agent_id: str
    version: str | None
    document: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class AcceptedValue:
    """A result that was submitted and accepted.

    Attributes:
        invocation_id: of the submission.
        schema_digest: of the schema that accepted it.
        value: the result.
    """

    invocation_id: UUID
    schema_digest: Digest
    value: JsonValue


def iter_legs(
    reader: Reader,
    *,
    agent: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Iterator[LegView]:
    """The legs that began in a time, the oldest first; at constant memory.

    Args:
        reader: of the store.
        agent: the id of one agent; all agents when None.
        since: aware; from the first leg on when None.
        until: aware, itself not included; to the last leg when None.

    Raises:
        UnavailableError: the store cannot be reached.
        DamageError: what is stored of a leg cannot be read.
    """
    after = 0
    while True:
        with reader.database.read() as connection:
            legs = _legs(connection, after, agent, since, until)
            views = _leg_views(connection, legs)
        yield from views
        if len(legs) < PAGE:
            return
        after = legs[-1][0]


def agent_versions(reader: Reader, agent: str | None = None) -> list[AgentVersionView]:
    """The versions of agents that were run, by agent and then by time.

    Args:
        reader: of the store.
        agent: the id of one agent; all agents when None.

    Raises:
        UnavailableError: the store cannot be reached.
        DamageError: a version is not what its digest names.
    """
    with reader.database.read() as connection:
        return _version_views(connection, _versions(connection, agent))


def agent_version(reader: Reader, name: str) -> AgentVersionView:
    """One version of an agent.

    Args:
        reader: of the store.
        name: its digest, or a unique beginning of the digest; `sha256:` may be left out.

    Raises:
        NotFoundError: no version has this name; AmbiguousNameError: several have.
        UnavailableError: the store cannot be reached.
        DamageError: the version is not what its digest names.
    """
    part = name if name.startswith("sha256:") else f"sha256:{name}"
    with reader.database.read() as connection:
        found = [one for one in _versions(connection, None) if digest_from(one[0]).startswith(part)]
        if not found:
            raise NotFoundError(f"no version of an agent is named {name!r}")
        if len(found) > 1:
            raise AmbiguousNameError(name, [digest_from(one[0]) for one in found[:2]])
        return _version_views(connection, found)[0]


def iter_accepted_values(reader: Reader, agent: str) -> Iterator[AcceptedValue]:
    """Every result of an agent that was accepted, the oldest first; each is read as a whole.

    Args:
        reader: of the store.
        agent: its id.

    Raises:
        UnavailableError: the store, or where a large result is kept, cannot be reached.
        DamageError: a result is not what was stored.
    """
    for leg in iter_legs(reader, agent=agent):
        for attempt in leg.attempts:
            if attempt.valid and leg.started.schema_digest is not None:
                value = _value(reader, attempt.invocation_id)
                yield AcceptedValue(attempt.invocation_id, leg.started.schema_digest, value)


def _legs(
    connection: Connection,
    after: int,
    agent: str | None,
    since: datetime | None,
    until: datetime | None,
) -> Sequence[Row]:
    """Key, session, time and document of a page of legs."""
    conditions = [Sql("l.message_key > ?", (after,))]
    if agent is not None:
        conditions.append(Sql("l.agent_id = ?", (agent,)))
    if since is not None:
        conditions.append(Sql("l.started_at >= ?", (since,)))
    if until is not None:
        conditions.append(Sql("l.started_at < ?", (until,)))
    page = f" ORDER BY l.message_key LIMIT {PAGE}"
    return fetch(connection, Sql(_LEGS) + where(conditions) + page)


def _leg_views(connection: Connection, legs: Sequence[Row]) -> list[LegView]:
    sessions = [leg[1] for leg in legs]
    ends = connection.query_each(
        "SELECT o.session_key, m.document FROM agent_outcomes AS o"
        " JOIN messages AS m ON m.key = o.message_key WHERE o.session_key IN (?)"
        " ORDER BY o.message_key DESC",
        sessions,
    )
    facts = _facts(connection, [leg[4] for leg in legs] + [end[1] for end in ends])
    outcomes = {key: facts[bytes(document)] for key, document in ends}  # the first one counts
    attempts = _attempts(connection, sessions)
    views: list[LegView] = []
    for _, key, session, started_at, document in legs:
        started, ended = facts[bytes(document)], outcomes.get(key)
        if not isinstance(started, LegStarted):
            raise DamageError("the beginning of a leg is damaged", path="agent_legs")
        if not isinstance(ended, LegEnded | None):
            raise DamageError("the outcome of a leg is damaged", path="agent_outcomes")
        session_id = connection.read_uuid(session)
        views.append(LegView(session_id, moment_of(started_at), started, ended, attempts[key]))
    return views


def _facts(connection: Connection, digests: Sequence[Any]) -> dict[bytes, LegStarted | LegEnded]:
    """The facts about legs that bodies hold, by the digest as it is stored."""
    names = {bytes(one): digest_from(one) for one in digests}
    bodies = load_bodies(connection, names.values())
    try:
        return {one: read_leg_fact(bodies[name].read().decode()) for one, name in names.items()}
    except (InvalidRecordError, UnicodeDecodeError) as error:
        raise DamageError(
            f"a fact of an agent run is damaged: {error}", path="agent_legs"
        ) from error


def _attempts(
    connection: Connection, sessions: Sequence[int]
) -> Mapping[int, tuple[AttemptView, ...]]:
    rows = connection.query_each(
        "SELECT i.session_key, i.id, i.state, v.attempt, v.valid, v.document FROM invocations AS i"
        " LEFT JOIN structured_outputs AS v ON v.invocation_key = i.key"
        f" WHERE i.tool_name = '{SUBMISSION}' AND i.session_key IN (?)"
        " ORDER BY i.session_key, i.seq",
        sessions,
    )
    found: defaultdict[int, tuple[AttemptView, ...]] = defaultdict(tuple)
    for key, call, state, attempt, valid, document in rows:
        verdict = None if valid is None else bool(valid)
        errors = _errors(document)
        found[key] += (AttemptView(connection.read_uuid(call), state, attempt, verdict, *errors),)
    return found


def _errors(document: object) -> tuple[tuple[SchemaViolation, ...], int]:
    """The errors of a verdict that are listed, and how many there are in all.

    Raises:
        DamageError: they cannot be read.
    """
    if document is None:
        return (), 0
    try:
        verdict = cast("dict[str, Any]", canonical_json.decode(cast("str", document)))
        return _ERRORS.validate_python(verdict["errors"]), int(verdict["error_count"])
    except (ValidationError, ValueError, TypeError, KeyError) as error:
        raise DamageError(f"a verdict is damaged: {error}", path="structured_outputs") from error


def _versions(connection: Connection, agent: str | None) -> Sequence[Row]:
    """Digest, agent, version and first time of each version that was run."""
    found = Sql("SELECT agent, agent_id, min(agent_version), min(started_at) FROM agent_legs")
    only = [] if agent is None else [Sql("agent_id = ?", (agent,))]
    order = " GROUP BY agent, agent_id ORDER BY agent_id, min(started_at), agent"
    return fetch(connection, found + where(only) + order)


def _version_views(connection: Connection, versions: Sequence[Row]) -> list[AgentVersionView]:
    bodies = load_bodies(connection, (digest_from(one[0]) for one in versions))
    return [
        AgentVersionView(
            digest_from(digest),
            agent_id,
            version,
            bodies[digest_from(digest)].read().decode(),
            moment_of(created_at),
        )
        for digest, agent_id, version, created_at in versions
    ]


def _value(reader: Reader, invocation: UUID) -> Any:
    stream = reader.invocation(invocation).stream("value")
    if stream is None:
        raise DamageError(f"submission {invocation} has no value", path=str(invocation))
    with reader.open_stream(stream) as source:
        return canonical_json.decode(source.read())
