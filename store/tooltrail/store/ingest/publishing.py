"""Publishes artifacts: of a batch before its commit, waiting ones when the sink is available again.

An artifact that the sink does not accept now waits in the spool, or as a body. Folders of the spool
that are no longer needed are removed.
"""

import hashlib
import io
import os
import re
import shutil
import time
from collections.abc import Collection, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Final, NamedTuple
from uuid import UUID

from pydantic import ValidationError

from tooltrail.artifacts import (
    ArtifactArchive,
    CapturedStream,
    SpoolReader,
    StoredArtifact,
    artifact_path,
    check_path,
    open_without_links,
)
from tooltrail.journal.clock import now
from tooltrail.records import DamageError, InvalidRecordError, StreamRecord, UnavailableError
from tooltrail.records.command_documents import stream_members
from tooltrail.records.digests import ALGORITHM, Digest
from tooltrail.records.errors import unavailable_if_failing
from tooltrail.records.facts import StreamFact
from tooltrail.records.policy_documents import first_complaint
from tooltrail.store.engines.connection import Connection
from tooltrail.store.engines.database import Database
from tooltrail.store.engines.values import digest_from, uuid_from
from tooltrail.store.ingest.durable import make_durable
from tooltrail.store.ingest.places import Place
from tooltrail.store.read.bodies import load_bodies

RETRY_AFTER_S: Final = 30.0
"""Seconds before an unreachable sink is retried."""

_SCRATCH: Final = "publishing"
"""Folder of the spool for temporary files."""

_BLOCK_BYTES: Final = 128 << 10

_OF_JOURNAL: Final = " WHERE journal_key IN (SELECT key FROM journals WHERE ? IN (id, branch_of))"
"""Selects what waits in a journal and its branches: they may have files in the same spool."""

_ID: Final = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_FOLDER: Final = re.compile(rf"({_ID})(?:\.({_ID}))?")
"""The folder of a call or an answer; `CALL.RECORD` if the call had ended before it was recorded."""

_APPENDED_AFTER_S: Final = 3600
"""No later fact names a folder `CALL.RECORD` that is older than this many seconds."""


class PendingArtifact(NamedTuple):
    """An artifact whose bytes are not in the sink yet, and the `reason` why it waits.

    If the stream does not name a file of the spool, `content` has the bytes.
    """

    stream: StreamFact
    content: bytes | None = None
    reason: str = ""


class Publisher:
    """Publishes the artifacts of one journal from its spool. For one thread."""

    def __init__(self, database: Database, archive: ArtifactArchive, spool: Path) -> None:
        self._database = database
        self._archive = archive
        self._spool = spool
        self._retry_at = 0.0
        self._sink_error = ""

    def read_spooled(self, stream: StreamFact, edge_bytes: int) -> StreamRecord:
        """The record of a spooled stream, with `edge_bytes` of its head and its tail.

        Raises `InvalidRecordError` if both the file and the artifact of the stream are missing, or
        the bytes differ from the fact.
        """
        path = self._spool / check_path(stream.spooled or "")
        head, tail, size, digest = b"", b"", 0, hashlib.sha256()
        for block in self._blocks(stream, path):
            size += len(block)
            digest.update(block)
            head += block[: max(0, edge_bytes - len(head))]
            tail = (tail + block[-edge_bytes:])[-edge_bytes:] if edge_bytes else b""
        if f"{ALGORITHM}:{digest.hexdigest()}" != stream.digest or size != stream.size:
            raise InvalidRecordError(
                f"stream {stream.role}: {path} holds {size:,} bytes, which are not the "
                f"{stream.size:,} bytes of {stream.digest}"
            )
        rest = min(len(tail), size - len(head))
        return StreamRecord(**stream_members(stream), head=head, tail=tail[len(tail) - rest :])

    def _blocks(self, stream: StreamFact, path: Path) -> Iterator[bytes]:
        """The bytes of a spooled stream, from its file or, without a file, from its artifact."""
        with unavailable_if_failing(f"{path} cannot be read"):
            try:
                with io.BufferedReader(open_without_links(path)) as stored:
                    yield from SpoolReader(stored, str(path))
            except FileNotFoundError:
                with (
                    _published_before(stream, path) as artifact,
                    self._archive.open(artifact) as stored,
                ):
                    yield from iter(partial(stored.read, _BLOCK_BYTES), b"")

    def publish(
        self, artifacts: Iterable[PendingArtifact]
    ) -> tuple[list[StoredArtifact], list[PendingArtifact]]:
        """Make artifacts durable in the sink; return the stored ones, and those that wait.

        An artifact waits if the sink does not accept it now. Raises `InvalidRecordError` if both
        the file in the spool and the artifact are missing, or the path of the file is invalid.
        """
        stored, waiting = list[StoredArtifact](), list[PendingArtifact]()
        by_digest = {one.stream.digest: one for one in artifacts}
        for one in by_digest.values():
            self._file_of(one.stream)
            if not (reason := self._sink_error):
                try:
                    stored.append(self._send(one))
                    continue
                except UnavailableError as error:
                    reason = self._note_failure(error)
                except DamageError as error:
                    # About this artifact only: its damaged object in the sink was not replaced.
                    reason = str(error)
            waiting.append(one._replace(reason=reason))
        if by_digest:
            shutil.rmtree(self._spool / _SCRATCH, ignore_errors=True)
        return stored, waiting

    def publish_pending(self, place: Place, *, at_once: bool = False) -> int:
        """Publish waiting artifacts as far as the sink accepts them, and return their number.

        With `at_once`, a sink that was unreachable less than `RETRY_AFTER_S` ago is tried, too.
        """
        self._sink_error = ""  # this ends a run of the ingester; the next one tries the sink
        if not at_once and time.monotonic() < self._retry_at:
            return 0
        with self._database.read() as connection:
            waiting = self._read_pending(connection, place)
        done = list[StreamFact]()
        for one in waiting:
            try:
                self._publish_one(place, one)
            except UnavailableError as error:
                self._keep_reason(place, self._note_failure(error))
                break
            except (DamageError, InvalidRecordError) as error:
                self._keep_reason(place, str(error), one.digest)
                continue  # `verify` reports the problem, too
            done.append(one)
        if done:
            self.remove_folders(place, folders_of(done))
        return len(done)

    def _note_failure(self, error: UnavailableError) -> str:
        """Do not try the sink again in this run, nor waiting artifacts for a while; returns why."""
        self._sink_error, self._retry_at = str(error), time.monotonic() + RETRY_AFTER_S
        return self._sink_error

    def remove_folders(self, place: Place, ended: Collection[str] | None = None) -> None:
        """Remove the folders of ended calls and answers, unless an artifact of them waits.

        `ended` limits this to some names. By default, folders left by a killed ingester go, too.
        """
        with unavailable_if_failing(f"spool {self._spool} cannot be read"):
            found = map(_FOLDER.fullmatch, os.listdir(self._spool))  # noqa: PTH208  names are enough
        folders = {
            one[0]: UUID(one[1])
            for one in found
            if one and (not _may_be_recording(one[2]) if ended is None else one[0] in ended)
        }
        if not folders:
            return
        with self._database.read() as connection:
            named = [connection.uuid(one) for one in {*folders.values()}]
            done = connection.query_each(
                "SELECT id FROM invocations WHERE state <> 'started' AND id IN (?)", named
            ) + connection.query_each("SELECT id FROM messages WHERE id IN (?)", named)
            # The bytes that a rejected fact names are only in its folder.
            sql = "SELECT subject_id FROM rejected_facts WHERE subject_id IN (?)"
            rejected = connection.query_each(sql, named)
            waiting = self._read_pending(connection, place)
        ids = {uuid_from(one) for (one,) in {*done} - {*rejected}}
        names = {name for name, one in folders.items() if one in ids} - folders_of(waiting)
        if names:
            # After a power cut the database must not be older than the spool.
            make_durable(self._database)
        for name in names:
            # A folder that cannot be removed is retried later.
            shutil.rmtree(self._spool / name, ignore_errors=True)

    def _read_pending(self, connection: Connection, place: Place) -> list[StreamFact]:
        """The waiting streams of a journal, and those of its branches that are in this spool."""
        rows = connection.query(
            "SELECT journal_key, role, digest, size, line_count, spooled"
            f" FROM pending_artifacts{_OF_JOURNAL} ORDER BY noticed_at, digest",
            (connection.uuid(place.root),),
        )
        return [  # the rows do not say whether the tool produced more
            StreamFact(role, digest_from(digest), size, lines, size, lines, spooled=spooled)
            for key, role, digest, size, lines, spooled in rows
            if key == place.key or spooled is None or (self._spool / spooled).exists()
        ]

    def _keep_reason(self, place: Place, reason: str, digest: Digest | None = None) -> None:
        """Record why artifacts, or one of them, still wait, unless the database is away, too."""
        with suppress(UnavailableError), self._database.write() as connection:
            connection.execute(
                f"UPDATE pending_artifacts SET reason = ?{_OF_JOURNAL}"
                " AND digest = coalesce(?, digest)",
                (connection.text(reason), connection.uuid(place.root), connection.sha(digest)),
            )

    def _publish_one(self, place: Place, stream: StreamFact) -> None:
        content = None
        if stream.spooled is None:
            with self._database.read() as connection:
                content = load_bodies(connection, [stream.digest])[stream.digest].data
        stored = self._send(PendingArtifact(stream, content))
        with self._database.write() as connection:
            write_artifacts(connection, place.key, [stored], [])
            connection.execute(
                f"DELETE FROM pending_artifacts{_OF_JOURNAL} AND digest = ?",
                (connection.uuid(place.root), connection.sha(stream.digest)),
            )

    def _send(self, artifact: PendingArtifact) -> StoredArtifact:
        # The sink stores the kept bytes only, so the loss of the stream is left out.
        stream = artifact.stream.replaced(
            produced_size=artifact.stream.size,
            produced_line_count=artifact.stream.line_count,
            loss_reason=None,
        )
        try:
            record = StreamRecord(**stream_members(stream), head=b"", content=artifact.content)
        except ValidationError as error:
            raise InvalidRecordError(f"stream {stream.role!r}: {first_complaint(error)}") from error
        file = self._file_of(stream)
        if file is None or file.is_file():
            captured = CapturedStream(record, file)
            return self._archive.publish(captured, scratch=self._spool / _SCRATCH)
        with _published_before(stream, file) as path:
            self._archive.verify(path, size=stream.size)
            stored_size = self._archive.stat(path).stored_size
        return StoredArtifact(path, stream.digest, stream.size, stored_size, stream.line_count)

    def _file_of(self, stream: StreamFact) -> Path | None:
        """The path of the file of a stream; None for content in memory."""
        return None if stream.spooled is None else self._spool / check_path(stream.spooled)


def folders_of(streams: Iterable[StreamFact]) -> set[str]:
    """The names of the folders of the spool that have files of streams."""
    return {one.spooled.split("/")[0] for one in streams if one.spooled is not None}


def _may_be_recording(record: str | None) -> bool:
    """Whether the fact that names a folder `CALL.RECORD` may not be appended yet."""
    made_at = (UUID(record).int >> 80) / 1000 if record else 0.0
    return time.time() < made_at + _APPENDED_AFTER_S


@contextmanager
def _published_before(stream: StreamFact, file: Path) -> Generator[str]:
    """Use the artifact of a stream whose file is gone; yields the path of the artifact.

    The spool keeps no file of a published stream. So a database that was restored from an older
    copy learns of the stream when only the artifact is left.
    """
    try:
        yield artifact_path(stream.digest)
    except DamageError as error:
        raise InvalidRecordError(f"stream {stream.role}: {error}, and {file} is missing") from error


def write_artifacts(
    connection: Connection,
    journal_key: int,
    stored: Iterable[StoredArtifact],
    waiting: Iterable[PendingArtifact],
) -> None:
    """Insert the rows of stored and waiting artifacts, unless they exist."""
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
            for one in sorted(stored, key=attrgetter("digest"))
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
            for stream, _, reason in waiting
        ],
    )
