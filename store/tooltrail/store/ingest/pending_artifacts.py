"""Publishes artifacts that wait for the sink, and removes folders that the spool needs no more."""

import os
import re
import shutil
import time
from collections.abc import Collection
from operator import attrgetter
from pathlib import Path, PurePosixPath
from typing import Final
from uuid import UUID

from tooltrail.journal.clock import now
from tooltrail.records import DamageError, InvalidRecordError, UnavailableError
from tooltrail.records.facts import StreamFact
from tooltrail.store.engines.connection import Connection
from tooltrail.store.engines.database import Database
from tooltrail.store.engines.values import digest_from
from tooltrail.store.ingest.durable import make_durable
from tooltrail.store.ingest.known import load_bodies
from tooltrail.store.ingest.publishing import PendingArtifact, Published, SpooledStreams

RETRY_AFTER_S: Final = 30.0
"""Seconds after which a sink that was away is tried again."""

_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class PendingArtifacts:
    """The artifacts of a journal that wait in the spool for the sink. For one thread.

    Args:
        database: with the rows.
        spool: the folder with the captured streams.
        streams: publishes them.
    """

    def __init__(self, database: Database, spool: Path, streams: SpooledStreams) -> None:
        self._database = database
        self._spool = spool
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
        try:
            folders = os.listdir(self._spool)  # noqa: PTH208  names are enough
        except OSError as error:
            raise UnavailableError(
                f"spool {self._spool} cannot be read: {error.strerror}"
            ) from error
        ids = [UUID(name) for name in folders if _ID.fullmatch(name)]
        if ended is not None:
            ids = [one for one in ids if one in ended]
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
        for name in names:
            # A folder that cannot be removed is tried again later.
            shutil.rmtree(self._spool / name, ignore_errors=True)

    def _publish(self, journal_key: int, stream: StreamFact) -> None:
        content = None
        if stream.spooled is None:
            with self._database.read() as connection:
                content = load_bodies(connection, [stream.digest]).get(stream.digest)
        stored = self._streams.send(PendingArtifact(stream, content))
        with self._database.write() as connection:
            write_artifacts(connection, journal_key, Published([stored], []))
            connection.execute(
                "DELETE FROM pending_artifacts WHERE journal_key = ? AND digest = ?",
                (journal_key, connection.sha(stream.digest)),
            )


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
                "digest": connection.sha(stream.digest),
                "journal_key": journal_key,
                "spooled": connection.text(stream.spooled),
                "role": connection.text(stream.role),
                "size": stream.size,
                "line_count": stream.line_count,
                "reason": connection.text(reason),
                "noticed_at": at,
            }
            for stream, _, reason in published.waiting
        ],
    )


def _read_pending(connection: Connection, journal_key: int) -> list[StreamFact]:
    rows = connection.query(
        "SELECT role, digest, size, line_count, spooled FROM pending_artifacts"
        " WHERE journal_key = ? ORDER BY noticed_at, digest",
        (journal_key,),
    )
    return [
        StreamFact(
            role=role,
            digest=digest_from(digest),
            size=size,
            line_count=line_count,
            produced_size=size,
            produced_line_count=line_count,
            spooled=spooled,
        )
        for role, digest, size, line_count, spooled in rows
    ]
