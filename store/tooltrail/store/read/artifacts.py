"""Artifacts that the store knows, by path, and who refers to them.

The path of an artifact follows from its digest, so the order of paths is the order of digests.
"""

import re
from collections.abc import Sequence
from typing import Final
from uuid import UUID

from tooltrail.artifacts.paths import artifact_path, digest_of_path
from tooltrail.records.digests import ALGORITHM, Digest
from tooltrail.store.engines.connection import Connection
from tooltrail.store.read.pages import check_limit
from tooltrail.store.read.rows import (
    Columns,
    Row,
    Sql,
    damage_of,
    fetch,
    joined,
    limited,
    sha,
    where,
)
from tooltrail.store.views import ArtifactView

_ARTIFACT: Final = Columns(
    "artifacts.key",
    "artifacts.digest",
    "artifacts.size",
    "artifacts.stored_size",
    "artifacts.line_count",
    "artifacts.created_at",
)
_OWNER: Final = Columns("invocations.id")
_USES: Final = ("streams", "invocation_artifacts")
_DIGITS: Final = 64
_BEGINNING: Final = re.compile(
    rf"{ALGORITHM}/(?:([0-9a-f]{{0,2}})|([0-9a-f]{{2}})/([0-9a-f]{{0,64}})(\.z?s?t?)?)"
)
"""A beginning of the path of an artifact: `sha256/ab/abcdef….zst`."""


def select_artifacts(
    *,
    used: Sequence[Sql] = (),
    digests: tuple[Digest, Digest] | None = None,
    limit: int | None = None,
    after: Digest | None = None,
) -> Sql:
    """Artifacts by path.

    Args:
        used: those alone to which invocations of these conditions refer.
        digests: the least and the greatest digest.
        limit: at most so many.
        after: digest of the last one of the page before.
    """
    conditions: list[Sql] = []
    if digests is not None:
        conditions.append(Sql("artifacts.digest BETWEEN ? AND ?", tuple(map(sha, digests))))
    if after is not None:
        conditions.append(Sql("artifacts.digest > ?", (sha(after),)))
    if used:
        uses = joined(" UNION ALL ", (_used(table, used) for table in _USES))
        conditions.append(Sql("artifacts.digest IN (") + uses + ")")
    query = Sql(f"SELECT {_ARTIFACT.sql} FROM artifacts") + where(conditions)
    return query + " ORDER BY artifacts.digest" + limited(limit)


def list_artifacts(
    connection: Connection,
    *,
    invocation: UUID | None,
    session: UUID | None,
    beginning: str | None,
    limit: int | None,
    cursor: str | None,
) -> list[ArtifactView]:
    """Artifacts by path, of one invocation or session when one is given.

    Raises:
        InvalidRecordError: a limit below 1, or a cursor that is not the path of an artifact.
    """
    check_limit(limit)
    used: list[Sql] = []
    if invocation is not None:
        used.append(Sql("invocations.id = ?", (invocation,)))
    if session is not None:
        key = "(SELECT key FROM sessions WHERE id = ?)"
        used.append(Sql(f"invocations.session_key = {key}", (session,)))
    after = None if cursor is None else digest_of_path(cursor)
    digests = None if beginning is None else digests_beginning(beginning)
    if beginning is not None and digests is None:
        return []
    query = select_artifacts(used=used, digests=digests, limit=limit, after=after)
    return [_view(row) for row in fetch(connection, query)]


def select_owners(digest: Digest) -> Sql:
    """The ids of the invocations that refer to an artifact, the oldest first."""
    keys = " OR ".join(
        f"invocations.key IN (SELECT invocation_key FROM {table} WHERE digest = ?)"
        for table in _USES
    )
    order = "ORDER BY invocations.started_at, invocations.key"
    return Sql(f"SELECT {_OWNER.sql} FROM invocations WHERE {keys} {order}", (sha(digest),) * 2)


def artifact_owners(connection: Connection, path: str) -> list[UUID]:
    """The invocations that refer to an artifact, the oldest first; `NO_ID` for a damaged id.

    Raises:
        InvalidRecordError: not the path of an artifact.
    """
    rows = fetch(connection, select_owners(digest_of_path(path)))
    return [_OWNER.read(row, [])[0] for row in rows]


def digests_beginning(path: str) -> tuple[Digest, Digest] | None:
    """The least and the greatest digest whose artifact's path begins so; None where none does."""
    if f"{ALGORITHM}/".startswith(path):
        digits = ""
    else:
        found = _BEGINNING.fullmatch(path)
        if found is None:
            return None
        short, folder, name, ending = found.groups()
        digits = short if short is not None else max(folder, name, key=len)
        fits = short is not None or (digits.startswith(folder) and folder.startswith(name[:2]))
        if not fits or (ending and len(digits) != _DIGITS):
            return None
    return (
        Digest(f"{ALGORITHM}:{digits.ljust(_DIGITS, '0')}"),
        Digest(f"{ALGORITHM}:{digits.ljust(_DIGITS, 'f')}"),
    )


def _used(table: str, conditions: Sequence[Sql]) -> Sql:
    source = f"{table} AS used JOIN invocations ON invocations.key = used.invocation_key"
    return Sql(f"SELECT used.digest FROM {source}") + where(conditions)


def _view(row: Row) -> ArtifactView:
    problems: list[str] = []
    key, digest, *values = _ARTIFACT.read(row, problems)
    damage = damage_of("artifacts", key, problems)
    return ArtifactView(artifact_path(digest), digest, *values, damage=damage)
