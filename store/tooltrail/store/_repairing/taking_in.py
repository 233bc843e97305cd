"""Brings a record that was set aside into the store: its start, its end and its output.

One transaction writes all of it, with the id that it was given when it began, so that a repair that
is killed has recorded it or has not, and the next one sees which.
"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import Connection

from tooltrail.artifacts import spooled_streams
from tooltrail.journal.clock import new_id, now
from tooltrail.records import (
    CompleteOutput,
    InvalidRecordError,
    InvocationFinishedError,
    NotFoundError,
    StreamRecord,
    UnavailableError,
    load_policy,
    stored_policy,
)
from tooltrail.store._outbox.known_invocations import KnownInvocation, find_known_invocation
from tooltrail.store._reading.names import LAST, find_session, session_key
from tooltrail.store._recording import writes
from tooltrail.store._recording.ending import Ending
from tooltrail.store._recording.finishing import write_finished
from tooltrail.store._recording.interruption import interrupted_output
from tooltrail.store._recording.sessions import Opening, only_call_of, write_closed, write_opened
from tooltrail.store._recording.starting import Started
from tooltrail.store._recording.whole import Whole, write_whole
from tooltrail.store._recording.writes import Chain
from tooltrail.store._repairing.spooled import (
    INTERRUPTED_ALONE,
    REASON,
    SpoolFile,
    look_at,
    salvage_stream,
    staging_in,
    stored_file,
)
from tooltrail.store._repairing.told_outputs import as_told, output_of, refuse_others
from tooltrail.store.asides import AsideFolder, AsideRecord
from tooltrail.store.environment import environment_json
from tooltrail.store.invocation import Invocation
from tooltrail.store.recorder import Session

if TYPE_CHECKING:
    from tooltrail.store.store import Store


def is_for(store: "Store", record: AsideRecord) -> bool:
    """Whether a record is for this store: by its id where that was known, else by its place."""
    wanted = record.store
    if wanted.id is not None:
        return wanted.id == store.info.id
    return wanted.database == store.database.target.place


class StartedMeanwhileError(Exception):
    """Its start is in the store by now, with the budgets that count."""


def take_in(
    store: "Store", record: AsideRecord, aside: AsideFolder, known: KnownInvocation | None
) -> tuple[list[SpoolFile], str]:
    """Record what was set aside; the folder stays as it is.

    Args:
        store: where to.
        record: what is known of it.
        aside: its folder.
        known: what is in the store of it: that it was started, or nothing.

    Returns:
        What was found in the folder, as far as it is stored; and why it is not in the session that
        it named, or nothing.

    Raises:
        InvocationFinishedError: it is recorded already.
        StartedMeanwhileError: there is more in the store of it than is known.
        InvalidRecordError, NotFoundError: the record or a file of its output is not whole, it is of
            another call than was started, or this program does not know its family.
        DamageError: the policy that it was started with is damaged.
        UnavailableError: a file cannot be read, there is no room, the store cannot be written.
    """
    if known is not None:
        refuse_another(record, known)
    started = _started(store, record, known)
    with staging_in(aside.path.parent, record.id) as staging:
        invocation = _SetAside(store, started, record, staging, is_known=known is not None)
        paths = spooled_streams(aside.path)
        found = {r: salvage_stream(store, invocation, r, path) for r, path in paths.items()}
        streams = {
            stream.record.role: invocation.captured(stream)
            for stream in as_told(record, [one.captured for one in found.values()])
        }
        if record.complete_output is None:
            output = interrupted_output(record.call.tool_name, REASON, tuple(streams.values()))
        else:
            output = output_of(record.complete_output, started.family, streams)
        invocation.record(output, tuple(streams.values()))
    files = [stored_file(paths[role], streams[role], one.problem) for role, one in found.items()]
    return files, invocation.note


def refuse_another(record: AsideRecord, known: KnownInvocation) -> None:
    """Raise for a record that is not of the call that was started with its id.

    Budgets are not compared: the program that started it may have known other families.

    Raises:
        InvalidRecordError: it is not.
    """
    if (record.call.tool_name, record.family) != (known.tool_name, known.family):
        raise InvalidRecordError(f"invocation {known.id} was started as another call")


def look_into(record: AsideRecord, aside: AsideFolder) -> list[SpoolFile]:
    """What is in the folder of a record, read through.

    Raises:
        InvalidRecordError: its streams are not those that the record tells.
        UnavailableError: a file cannot be read.
    """
    files = [look_at(*file) for file in spooled_streams(aside.path).items()]
    if record.complete_output is not None:
        refuse_others(record, {file.role: (file.digest, file.size) for file in files})
    return files


class _SetAside(Invocation):
    """An invocation of which the store knows nothing yet: its start is written with its end.

    Or its start at the most, of which the program was not told.

    Attributes:
        note: why it is not in the session that it named; empty when it is, or named none.
    """

    may_wait = False  # what is in the spool is safer as it is

    def __init__(
        self,
        store: "Store",
        started: Started,
        record: AsideRecord,
        staging: Path,
        *,
        is_known: bool,
    ) -> None:
        opening = Opening(
            new_id(),
            record.started_at,
            environment_json(record.environment),
            title=None if record.session is None else f"set aside for session {record.session}",
            only_call=record.id,
        )
        # Which session it will be is settled in the transaction.
        super().__init__(store, Session(store, 0, opening.id, is_own=False), 0, started)
        self.note = ""
        self._is_known = is_known
        self._started = started
        self._record = record
        self._staging = staging
        self._opening = opening
        self._arguments = writes.Body.of(started.call.arguments_bytes)
        self.finished_at = record.finished_at
        self.is_witnessed = record.finished_at is not None
        self.closing_reason = None if self.is_witnessed else INTERRUPTED_ALONE

    @property
    def spool(self) -> Path:
        return self._staging

    def record(self, output: CompleteOutput, streams: tuple[StreamRecord, ...]) -> None:
        """Record an end as it was; where there is no room for it, not as another end.

        Raises:
            InvocationFinishedError: it is recorded already.
            StartedMeanwhileError: see `take_in`.
            DamageError: see `Invocation.finish`.
            UnavailableError: the same; also when the database refuses it.
        """
        try:
            self._end(output, streams)
        except InvocationFinishedError:
            raise
        except InvalidRecordError as error:
            raise UnavailableError(str(error)) from error

    def _write(self, connection: Connection, ending: Ending) -> None:
        known = find_known_invocation(connection, self.id)
        if known is not None:
            if not self._is_known:
                raise StartedMeanwhileError
            self._write_end(connection, known, ending)
            return
        named = self._named_chain(connection)
        chain = named or write_opened(connection, self._opening)
        whole = Whole(self._started.beginning, self._arguments, ending.rows, ending.publisher)
        write_whole(connection, chain, [whole])
        if named is None:
            self._close(connection, chain)

    def _write_end(
        self,
        connection: Connection,
        known: KnownInvocation,
        ending: Ending,
    ) -> None:
        """End what had been started after all, in the session that it was started in."""
        chain = writes.lock_chain(connection, known.session_key, known.session_id)
        rows = replace(ending.rows, started_at=known.started_at)
        if not write_finished(connection, chain, known.key, rows, ending.publisher):
            raise self._finished_already()
        is_own = only_call_of(connection, known.session_key) == self.id
        if is_own and chain.closed_at is None:
            self._close(connection, chain)

    def _close(self, connection: Connection, chain: Chain) -> None:
        write_closed(connection, chain, self._record.finished_at or now(), self.closing_reason)

    def _named_chain(self, connection: Connection) -> Chain | None:
        """The chain of the session that was named; None, and a note, when it cannot be that one."""
        name = self._record.session
        if name is None:
            return None
        try:
            session_id = _session_of(connection, name)
        except NotFoundError as error:
            self.note = f"in a session of its own: {error}"
            return None
        key = session_key(connection, session_id)
        chain = writes.lock_chain(connection, key, session_id)
        if chain.closed_at is None:
            return chain
        self.note = f"in a session of its own: session {session_id} is closed"
        return None


def _session_of(connection: Connection, name: str) -> UUID:
    if name == LAST:
        raise NotFoundError(f"which session was {LAST} then is not known")
    return find_session(connection, name)


def _started(store: "Store", record: AsideRecord, known: KnownInvocation | None) -> Started:
    """The start as it is told, with the budgets that are recorded of it where it is known."""
    family = store.families.named(record.family)
    if known is None:
        policy = load_policy(record.policy, store.families)
    else:
        policy = stored_policy(store.reader.policy_json(known.policy_digest), store.families)
    return Started(record.id, record.started_at, record.call, family, policy)
