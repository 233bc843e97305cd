"""Ends the calls whose program died: appends the fact that the program could not append.

A call names the owner lock of its program. Where the lock is free, the program is dead, and what it
left in the spool is all there will be. Whether a program is dead is asked before the journal is
read to its end, so an end that the program appended at the last moment is seen.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple
from uuid import UUID

from tooltrail.artifacts import CapturedStream, salvage
from tooltrail.journal import Entry, JournalLog, is_alive, remove_owner
from tooltrail.journal.clock import now
from tooltrail.journal.segments import sync_folder
from tooltrail.records import InvalidRecordError, UnavailableError
from tooltrail.records.digests import digest_of
from tooltrail.records.facts import CallEnded, StreamFact
from tooltrail.records.tool_errors import ErrorKind
from tooltrail.store.engines.database import Database
from tooltrail.store.ingest.interruption import interrupted_output

DAMAGED: Final = "damaged"
"""Folder of the spool for files that could not be read to their end: evidence, kept for people."""

_REASON: Final = "the program that recorded the call ended before the call did"
_SUFFIX: Final = ".zst"
_RECOVERED: Final = ".recovered.zst"
_INLINE_BYTES: Final = 16 << 10
"""Longest stream that travels inside a frame."""

_EDGE_BYTES: Final = 4 << 10
"""Nobody reads the ends that the capture keeps: the ingester reads the file again."""


class OpenCall(NamedTuple):
    """A call that has not ended.

    Attributes:
        key: of its row.
        id: of the invocation.
        session: id of its session.
        tool_name: name of the tool.
        owner: name of its owner lock.
    """

    key: int
    id: UUID
    session: UUID
    tool_name: str
    owner: str


class Recovery:
    """Recovers the calls of one journal, whose ingest lock is held. For one thread.

    Args:
        database: with the calls.
        spool: the folder with owner locks and captured streams.
        log: the journal.
    """

    def __init__(self, database: Database, spool: Path, log: JournalLog) -> None:
        self._database = database
        self._spool = spool
        self._log = log

    def find_dead(self, journal_key: int) -> list[OpenCall]:
        """The open calls of a journal whose program is dead.

        Raises:
            UnavailableError: the database or an owner lock cannot be read now.
        """
        calls = self._open_calls(journal_key)
        alive = {one.owner for one in calls if self._is_alive(one.owner)}
        return [one for one in calls if one.owner not in alive]

    def end(self, journal_key: int, dead: Sequence[OpenCall]) -> int:
        """Append the end of those calls that are still open.

        Returns:
            How many.

        Raises:
            UnavailableError: the database, the journal or the spool cannot be used now.
        """
        names = {one.id for one in dead}
        found = [one for one in self._open_calls(journal_key) if one.id in names]
        for call in found:
            self._log.record([self._ended(call)])
        return len(found)

    def remove_owners(self, journal_key: int, dead: Sequence[OpenCall]) -> None:
        """Remove the lock files of programs that have no open call any more."""
        needed = {one.owner for one in self._open_calls(journal_key)}
        for name in {one.owner for one in dead} - needed:
            with suppress(InvalidRecordError):
                remove_owner(self._spool, name)

    def _open_calls(self, journal_key: int) -> list[OpenCall]:
        with self._database.read() as connection:
            rows = connection.query(
                # The first condition is that of the index. A call whose end was rejected did end.
                "SELECT i.key, i.id, s.id, i.tool_name, i.owner FROM invocations AS i"
                " JOIN sessions AS s ON s.key = i.session_key"
                " WHERE i.state <> 'success' AND i.state = 'started' AND i.journal_key = ?"
                " AND i.owner IS NOT NULL AND NOT EXISTS (SELECT 1 FROM rejected_facts AS r"
                " JOIN ledger_entries AS l ON l.journal_key = r.journal_key AND l.n = r.n"
                " WHERE r.subject_id = i.id AND l.kind = 'call.ended')",
                (journal_key,),
            )
        return [
            OpenCall(
                key, connection.read_uuid(call), connection.read_uuid(session), tool_name, owner
            )
            for key, call, session, tool_name, owner in rows
        ]

    def _is_alive(self, owner: str) -> bool:
        try:
            return is_alive(self._spool, owner)
        except InvalidRecordError:
            return False  # not the name of a lock, so nobody holds it

    def _ended(self, call: OpenCall) -> Entry:
        """The fact that ends a call, with the output that its program left."""
        captured = self._salvaged(call)
        records = [one.record for one in captured]
        document = interrupted_output(call.tool_name, _REASON, records).to_json()
        fact = CallEnded(
            session=call.session,
            id=call.id,
            at=now(),
            state="interrupted",
            output=digest_of(document),
            streams=tuple(self._stream_fact(one) for one in captured),
            error_kind=ErrorKind.INTERRUPTED,
        )
        bodies = [one.content for one in records if one.content is not None]
        return Entry(fact, [document, *bodies])

    def _stream_fact(self, captured: CapturedStream) -> StreamFact:
        record, spooled = captured.record, None
        if record.content is None and captured.staged is not None:
            spooled = captured.staged.relative_to(self._spool).as_posix()
        return StreamFact(
            role=record.role,
            digest=record.digest,
            size=record.size,
            line_count=record.line_count,
            produced_size=record.produced_size,
            produced_line_count=record.produced_line_count,
            loss_reason=record.loss_reason,
            spooled=spooled,
        )

    def _salvaged(self, call: OpenCall) -> list[CapturedStream]:
        folder = self._spool / str(call.id)
        try:
            files = sorted(folder.glob(f"*{_SUFFIX}"))
            found = list[CapturedStream]()
            for file in files:
                if not file.name.endswith(_RECOVERED):
                    found += self._salvage(call, file)
            if found:
                sync_folder(folder)
        except OSError as error:
            raise UnavailableError(f"{folder} cannot be read: {error.strerror}") from error
        return found

    def _salvage(self, call: OpenCall, file: Path) -> list[CapturedStream]:
        """What can be decoded of a file; it is captured once more, and synced."""
        role = file.name.removesuffix(_SUFFIX)
        kept = self._spool / DAMAGED / f"{call.id}-{file.name}"
        staged = file.with_name(f"{role}{_RECOVERED}")
        # An ingester that was killed may have left one.
        staged.unlink(missing_ok=True)
        try:
            salvaged = salvage(
                file,
                role,
                staged,
                edge_bytes=_EDGE_BYTES,
                inline_bytes=_INLINE_BYTES,
                moves_to=kept,
            )
        except InvalidRecordError:
            return []  # not the file of a stream
        if salvaged.problem is not None:
            kept.parent.mkdir(mode=0o700, exist_ok=True)
            with suppress(FileExistsError):
                kept.hardlink_to(file)
        if salvaged.captured.staged is not None:
            _sync(salvaged.captured.staged)
        return [salvaged.captured]


def _sync(file: Path) -> None:
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
