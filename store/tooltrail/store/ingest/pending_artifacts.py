"""Publishes artifacts that wait for the sink, and removes folders that the spool needs no more."""

import time
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Final
from uuid import UUID

from tooltrail.journal.clock import now
from tooltrail.records import DamageError, InvalidRecordError, UnavailableError
from tooltrail.store.bodies import decode_body
from tooltrail.store.engines.database import Database
from tooltrail.store.ingest.artifact_rows import (
    delete_pending,
    read_body,
    read_pending,
    write_stored,
)
from tooltrail.store.ingest.durable import make_durable
from tooltrail.store.ingest.publishing import PendingArtifact, SpooledStreams

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
            waiting = read_pending(connection, journal_key)
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
            self._tidy(journal_key, waiting)
        return done

    def sweep(self, journal_key: int) -> None:
        """Remove folders of calls and answers that ended, which a killed ingester left.

        Raises:
            UnavailableError: the database or the spool cannot be used now.
        """
        self._discard(journal_key, self._streams.folders())

    def discard(self, journal_key: int, ended: Iterable[UUID]) -> None:
        """Remove the folders of calls and answers that this ingester ended.

        Raises:
            UnavailableError: the database or the spool cannot be used now.
        """
        names = {str(one) for one in ended}
        self._discard(journal_key, [one for one in self._streams.folders() if one in names])

    def _publish(self, journal_key: int, waiting: PendingArtifact) -> None:
        content = None
        if waiting.spooled is None:
            content = self._body_of(waiting)
        stored = self._streams.send(waiting, content)
        with self._database.write() as connection:
            write_stored(connection, [stored], now())
            delete_pending(connection, journal_key, [waiting.digest])

    def _body_of(self, waiting: PendingArtifact) -> bytes:
        with self._database.read() as connection:
            found = read_body(connection, waiting.digest)
        if found is None:
            raise DamageError(f"body {waiting.digest} is missing", path=waiting.digest)
        return decode_body(waiting.digest, *found)

    def _tidy(self, journal_key: int, waiting: Iterable[PendingArtifact]) -> None:
        names = {PurePosixPath(one.spooled).parts[0] for one in waiting if one.spooled is not None}
        self._discard(journal_key, [one for one in self._streams.folders() if one in names])

    def _discard(self, journal_key: int, folders: list[str]) -> None:
        """Remove those of some folders whose call or answer ended and of which nothing waits."""
        ids = {name: UUID(name) for name in folders}
        if not ids:
            return
        with self._database.read() as connection:
            named = [connection.uuid(one) for one in ids.values()]
            ended = connection.query_each(
                "SELECT id FROM invocations WHERE state <> 'started' AND id IN (?)", named
            ) + connection.query_each("SELECT id FROM messages WHERE id IN (?)", named)
            # The bytes that a rejected fact names are in its folder alone.
            rejected = connection.query_each(
                "SELECT subject_id FROM rejected_facts WHERE subject_id IN (?)", named
            )
            waiting = read_pending(connection, journal_key)
            done = {str(connection.read_uuid(one)) for (one,) in ended}
            done -= {str(connection.read_uuid(one)) for (one,) in rejected}
        done -= {PurePosixPath(one.spooled).parts[0] for one in waiting if one.spooled is not None}
        if done:
            # After a power cut the database must not be older than the spool.
            make_durable(self._database)
            self._streams.discard(sorted(done))
