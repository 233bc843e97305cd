"""Reads agent runs: legs with all submissions, versions of agents, accepted results.

Every function raises `UnavailableError` if the store cannot be reached, and `DamageError` if
something that it reads is damaged. A list with `on_error` goes on: it skips a row that cannot be
read, and passes the error to `on_error`.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeAlias, TypeVar
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
    TooltrailError,
    canonical_json,
    read_leg_fact,
)
from tooltrail.records.frozen import Frozen
from tooltrail.store.engines.connection import Connection
from tooltrail.store.engines.values import LEAST_KEY
from tooltrail.store.read.bodies import Body, load_bodies
from tooltrail.store.read.columns import (
    Columns,
    Computed,
    first_line,
    make_view,
    refuse_damage,
)
from tooltrail.store.read.reader import Reader
from tooltrail.store.read.rows import Sql, fetch, fetch_each, where
from tooltrail.store.references import expand_canonical

OnError: TypeAlias = Callable[[TooltrailError], object]
Fact = TypeVar("Fact", LegStarted, LegEnded)

PAGE: Final = 200
"""Legs that one transaction reads."""

SUBMISSION: Final = "submit_result"
"""The name of the tool whose calls are submissions."""

_FAMILY: Final = "structured_output"
"""The family of submissions."""

_ATTEMPT: Final = Columns(
    Computed("invocations.session_key", "session_key", "integer"),
    Computed("invocations.state", "state", "state"),
    "invocations: id family",
    optional=("surfaces: canonical receipt",),
)
_ATTEMPTS: Final = f"""
SELECT {_ATTEMPT.sql} FROM invocations
LEFT JOIN surfaces ON surfaces.invocation_key = invocations.key
WHERE invocations.tool_name = '{SUBMISSION}' AND """

_LEG: Final = Columns(
    Computed("l.message_key", "key", "integer"),
    Computed("l.session_key", "session_key", "integer"),
    Computed("s.id", "session_id", "id"),
    Computed("l.started_at", "started_at", "time"),
    Computed("m.document", "started", "digest"),
    optional=(Computed("e.document", "ended", "digest"),),
)

# If a leg has several outcomes, the first one counts.
_LEGS: Final = f"""
SELECT {_LEG.sql} FROM agent_legs AS l
LEFT JOIN sessions AS s ON s.key = l.session_key
LEFT JOIN messages AS m ON m.key = l.message_key
LEFT JOIN messages AS e ON e.key = (
    SELECT min(o.message_key) FROM agent_outcomes AS o WHERE o.session_key = l.session_key)"""

_VERSION: Final = Columns(
    Computed("min(message_key)", "key", "integer"),
    Computed("agent", "digest", "digest"),
    Computed("agent_id", "agent_id", "text"),
    Computed("min(started_at)", "created_at", "time"),
    optional=(Computed("min(agent_version)", "version", "text"),),
)


@dataclass(frozen=True, slots=True)  # pydantic validates it
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
    attempt: int | None = None
    valid: bool | None = None
    errors: tuple[SchemaViolation, ...] = ()
    error_count: int = 0


_ATTEMPT_VIEW: Final = TypeAdapter(AttemptView)


class LegView(Frozen):
    """One leg of an agent run, with its submissions. A leg is a session.

    `ended` is None until the end is recorded.
    """

    session_id: UUID
    started_at: datetime
    started: LegStarted
    ended: LegEnded | None
    attempts: tuple[AttemptView, ...]


class AgentVersionView(Frozen):
    """One version of an agent, first run at `created_at`; see `tooltrail.records.AgentVersion`."""

    digest: Digest
    agent_id: str
    version: str | None
    document: str
    created_at: datetime


def iter_legs(
    reader: Reader,
    *,
    agent: str | None = None,
    since: datetime | None = None,
    on_error: OnError | None = None,
) -> Iterator[LegView]:
    """The legs of an agent, or of all, that began at a time or later. Uses constant memory.

    The oldest leg comes first.
    """
    asked = {"l.agent_id = ?": agent, "l.started_at >= ?": since}
    conditions = [Sql(one, (value,)) for one, value in asked.items() if value is not None]
    after = LEAST_KEY
    while True:
        behind = Sql("l.message_key > ?", (after,))
        page = Sql(_LEGS) + where([behind, *conditions]) + f" ORDER BY l.message_key LIMIT {PAGE}"
        with reader.database.read() as connection:
            legs = [_LEG.read(row) for row in fetch(connection, page)]
            documents = (one[name] for one, _ in legs for name in ("started", "ended"))
            bodies = load_bodies(connection, (one for one in documents if one is not None))
            attempts = _attempts(connection, [values["session_key"] for values, _ in legs])
        views: list[LegView] = []
        for values, problems in legs:
            try:
                refuse_damage("agent_legs", values["key"], problems)
                views.append(_leg_view(values, bodies, attempts[values["session_key"]]))
            except (DamageError, NotFoundError) as error:
                _pass(error, on_error)
        yield from views
        if len(legs) < PAGE or legs[-1][0]["key"] <= after:  # a key that is no number is read as 0
            return
        after = legs[-1][0]["key"]


def agent_versions(
    reader: Reader,
    agent: str | None = None,
    *,
    beginning: str = "",
    on_error: OnError | None = None,
) -> list[AgentVersionView]:
    """The versions of one agent, or of all, that were run; ordered by agent, then by time.

    Only those whose digests begin with `beginning`.
    """
    query = Sql(f"SELECT {_VERSION.sql} FROM agent_legs")
    only = [] if agent is None else [Sql("agent_id = ?", (agent,))]
    order = " GROUP BY agent, agent_id ORDER BY agent_id, min(started_at), agent"
    with reader.database.read() as connection:
        rows = [_VERSION.read(row) for row in fetch(connection, query + where(only) + order)]
        rows = [row for row in rows if row[0]["digest"].startswith(beginning)]
        bodies = load_bodies(connection, (values["digest"] for values, _ in rows))
    found: list[AgentVersionView] = []
    for values, problems in rows:
        try:
            refuse_damage("agent_legs", values["key"], problems)
            document = _text_of(bodies[values["digest"]], values["key"])
            found.append(make_view(AgentVersionView, values, document=document))
        except (DamageError, NotFoundError) as error:
            _pass(error, on_error)
    return found


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
        raise AmbiguousNameError(name, [one.digest for one in found])
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


def _pass(error: TooltrailError, on_error: OnError | None) -> None:
    """Pass the error of a row to `on_error`; raise it if there is no such function."""
    if on_error is None:
        raise error
    on_error(error)


def _leg_view(
    values: Mapping[str, Any],
    bodies: Mapping[Digest, Body],
    attempts: Sequence[tuple[Mapping[str, Any], Sequence[str]]],
) -> LegView:
    ended = values["ended"]
    return LegView(
        values["session_id"],
        values["started_at"],
        _fact(bodies[values["started"]], values["key"], LegStarted),
        None if ended is None else _fact(bodies[ended], values["key"], LegEnded),
        tuple(_attempt_view(*one) for one in attempts),
    )


def _text_of(body: Body, key: int) -> str:
    """The text of a body that a row of `agent_legs` names."""
    try:
        return body.read().decode()
    except (DamageError, UnicodeDecodeError) as error:
        raise _damage(key, str(error)) from error


def _damage(key: int, problem: str) -> DamageError:
    return DamageError(f"row {key} of agent_legs is damaged: {problem}", path="agent_legs")


def _fact(body: Body, key: int, kind: type[Fact]) -> Fact:
    """Read the fact about a leg from a body."""
    try:
        fact = read_leg_fact(_text_of(body, key))
    except InvalidRecordError as error:
        raise _damage(key, str(error)) from error
    if not isinstance(fact, kind):
        raise _damage(key, f"its document is not a {kind.__name__}")
    return fact


def _attempts(
    connection: Connection, sessions: Sequence[int]
) -> Mapping[int, list[tuple[Mapping[str, Any], Sequence[str]]]]:
    """The submissions of some sessions with their problems, by the key of the session."""
    found = defaultdict[int, list[tuple[Mapping[str, Any], Sequence[str]]]](list)
    order = " ORDER BY invocations.session_key, invocations.seq"
    for row in fetch_each(connection, Sql(_ATTEMPTS), "invocations.session_key", sessions, order):
        values, problems = _ATTEMPT.read(row)
        found[values["session_key"]].append((values, problems))
    return found


def _attempt_view(values: Mapping[str, Any], problems: Sequence[str]) -> AttemptView:
    refuse_damage("invocations", values["id"], problems)
    call, canonical = {"invocation_id": values["id"], "state": values["state"]}, values["canonical"]
    if values["family"] != _FAMILY or canonical is None:
        return AttemptView(**call)
    try:
        shown = expand_canonical(canonical, (values["receipt"] or "").encode())
        result: dict[str, Any] = json.loads(shown)["result"] or {}
        given = {name: one for name, one in result.items() if one is not None}
        return _ATTEMPT_VIEW.validate_python({**given, **call})
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        problem = f"the verdict of call {values['id']} is damaged: {first_line(error)}"
        raise DamageError(problem, path="surfaces") from error
