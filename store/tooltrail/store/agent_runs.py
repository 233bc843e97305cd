"""Reading agent runs: their legs with all submissions, versions of agents, accepted results."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, cast
from uuid import UUID

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import Connection, Select, select

from tooltrail.records import (
    AmbiguousNameError,
    DamageError,
    DigestMismatchError,
    LegEnded,
    LegStarted,
    NotFoundError,
    SchemaViolation,
    canonical_json,
    digest_of,
)
from tooltrail.store._reading.legs import fact_of
from tooltrail.store.agent_views import AcceptedValue, AgentVersionView, AttemptView, LegView
from tooltrail.store.reader import Reader
from tooltrail.store.tables import (
    AgentLegRow,
    AgentOutcomeRow,
    AgentRow,
    InvocationRow,
    SessionRow,
    StructuredOutputRow,
)

PAGE = 200
"""Legs that are read at once."""

SUBMISSION = "submit_result"
"""The name of the tool whose calls are submissions."""

_ERRORS = TypeAdapter(tuple[SchemaViolation, ...])


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
        agent: the id of one agent; of all when None.
        since: aware; from the first on when None.
        until: aware, itself not included; to the last when None.

    Raises:
        UnavailableError: the store cannot be reached.
        DamageError: what is stored of a leg is not what was stored.
    """
    row = AgentLegRow
    query = (
        select(row.message_key, row.session_key, row.started_at, row.document, SessionRow.id)
        .join(SessionRow, SessionRow.key == row.session_key)
        .order_by(row.message_key)
        .limit(PAGE)
    )
    if agent is not None:
        query = query.where(row.agent_id == agent)
    if since is not None:
        query = query.where(row.started_at >= since)
    if until is not None:
        query = query.where(row.started_at < until)
    after = 0
    while True:
        with reader.database.read() as connection:
            legs = connection.execute(query.where(row.message_key > after)).all()
            keys = [leg.session_key for leg in legs]
            outcomes, attempts = _outcomes(connection, keys), _attempts(connection, keys)
        for leg in legs:
            started = fact_of(leg.document)
            if not isinstance(started, LegStarted):
                raise DamageError("the beginning of a leg is damaged", path="agent_legs")
            ended = outcomes.get(leg.session_key)
            yield LegView(leg.id, leg.started_at, started, ended, attempts[leg.session_key])
        if len(legs) < PAGE:
            return
        after = legs[-1].message_key


def _outcomes(connection: Connection, sessions: Sequence[int]) -> Mapping[int, LegEnded]:
    row = AgentOutcomeRow
    query = select(row.session_key, row.document).where(row.session_key.in_(sessions))
    found: dict[int, LegEnded] = {}
    for key, document in connection.execute(query.order_by(row.message_key)):
        fact = fact_of(document)
        if not isinstance(fact, LegEnded):
            raise DamageError("the outcome of a leg is damaged", path="agent_outcomes")
        found.setdefault(key, fact)
    return found


def _attempts(
    connection: Connection, sessions: Sequence[int]
) -> Mapping[int, tuple[AttemptView, ...]]:
    call, verdict = InvocationRow, StructuredOutputRow
    query = (
        select(
            call.session_key, call.id, call.state, verdict.attempt, verdict.valid, verdict.document
        )
        .outerjoin(verdict, verdict.invocation_key == call.key)
        .where(call.session_key.in_(sessions), call.tool_name == SUBMISSION)
        .order_by(call.session_key, call.seq)
    )
    found: defaultdict[int, tuple[AttemptView, ...]] = defaultdict(tuple)
    for row in connection.execute(query):
        errors, count = _errors(row.document)
        view = AttemptView(row.id, row.state, row.attempt, row.valid, errors, count)
        found[row.session_key] += (view,)
    return found


def _errors(document: object) -> tuple[tuple[SchemaViolation, ...], int]:
    """The errors of a verdict that are listed, and how many there are in all.

    Raises:
        DamageError: they cannot be read.
    """
    if document is None:
        return (), 0
    try:
        told = cast("dict[str, Any]", canonical_json.decode(cast("str", document)))
        return _ERRORS.validate_python(told["errors"]), int(told["error_count"])
    except (ValidationError, ValueError, TypeError, KeyError) as error:
        raise DamageError(f"a verdict is damaged: {error}", path="structured_outputs") from error


def agent_versions(reader: Reader, agent: str | None = None) -> list[AgentVersionView]:
    """The versions of agents that were run, by agent and then by time.

    Args:
        reader: of the store.
        agent: the id of one; all when None.

    Raises:
        UnavailableError: the store cannot be reached.
        DamageError: a version is not what its digest names.
    """
    query = _select_versions().order_by(AgentRow.agent_id, AgentRow.created_at, AgentRow.digest)
    if agent is not None:
        query = query.where(AgentRow.agent_id == agent)
    return _versions(reader, query)


def agent_version(reader: Reader, name: str) -> AgentVersionView:
    """One version of an agent.

    Args:
        reader: of the store.
        name: its digest, or a unique beginning of that; `sha256:` may be left out.

    Raises:
        NotFoundError: no version has this name; AmbiguousNameError: several have.
        UnavailableError: the store cannot be reached.
        DamageError: the version is not what its digest names.
    """
    part = name if name.startswith("sha256:") else f"sha256:{name}"
    row = AgentRow
    query = _select_versions().where(row.digest >= part, row.digest < f"{part}g").limit(2)
    found = _versions(reader, query.order_by(row.digest))
    if not found:
        raise NotFoundError(f"no version of an agent is named {name!r}")
    if len(found) > 1:
        digests = [one.digest for one in found]
        raise AmbiguousNameError(name, digests)
    return found[0]


def _select_versions() -> Select[*tuple[Any, ...]]:
    row = AgentRow
    return select(row.digest, row.agent_id, row.version, row.document, row.created_at)


def _versions(reader: Reader, query: Select[*tuple[Any, ...]]) -> list[AgentVersionView]:
    with reader.database.read() as connection:
        views = [AgentVersionView(*row) for row in connection.execute(query)]
    for view in views:
        document = cast("object", view.document)
        if not isinstance(document, str) or digest_of(document.encode()) != view.digest:
            raise DigestMismatchError(
                f"agent {view.agent_id} is not what its digest {view.digest} names",
                path=view.digest,
            )
    return views


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


def _value(reader: Reader, invocation: UUID) -> Any:
    stream = reader.invocation(invocation).stream("value")
    if stream is None:
        raise DamageError(f"submission {invocation} has no value", path=str(invocation))
    with reader.open_stream(stream) as source:
        return canonical_json.decode(source.read())
