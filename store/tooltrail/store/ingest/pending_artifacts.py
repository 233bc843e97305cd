"""Publishes artifacts that wait for the sink, and removes folders that the spool needs no more."""

import time
from collections.abc import Collection
from dataclasses import replace
from operator import attrgetter
from pathlib import PurePosixPath
from typing import Final
from uuid import UUID

from tooltrail.journal.clock import now
from tooltrail.records import DamageError, InvalidRecordError, UnavailableError
from tooltrail.store.bodies import decode_body
from tooltrail.store.engines.connection import Connection
from tooltrail.store.engines.database import Database
from tooltrail.store.engines.values import digest_from
from tooltrail.store.ingest.durable import make_durable
from tooltrail.store.ingest.publishing import PendingArtifact, Published, SpooledStreams

RETRY_AFTER_S: Final = 30.0
"""Seconds after which a sink that was away is tried again."""


class PendingArtifacts:
    """The artifacts of a journal that wait in the spool for the sink. For one thread.

    Args:
        database: with the rows.
        streams: the spool.
    """

    def __init__(self, database: Database, streams: SpooledStreams) -> None:
        self._database = database
        self._streams = streams
        self._retry_at = 0.0

    def publish(self, journal_key: int, *, at_once: bool = False) -> int:
        """Publish what waits, as far as the sink takes it.

        Args:
            journal_key: of which journal.
            at_once: whether to try although the sink was away just now.

        Returns:
            How many artifacts were published.

        Raises:
            UnavailableError: the database cannot be used now.
        """
        if not at_once and time.monotonic() < self._retry_at:
            return 0
        with self._database.read() as connection:
            waiting = _read_pending(connection, journal_key)
        done = 0
        for one in waiting:
            try:
                self._publish(journal_key, one)
            except UnavailableError:
                self._retry_at = time.monotonic() + RETRY_AFTER_S
                break
            except (DamageError, InvalidRecordError):
                continue  # the row says that it waits; `verify` says what is wrong with it
            done += 1
        if done:
            self.remove_folders(journal_key)
        return done

    def remove_folders(self, journal_key: int, ended: Collection[UUID] | None = None) -> None:
        """Remove the folders of calls and answers that ended and of which nothing waits.

        Args:
            journal_key: of which journal.
            ended: only these; by default also those that a killed ingester left.

        Raises:
            UnavailableError: the database or the spool cannot be used now.
        """
        ids = [one for one in map(UUID, self._streams.folders()) if ended is None or one in ended]
        if not ids:
            return
        with self._database.read() as connection:
            named = [connection.uuid(one) for one in ids]
            done = connection.query_each(
                "SELECT id FROM invocations WHERE state <> 'started' AND id IN (?)", named
            ) + connection.query_each("SELECT id FROM messages WHERE id IN (?)", named)
            # The bytes that a rejected fact names are in its folder alone.
            rejected = connection.query_each(
                "SELECT subject_id FROM rejected_facts WHERE subject_id IN (?)", named
            )
            waiting = _read_pending(connection, journal_key)
            names = {str(connection.read_uuid(one)) for (one,) in {*done} - {*rejected}}
        names -= {PurePosixPath(one.spooled).parts[0] for one in waiting if one.spooled is not None}
        if names:
            # After a power cut the database must not be older than the spool.
            make_durable(self._database)
            self._streams.discard(sorted(names))

    def _publish(self, journal_key: int, waiting: PendingArtifact) -> None:
        if waiting.spooled is None:
            waiting = replace(waiting, content=self._body_of(waiting))
        stored = self._streams.send(waiting)
        with self._database.write() as connection:
            write_artifacts(connection, journal_key, Published([stored], []))
            connection.execute(
                "DELETE FROM pending_artifacts WHERE journal_key = ? AND digest = ?",
                (journal_key, connection.sha(waiting.digest)),
            )

    def _body_of(self, waiting: PendingArtifact) -> bytes:
        with self._database.read() as connection:
            found = connection.query_one(
                "SELECT size, encoding, data FROM bodies WHERE digest = ?",
                (connection.sha(waiting.digest),),
            )
        if found is None:
            raise DamageError(f"body {waiting.digest} is missing", path=waiting.digest)
        return decode_body(waiting.digest, *found)


def write_artifacts(connection: Connection, journal_key: int, published: Published) -> None:
    """Insert what is in the sink, and what waits for the sink, once each."""
    at = connection.moment(now())
    connection.insert_once(
        "artifacts",
        [
            {
                "digest": connection.sha(one.digest),
                "size": one.size,
                "stored_size": one.stored_size,
                "line_count": one.line_count,
                "created_at": at,
            }
            for one in sorted(published.stored, key=attrgetter("digest"))
        ],
    )
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
                "noticed_at": at,
            }
            for one in published.waiting
        ],
    )


def _read_pending(connection: Connection, journal_key: int) -> list[PendingArtifact]:
    rows = connection.query(
        "SELECT role, digest, size, line_count, spooled FROM pending_artifacts"
        " WHERE journal_key = ? ORDER BY noticed_at, digest",
        (journal_key,),
    )
    return [
        PendingArtifact(role, digest_from(digest), size, line_count, spooled)
        for role, digest, size, line_count, spooled in rows
    ]
