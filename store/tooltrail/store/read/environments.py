"""Finds the environments in which calls ran, such as those of a folder.

An environment is a JSON document in a body, which the database may hold compressed. Many calls
share one. So values are compared here for each environment; SQL compares digests alone.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import Any, Final, cast

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
from tooltrail.store.read.rows import Sql, fetch

_ENVIRONMENT: Final = Columns("sessions: environment")
_ALL: Final = Sql(
    "SELECT environment FROM sessions UNION SELECT environment FROM invocations"
    " WHERE environment IS NOT NULL"
)


def read_environments(connection: Connection) -> dict[Digest, Mapping[str, Any]]:
    """The environments that can be read, each with its members."""
    read = [_ENVIRONMENT.read(row)[0]["environment"] for row in fetch(connection, _ALL)]
    bodies = load_bodies(connection, [one for one in read if one is not None])
    return {digest: members_of(body.data or b"") for digest, body in bodies.items()}


def members_of(environment: str | bytes | None) -> Mapping[str, Any]:
    """The members of an environment; empty if it is missing or damaged."""
    with suppress(ValueError, RecursionError):
        found = json.loads(environment or "")
        return cast("Mapping[str, Any]", found) if isinstance(found, dict) else {}
    return {}


def resolved(connection: Connection, expressions: Sequence[Expression]) -> Expression:
    """See `Reader.resolved`."""
    known = cache(partial(read_environments, connection))

    def changed(one: Expression) -> Expression:
        match one:
            case Every(parts) | Some(parts):
                return type(one)(tuple(map(changed, parts)))
            case Not(part):
                return Not(changed(part))
            case Comparison(name) if name in ENVIRONMENT:
                every = known().items()
                return RanIn(tuple(each for each, has in every if _is_true(one, has.get(name))))
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
