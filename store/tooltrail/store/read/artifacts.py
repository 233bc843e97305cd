"""Artifacts that the store knows, by path, and who refers to them.

The path of an artifact follows from its digest, so the order of paths is the order of digests.
"""

import re
from typing import Final
from uuid import UUID

from tooltrail.artifacts.paths import artifact_path, digest_of_path
from tooltrail.records.digests import ALGORITHM, Digest
from tooltrail.store.engines.connection import Connection
from tooltrail.store.read.columns import Columns, damage_of, make_view
from tooltrail.store.read.rows import Row, Sql, check_limit, fetch, joined, limited, where
from tooltrail.store.views import ArtifactView

_ARTIFACT: Final = Columns("artifacts: key digest size stored_size line_count created_at")
_OWNER: Final = Columns("invocations: id")
_USES: Final = ("streams", "invocation_artifacts")
_DIGITS: Final = 64
_HEX: Final = re.compile(r"[0-9a-f]{0,64}")


def list_artifacts(
    connection: Connection,
    *,
    invocation: UUID | None,
    session: UUID | None,
    beginning: str | None,
    limit: int | None,
    cursor: str | None,
) -> list[ArtifactView]:
    """See `Reader.artifacts`."""
    check_limit(limit)
    conditions: list[Sql] = []
    if beginning is not None:
        digits = _digits_of(beginning)
        if digits is None:
            return []
        ends = tuple(bytes.fromhex(digits.ljust(_DIGITS, one)) for one in "0f")
        conditions.append(Sql("artifacts.digest BETWEEN ? AND ?", ends))
    if cursor is not None:
        conditions.append(Sql("artifacts.digest > ?", (connection.sha(digest_of_path(cursor)),)))
    used: list[Sql] = []
    if invocation is not None:
        used.append(Sql("invocations.id = ?", (invocation,)))
    if session is not None:
        key = "(SELECT key FROM sessions WHERE id = ?)"
        used.append(Sql(f"invocations.session_key = {key}", (session,)))
    if used:
        mine = "JOIN invocations ON invocations.key = used.invocation_key"
        uses = (Sql(f"SELECT used.digest FROM {one} AS used {mine}") + where(used) for one in _USES)
        conditions.append(Sql("artifacts.digest IN (") + joined(" UNION ALL ", uses) + ")")
    query = Sql(f"SELECT {_ARTIFACT.sql} FROM artifacts") + where(conditions)
    query += Sql(" ORDER BY artifacts.digest") + limited(limit)
    return [_view(row) for row in fetch(connection, query)]


def artifact_owners(connection: Connection, path: str) -> list[UUID]:
    """See `Reader.artifact_owners`."""
    owned = "invocations.key IN (SELECT invocation_key FROM {} WHERE digest = ?)"
    refers = " OR ".join(owned.format(one) for one in _USES)
    order = "ORDER BY invocations.started_at, invocations.key"
    query = f"SELECT {_OWNER.sql} FROM invocations WHERE {refers} {order}"
    rows = fetch(connection, Sql(query, (connection.sha(digest_of_path(path)),) * len(_USES)))
    return [_OWNER.read(row)[0]["id"] for row in rows]


def _digits_of(path: str) -> str | None:
    """The digits with which the digest begins where the path begins so; None for no path."""
    if f"{ALGORITHM}/".startswith(path):
        return ""
    folder, _, name = path.removeprefix(f"{ALGORITHM}/").partition("/")
    digits = max(folder, name.partition(".")[0], key=len)
    if not _HEX.fullmatch(digits):
        return None
    first = artifact_path(Digest(f"{ALGORITHM}:{digits.ljust(_DIGITS, '0')}"))
    return digits if first.startswith(path) else None


def _view(row: Row) -> ArtifactView:
    values, problems = _ARTIFACT.read(row)
    path, damage = artifact_path(values["digest"]), damage_of("artifacts", values["key"], problems)
    return make_view(ArtifactView, values, path=path, damage=damage)
