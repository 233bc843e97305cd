"""Who refers to an artifact: every table that names one, asked for many digests at once."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, TypeVar

from tooltrail.artifacts import digest_of_path
from tooltrail.records.digests import Digest
from tooltrail.records.errors import InvalidRecordError
from tooltrail.store.engines.connection import Connection
from tooltrail.store.engines.values import digest_from

Item = TypeVar("Item")

ASKED_AT_ONCE: Final = 500
"""Paths in one question: far below what either engine takes as parameters."""

_TABLES: Final = ("artifacts", "streams", "invocation_artifacts", "pending_artifacts")


def referenced(connection: Connection, paths: Iterable[str]) -> set[str]:
    """Which of several artifact paths a row of the store refers to.

    In a sound store each one is in `artifacts` or `pending_artifacts`. The other tables are what
    would dangle in a damaged one.
    """
    paths_of = {digest_of_path(path): path for path in paths}
    asked = [connection.sha(digest) for digest in paths_of]
    found: set[Digest] = set()
    for table in _TABLES:
        sql = f"SELECT digest FROM {table} WHERE digest IN (?)"  # noqa: S608  a constant
        found |= {digest_from(digest) for (digest,) in connection.query_each(sql, asked)}
    return {paths_of[digest] for digest in found}


def artifact_count(connection: Connection) -> int:
    """How many artifacts the store refers to."""
    return int(connection.query("SELECT count(*) FROM artifacts")[0][0])


def is_artifact(path: str) -> bool:
    """Whether an object of a sink has the path of an artifact."""
    try:
        digest_of_path(path)
    except InvalidRecordError:
        return False
    return True


def in_chunks(items: Iterable[Item], size: int = ASKED_AT_ONCE) -> Iterator[Sequence[Item]]:
    """The same items in lists of so many; the last may be shorter."""
    rest = iter(items)
    while chunk := list(islice(rest, size)):
        yield chunk
