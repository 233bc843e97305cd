"""Artifacts that the store knows, by path, and who refers to them.

The path of an artifact follows from its digest, so the order of paths is the order of digests.
"""

import re
from typing import Final
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Select, Table, and_, or_, select

from tooltrail.artifacts import artifact_path, digest_of_path
from tooltrail.records import Digest
from tooltrail.records.digests import ALGORITHM
from tooltrail.store.read.pages import check_limit
from tooltrail.store.read.rows import AnyRow, AnySelect, Columns, damage_of, fetch
from tooltrail.store.schema import artifacts, invocation_artifacts, invocations, sessions, streams
from tooltrail.store.views import ArtifactView

_ARTIFACT: Final = Columns(
    artifacts.c.key,
    artifacts.c.digest,
    artifacts.c.size,
    artifacts.c.stored_size,
    artifacts.c.line_count,
    artifacts.c.created_at,
)
_OWNER: Final = Columns(invocations.c.id)
_DIGITS: Final = 64
_BEGINNING: Final = re.compile(
    rf"{ALGORITHM}/(?:([0-9a-f]{{0,2}})|([0-9a-f]{{2}})/([0-9a-f]{{0,64}})(\.z?s?t?)?)"
)
"""A beginning of the path of an artifact: `sha256/ab/abcdef….zst`."""


def select_artifacts(
    *,
    used: ColumnElement[bool] | None = None,
    beginning: str | None = None,
    limit: int | None = None,
    after: Digest | None = None,
) -> AnySelect | None:
    """Artifacts by path; None where no path begins so.

    Args:
        used: those alone to which invocations of this condition refer.
        beginning: of the path.
        limit: at most so many.
        after: digest of the last one of the page before.
    """
    digest = artifacts.c.digest
    query = select(*_ARTIFACT.selected).order_by(digest).limit(limit)
    if beginning is not None:
        fitting = digests_beginning(beginning)
        if fitting is None:
            return None
        query = query.where(digest.between(*fitting))
    if after is not None:
        query = query.where(digest > after)
    if used is not None:
        query = query.where(
            or_(*(digest.in_(_used(table, used)) for table in (streams, invocation_artifacts)))
        )
    return query


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
    used: list[ColumnElement[bool]] = []
    if invocation is not None:
        used.append(invocations.c.id == invocation)
    if session is not None:
        key = select(sessions.c.key).where(sessions.c.id == session).scalar_subquery()
        used.append(invocations.c.session_key == key)
    query = select_artifacts(
        used=and_(*used) if used else None,
        beginning=beginning,
        limit=limit,
        after=None if cursor is None else digest_of_path(cursor),
    )
    return [] if query is None else [_view(row) for row in fetch(connection, query)]


def select_owners(digest: Digest) -> AnySelect:
    """The ids of the invocations that refer to an artifact, the oldest first."""
    owners = (
        select(table.c.invocation_key).where(table.c.digest == digest)
        for table in (streams, invocation_artifacts)
    )
    is_owner = or_(*(invocations.c.key.in_(one) for one in owners))
    row = invocations.c
    return select(*_OWNER.selected).where(is_owner).order_by(row.started_at, row.key)


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


def _used(table: Table, which: ColumnElement[bool]) -> Select[Digest]:
    mine = invocations.c.key == table.c.invocation_key
    return select(table.c.digest).join(invocations, mine).where(which)


def _view(row: AnyRow) -> ArtifactView:
    problems: list[str] = []
    key, digest, *values = _ARTIFACT.read(row, problems)
    values.append(damage_of(artifacts.name, key, problems))
    return ArtifactView(artifact_path(digest), digest, *values)
