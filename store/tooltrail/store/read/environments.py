"""Finds the environments in which calls ran, such as those of a folder.

An environment is a JSON document in a body, which the database may hold compressed. Many calls
may share one. So values are compared here for each environment; SQL compares digests alone.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, Final, cast

from tooltrail.records.canonical_json import decode
from tooltrail.records.digests import Digest
from tooltrail.store.engines.connection import Connection
from tooltrail.store.expressions import (
    ENVIRONMENT,
    PRESENT,
    Comparison,
    Every,
    Expression,
    Not,
    RanIn,
    Some,
)
from tooltrail.store.read.bodies import load_bodies
from tooltrail.store.read.columns import Columns
from tooltrail.store.read.names import session_id
from tooltrail.store.read.rows import Sql, fetch

_ENVIRONMENT: Final = Columns("sessions: environment")
_AT_ONCE: Final = 1_000

_ALL: Final = Sql(
    "SELECT environment FROM sessions UNION SELECT environment FROM invocations"
    " WHERE environment IS NOT NULL"
)


def environments_where(
    connection: Connection, is_true: Callable[[Mapping[str, Any]], bool]
) -> tuple[Digest, ...]:
    """The environments for whose members a condition is true. A few are in memory at once."""
    read = (_ENVIRONMENT.read(row)[0]["environment"] for row in fetch(connection, _ALL))
    digests = (one for one in read if one is not None)
    found: list[Digest] = []
    while some := list(islice(digests, _AT_ONCE)):
        bodies = load_bodies(connection, some).items()
        found += (digest for digest, body in bodies if is_true(members_of(body.data)))
    return tuple(found)


def members_of(environment: str | bytes | None) -> Mapping[str, Any]:
    """The members of an environment; empty if it is missing or damaged."""
    with suppress(ValueError, RecursionError):
        found = decode(environment or "")
        return cast("Mapping[str, Any]", found) if isinstance(found, dict) else {}
    return {}


def resolved(connection: Connection, expressions: Sequence[Expression]) -> Expression:
    """See `Reader.resolved`."""

    def changed(one: Expression) -> Expression:
        match one:
            case Every(parts) | Some(parts):
                return type(one)(tuple(map(changed, parts)))
            case Not(part):
                return Not(changed(part))
            case Comparison(name) | RanIn(Comparison(name)) if name in ENVIRONMENT:
                comparison = one.comparison if isinstance(one, RanIn) else one
                return RanIn(
                    comparison,
                    environments_where(connection, lambda has: _is_true(comparison, has.get(name))),
                )
            case Comparison("session", _, str(name)):
                return one.replaced(value=session_id(connection, name))
            case _:
                return one

    return changed(expressions[0] if len(expressions) == 1 else Some(tuple(expressions)))


def _is_true(one: Comparison, value: object) -> bool:
    if not isinstance(value, str):
        return False
    wanted = str(one.value)
    return {"=": value == wanted, "!=": value != wanted, "~": wanted in value, PRESENT: True}[
        one.operator
    ]
