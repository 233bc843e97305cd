"""The rows of artifacts: what is in the sink, and what waits for it."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from tooltrail.artifacts import StoredArtifact
from tooltrail.records.digests import Digest
from tooltrail.store.engines.connection import Connection
from tooltrail.store.engines.values import digest_from
from tooltrail.store.ingest.publishing import PendingArtifact


class StoredBody(NamedTuple):
    """A body as its row has it."""

    size: int
    encoding: str
    data: bytes | None


def write_stored(connection: Connection, stored: Iterable[StoredArtifact], at: datetime) -> None:
    """Insert the artifacts that are in the sink."""
    moment = connection.moment(at)
    connection.insert_once(
        "artifacts",
        [
            {
                "digest": connection.sha(one.digest),
                "size": one.size,
                "stored_size": one.stored_size,
                "line_count": one.line_count,
                "created_at": moment,
            }
            for one in sorted(stored, key=lambda one: one.digest)
        ],
    )


def write_pending(
    connection: Connection, journal_key: int, waiting: Iterable[PendingArtifact], at: datetime
) -> None:
    """Insert what waits for the sink. Content that waits already is not entered twice."""
    moment = connection.moment(at)
    connection.insert_once(
        "pending_artifacts",
        [
            {
                "digest": connection.sha(one.digest),
                "journal_key": journal_key,
                "spooled": connection.text(one.spooled),
                "role": connection.text(one.role),
                "size": one.size,
                "line_count": one.line_count,
                "reason": connection.text(one.reason),
                "noticed_at": moment,
            }
            for one in waiting
        ],
    )


def read_pending(connection: Connection, journal_key: int) -> list[PendingArtifact]:
    """What waits for the sink, of one journal."""
    rows = connection.query(
        "SELECT role, digest, size, line_count, spooled, reason FROM pending_artifacts"
        " WHERE journal_key = ? ORDER BY noticed_at, digest",
        (journal_key,),
    )
    return [
        PendingArtifact(role, digest_from(digest), size, line_count, spooled, reason)
        for role, digest, size, line_count, spooled, reason in rows
    ]


def delete_pending(connection: Connection, journal_key: int, digests: Iterable[Digest]) -> None:
    """Content does not wait any more."""
    connection.update(
        "DELETE FROM pending_artifacts WHERE journal_key = ? AND digest = ?",
        [(journal_key, connection.sha(one)) for one in digests],
    )


def read_body(connection: Connection, digest: Digest) -> StoredBody | None:
    """A body as it is stored; None where there is none."""
    found = connection.query(
        "SELECT size, encoding, data FROM bodies WHERE digest = ?", (connection.sha(digest),)
    )
    return StoredBody(*found[0]) if found else None
