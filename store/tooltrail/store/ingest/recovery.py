"""Ends the calls and answers whose program died: appends the facts that the program could not.

A call and a streamed answer name the owner lock of their program. Where the lock is free, the
program is dead, and the spool has all of its output. First find the dead programs, then read the
journal to its end: a program may have appended the end of its call just before it died.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple
from uuid import UUID

from tooltrail.artifacts import CapturedStream
from tooltrail.journal import Entry, JournalLog, is_alive, remove_owner
from tooltrail.journal.clock import now
from tooltrail.journal.frames import MAX_FRAME_BYTES
from tooltrail.records import (
    CompleteOutput,
    DamageError,
    InvalidRecordError,
    error_of_interruption,
)
from tooltrail.records.digests import digest_of
from tooltrail.records.facts import AnswerStarted, CallEnded, StreamFact, read_fact
from tooltrail.records.tool_errors import ErrorKind
from tooltrail.store.engines.connection import Connection
from tooltrail.store.engines.database import Database
from tooltrail.store.ingest.left_output import read_left_output
from tooltrail.store.packed_facts import unpack_fact

_REASON: Final = (
    "the program that recorded the call ended before the call did; the output of its last second"
    " may be missing"
)
_INLINE_BYTES: Final = 16 << 10
"""Longest stream that travels inside a frame."""


class OpenCall(NamedTuple):
    """A call that has not ended.

    Attributes:
        id: of the invocation.
        session: id of its session.
        tool_name: name of the tool.
        owner: name of its owner lock.
    """

    id: UUID
    session: UUID
    tool_name: str
    owner: str


class OpenAnswer(NamedTuple):
    """An answer that is being streamed.

    Attributes:
        id: of the message that it becomes.
        owner: name of its owner lock.
        started: the fact that it began.
    """

    id: UUID
    owner: str
    started: AnswerStarted


Open = OpenCall | OpenAnswer


class Recovery:
    """Recovers the calls and answers of one journal, whose ingest lock is held. For one thread.

    Args:
        database: with the calls and answers.
        spool: the folder with owner locks and captured streams.
        log: the journal.
    """

    def __init__(self, database: Database, spool: Path, log: JournalLog) -> None:
        self._database = database
        self._spool = spool
        self._log = log

    def find_dead(self, journal_key: int) -> list[Open]:
        """The open calls and answers of a journal whose program is dead.

        Raises:
            UnavailableError: the database or an owner lock cannot be read now.
        """
        found = self._open(journal_key)
        alive = {one.owner for one in found if self._is_alive(one.owner)}
        return [one for one in found if one.owner not in alive]

    def end(self, journal_key: int, dead: Sequence[Open]) -> int:
        """Append the end of those calls and answers that are still open.

        Returns:
            How many.

        Raises:
            UnavailableError: the database, the journal or the spool cannot be used now.
        """
        names = {one.id for one in dead}
        found = [one for one in self._open(journal_key) if one.id in names]
        for one in found:
            self._log.record(
                [self._ended(one)] if isinstance(one, OpenCall) else self._messages(one)
            )
        return len(found)

    def remove_owners(self, journal_key: int, dead: Sequence[Open]) -> None:
        """Remove the lock files of programs that have nothing open any more."""
        needed = {one.owner for one in self._open(journal_key)}
        for name in {one.owner for one in dead} - needed:
            with suppress(InvalidRecordError):
                remove_owner(self._spool, name)

    def _open(self, journal_key: int) -> list[Open]:
        with self._database.read() as connection:
            found: list[Open] = [*_open_calls(connection, journal_key)]
            found += _open_answers(connection, journal_key)
        return found

    def _is_alive(self, owner: str) -> bool:
        try:
            return is_alive(self._spool, owner)
        except InvalidRecordError:
            return False  # not the name of a lock, so nobody holds it

    def _ended(self, call: OpenCall) -> Entry:
        """The fact that ends a call, with the output that its program left."""
        captured = read_left_output(self._spool, call.id, inline_bytes=_INLINE_BYTES)
        records = [one.record for one in captured]
        document = CompleteOutput.failure(
            call.tool_name, error_of_interruption(_REASON), records
        ).to_json()
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
        spooled = None
        if captured.record.content is None and captured.staged is not None:
            spooled = captured.staged.relative_to(self._spool).as_posix()
        return StreamFact.of(captured.record, spooled)

    def _messages(self, answer: OpenAnswer) -> list[Entry]:
        """The facts of an answer, as far as it had come."""
        # Most ingesters never read an answer, and start without the wire formats.
        from tooltrail.journal.answer_messages import PAYLOAD, cut_off_entries  # noqa: PLC0415

        captured = read_left_output(self._spool, answer.id, inline_bytes=MAX_FRAME_BYTES)
        payloads = [one.record.content for one in captured if one.record.role == PAYLOAD]
        return cut_off_entries(answer.started, b"".join(one for one in payloads if one))


def _open_calls(connection: Connection, journal_key: int) -> Iterator[OpenCall]:
    rows = connection.query(
        # The first condition is that of the index. A call whose end was rejected did end.
        "SELECT i.id, s.id, i.tool_name, i.owner FROM invocations AS i"
        " JOIN sessions AS s ON s.key = i.session_key"
        " WHERE i.state <> 'success' AND i.state = 'started' AND i.journal_key = ?"
        f" AND i.owner IS NOT NULL AND {_not_rejected('i.id', 'call.ended')}",
        (journal_key,),
    )
    for call, session, tool_name, owner in rows:
        yield OpenCall(connection.read_uuid(call), connection.read_uuid(session), tool_name, owner)


def _open_answers(connection: Connection, journal_key: int) -> Iterator[OpenAnswer]:
    rows = connection.query(
        "SELECT e.fact FROM open_answers AS a"
        " JOIN ledger_entries AS e ON e.journal_key = a.journal_key AND e.n = a.entry"
        f" WHERE a.journal_key = ? AND {_not_rejected('a.message_id', 'message')}",
        (journal_key,),
    )
    for (document,) in rows:
        with suppress(DamageError, InvalidRecordError):  # `verify` names the ledger entry
            fact = read_fact(unpack_fact(document))
            if isinstance(fact, AnswerStarted) and fact.owner is not None:
                yield OpenAnswer(fact.id, fact.owner, fact)


def _not_rejected(subject: str, kind: str) -> str:
    return (
        "NOT EXISTS (SELECT 1 FROM rejected_facts AS r"
        " JOIN ledger_entries AS l ON l.journal_key = r.journal_key AND l.n = r.n"
        f" WHERE r.subject_id = {subject} AND l.kind = '{kind}')"
    )
