"""Who refers to an artifact: every column that does, asked for many paths at once."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from sqlalchemy import CompoundSelect, Connection, func, select, union

from tooltrail.artifacts import digest_of_path
from tooltrail.records import InvalidRecordError
from tooltrail.store.tables import ArtifactRow, InvocationArtifactRow, OutputStreamRow

Item = TypeVar("Item")

ASKED_AT_ONCE = 500
"""Paths in one question: far below what either engine takes as parameters."""


def referenced(connection: Connection, paths: Sequence[str]) -> set[str]:
    """Which of several artifact paths a row of the store holds.

    A row of `artifacts` is enough: it is committed with the reference, and foreign keys let no
    reference be without it. The others are asked all the same, since they are what would dangle.
    """
    digests = [digest_of_path(path) for path in paths]
    query: CompoundSelect[str | None] = union(
        select(ArtifactRow.path).where(ArtifactRow.path.in_(paths)),
        select(InvocationArtifactRow.path).where(InvocationArtifactRow.path.in_(paths)),
        # By digest first, which has an index.
        select(OutputStreamRow.artifact_path).where(
            OutputStreamRow.digest.in_(digests), OutputStreamRow.artifact_path.in_(paths)
        ),
    )
    return {str(path) for path in connection.scalars(query)}


def artifact_count(connection: Connection) -> int:
    """How many artifacts the store refers to."""
    return connection.scalars(select(func.count()).select_from(ArtifactRow)).one()


def is_artifact(path: str) -> bool:
    """Whether an object of a sink has the path of an artifact."""
    try:
        digest_of_path(path)
    except InvalidRecordError:
        return False
    return True


def in_chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """The same items in lists of so many; the last may be shorter."""
    rest = iter(items)
    while chunk := list(islice(rest, size)):
        yield chunk
