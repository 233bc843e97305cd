"""Brings a record that was set aside into the store: its start, its end and its output.

One transaction writes all of it, with the id that it was given when it began, so that a repair that
is killed has recorded it or has not, and the next one sees which.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from pydantic import ValidationError
from sqlalchemy import Connection

from tooltrail.artifacts import CapturedStream, spooled_streams
from tooltrail.records import (
    CompleteOutput,
    Family,
    InvalidRecordError,
    InvocationFinishedError,
    NotFoundError,
    StreamRecord,
    UnavailableError,
    load_policy,
)
from tooltrail.records.canonical_json import encode
from tooltrail.store import _writes as writes
from tooltrail.store._clock import new_id, now
from tooltrail.store._finishing import FinishedRows, write_finished
from tooltrail.store._interruption import interrupted_output
from tooltrail.store._names import LAST, find_session, session_key
from tooltrail.store._publisher import StreamPublisher
from tooltrail.store._sessions import Opening, only_call_of, write_closed, write_opened
from tooltrail.store._spooled import (
    INTERRUPTED_ALONE,
    REASON,
    KnownInvocation,
    SpoolFile,
    find_known,
    look_at,
    salvage_stream,
    staging_in,
    stored_file,
)
from tooltrail.store._starting import Started, write_started
from tooltrail.store._writes import Chain
from tooltrail.store.asides import RECORD_FILE, AsideFolder, AsideRecord
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


def take_in(store: "Store", record: AsideRecord, aside: AsideFolder) -> tuple[list[SpoolFile], str]:
    """Record what was set aside; the folder stays as it is.

    Returns:
        What was found in the folder, as far as it is stored; and why it is not in the session that
        it named, or nothing.

    Raises:
        InvocationFinishedError: it is recorded already.
        InvalidRecordError, NotFoundError: the record or a file of its output is not whole, or this
            program does not know its family.
        UnavailableError: a file cannot be read, there is no room, the store cannot be written.
    """
    started = _started(store, record)
    with staging_in(aside.path.parent, record.id) as staging:
        invocation = _SetAside(store, started, record, staging)
        paths = spooled_streams(aside.path)
        found = {r: salvage_stream(store, invocation, r, path) for r, path in paths.items()}
        streams = {
            stream.record.role: invocation.captured(stream)
            for stream in _as_told(record, [one.captured for one in found.values()])
        }
        if record.complete_output is None:
            output = interrupted_output(record.call.tool_name, REASON, tuple(streams.values()))
        else:
            output = _output_of(record, started.family, streams)
        invocation.record(output, tuple(streams.values()))
    files = [stored_file(paths[role], streams[role], one.problem) for role, one in found.items()]
    return files, invocation.note


def refuse_another(store: "Store", record: AsideRecord, known: KnownInvocation) -> None:
    """Raise for a record that is not of the invocation that has its id.

    Raises:
        InvalidRecordError, NotFoundError: it is not, or this program does not know its family.
    """
    started = _started(store, record)
    told = (started.call.tool_name, started.family.name, started.policy.digest)
    if told != (known.tool_name, known.family, known.policy_digest):
        raise InvalidRecordError(f"invocation {known.id} was started as another call")


def look_into(record: AsideRecord, aside: AsideFolder) -> list[SpoolFile]:
    """What is in the folder of a record, read through.

    Raises:
        InvalidRecordError: its streams are not those that the record tells.
        UnavailableError: a file cannot be read.
    """
    files = [look_at(*file) for file in spooled_streams(aside.path).items()]
    if record.complete_output is not None:
        _refuse_others(record, {file.role: (file.digest, file.size) for file in files})
    return files


class _SetAside(Invocation):
    """An invocation of which the store knows nothing yet: its start is written with its end.

    Or its start at the most, of which the program was not told.

    Attributes:
        note: why it is not in the session that it named; empty when it is, or named none.
    """

    may_wait = False  # what is in the spool is safer as it is
    is_limited = False  # it is kept already, and has no other place

    def __init__(
        self, store: "Store", started: Started, record: AsideRecord, staging: Path
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
        self._started = started
        self._record = record
        self._staging = staging
        self._opening = opening
        self._arguments = writes.Body.of(started.call.arguments_bytes)
        self.is_witnessed = record.finished_at is not None
        self.closing_reason = None if self.is_witnessed else INTERRUPTED_ALONE

    @property
    def spool(self) -> Path:
        return self._staging

    def record(self, output: CompleteOutput, streams: tuple[StreamRecord, ...]) -> None:
        """Record an end as it was; where there is no room for it, not as another end.

        Raises:
            InvocationFinishedError: it is recorded already.
            DamageError: see `Invocation.finish`.
            UnavailableError: the same; also when the database refuses it.
        """
        try:
            self._end(output, streams)
        except InvocationFinishedError:
            raise
        except InvalidRecordError as error:
            raise UnavailableError(str(error)) from error

    def _write(
        self, connection: Connection, rows: FinishedRows, publisher: StreamPublisher
    ) -> None:
        known = find_known(connection, self.id)
        if known is not None:
            self._write_end(connection, known, rows, publisher)
            return
        named = self._named_chain(connection)
        chain = named or write_opened(connection, self._opening)
        key = write_started(connection, chain, self._started, self._arguments)
        ended = replace(rows, key=key, finished_at=self._record.finished_at)
        write_finished(connection, chain, ended, publisher)
        if named is None:
            self._close(connection, chain)

    def _write_end(
        self,
        connection: Connection,
        known: KnownInvocation,
        rows: FinishedRows,
        publisher: StreamPublisher,
    ) -> None:
        """End what had been started after all, in the session that it was started in."""
        chain = writes.lock_chain(connection, known.session_key, known.session_id)
        ended = replace(
            rows,
            key=known.key,
            started_at=known.started_at,
            finished_at=self._record.finished_at,
        )
        if not write_finished(connection, chain, ended, publisher):
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


def _started(store: "Store", record: AsideRecord) -> Started:
    family = store.families.named(record.family)
    policy = load_policy(record.policy, store.families)
    return Started(record.id, record.started_at, record.call, family, policy)


def _as_told(record: AsideRecord, found: list[CapturedStream]) -> Iterator[CapturedStream]:
    """The streams with what the record tells of them besides their bytes, if it has an end."""
    if record.complete_output is None:
        yield from found
        return
    told = _refuse_others(record, {s.record.role: (s.record.digest, s.record.size) for s in found})
    there = {stream.record.role: stream for stream in found}
    for role, facts in told.items():
        empty = CapturedStream(StreamRecord.from_bytes(role, b""), None)
        stream = there.get(role, empty)
        produced = ("produced_size", "produced_line_count", "loss_reason")
        known = {name: facts.get(name) for name in produced}
        yield replace(stream, record=stream.record.model_copy(update=known))


def _refuse_others(
    record: AsideRecord, found: Mapping[str, tuple[str, int]]
) -> dict[str, dict[str, Any]]:
    """What a record tells of its streams, by role, when it is these that were found.

    Raises:
        InvalidRecordError: one is missing, has other bytes, or is not told of.
    """
    result = (record.complete_output or {}).get("result")
    told = {facts["role"]: facts for facts in _streams_in(result)}
    for role in sorted({*told, *found}):
        facts = told.get(role)
        if facts is None:
            raise InvalidRecordError(f"{role}.zst is not told of in {RECORD_FILE}")
        if role not in found and facts.get("size"):
            raise InvalidRecordError(f"{role}.zst is missing")
        if role in found and found[role] != (facts["digest"], facts.get("size")):
            raise InvalidRecordError(f"{role}.zst was cut or altered since it was captured")
    return told


def _streams_in(value: object) -> Iterator[dict[str, Any]]:
    """What a result tells of each of its streams."""
    match value:
        case {"role": str(), "digest": str(), "produced_size": int()}:
            yield cast("dict[str, Any]", value)
        case dict():
            for member in cast("dict[str, object]", value).values():
                yield from _streams_in(member)
        case list():
            for member in cast("list[object]", value):
                yield from _streams_in(member)
        case _:
            pass


def _filled(value: object, streams: Mapping[str, StreamRecord]) -> object:
    """A result with its streams in the places where it tells of them."""
    match value:
        case {"role": str(role), "digest": str(), "produced_size": int()}:
            return streams[role]
        case dict():
            members = cast("dict[str, object]", value)
            return {name: _filled(member, streams) for name, member in members.items()}
        case list():
            return [_filled(member, streams) for member in cast("list[object]", value)]
        case _:
            return value


def _output_of(
    record: AsideRecord, family: Family, streams: Mapping[str, StreamRecord]
) -> CompleteOutput:
    """The output whose JSON is that of the record.

    Raises:
        InvalidRecordError: there is none in this family.
    """
    document = record.complete_output or {}
    result = _filled(document.get("result"), streams)
    for kind in family.result_types:
        try:
            typed = None if result is None else kind.model_validate(result)
            output = CompleteOutput.model_validate({**document, "result": typed})
        except ValidationError:
            continue
        if output.to_json() == encode(document):
            return output
    raise InvalidRecordError(f"its complete output is none of family {family.name}")
