"""Calls that an outbox tells of in two steps, when they began and when they had ended.

Either may have been recorded while the store was there. So an end is of the row that was started
with its id, in whichever session that is, and of nothing that has another end already.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self
from uuid import UUID

from sqlalchemy import Connection, select

from tooltrail.artifacts import CapturedStream, salvage
from tooltrail.records import (
    Digest,
    InvalidRecordError,
    InvocationFinishedError,
    ToolCall,
    digest_of,
)
from tooltrail.store._outbox.known_invocations import KnownInvocation, find_known_invocations
from tooltrail.store._recording import writes
from tooltrail.store._recording.ended_invocation import Scratch
from tooltrail.store._recording.finishing import write_finished
from tooltrail.store._recording.sessions import Opening, only_call_of, write_closed
from tooltrail.store._recording.starting import Beginning, write_started
from tooltrail.store._recording.whole import Whole
from tooltrail.store._recording.writes import Chain
from tooltrail.store.entries import CallEnded, CallStarted, Entry
from tooltrail.store.environment import environment_json
from tooltrail.store.tables import CanonicalResultRow, CompleteOutputRow, InvocationRow

if TYPE_CHECKING:
    from tooltrail.store.store import Store


class StartPlan(NamedTuple):
    """What is written of a start.

    Attributes:
        beginning: how it began.
        arguments: what it was called with.
    """

    beginning: Beginning
    arguments: writes.Body

    @classmethod
    def of(cls, entry: CallStarted) -> Self:
        """That of an entry.

        Raises:
            InvalidRecordError: it is of no call.
        """
        call, policy = call_of(entry), entry.policy.encode()
        beginning = Beginning(entry.id, entry.at, call, entry.family, digest_of(policy), policy)
        return cls(beginning, writes.Body.of(call.arguments_bytes))


def call_of(entry: CallStarted | CallEnded) -> ToolCall:
    """The call that an entry is about."""
    return ToolCall(
        tool_name=entry.tool_name,
        arguments_raw=entry.arguments_raw,
        call_id=entry.call_id,
        title=entry.title,
        message_id=entry.message,
        position=entry.position,
    )


def opening_of(entry: CallStarted) -> Opening:
    """The session that begins with a call that is alone in it."""
    environment = environment_json(dict(entry.alone or {}))
    return Opening(entry.session, entry.at, environment, only_call=entry.id)


class OpenCalls:
    """The calls of some entries that are started in the store, within one transaction."""

    def __init__(self, connection: Connection, entries: Iterable[Entry]) -> None:
        """Look for them; those that have ended are among them."""
        ids = [entry.id for entry in entries if isinstance(entry, CallEnded)]
        self._known = find_known_invocations(connection, ids) if ids else {}

    def __contains__(self, invocation_id: UUID) -> bool:
        """Whether the store has it."""
        return invocation_id in self._known

    def start(self, connection: Connection, chain: Chain, plan: StartPlan) -> None:
        """Write a start at the next place of a session."""
        beginning = plan.beginning
        self._known[beginning.id] = KnownInvocation(
            key=write_started(connection, chain, beginning, plan.arguments),
            id=beginning.id,
            session_key=chain.session_key,
            session_id=chain.session_id,
            state="started",
            tool_name=beginning.call.tool_name,
            family=beginning.family,
            policy_digest=beginning.policy_digest,
            started_at=beginning.at,
        )

    def end(self, connection: Connection, whole: Whole, chains: Sequence[Chain | None]) -> None:
        """Write the end of one.

        Args:
            connection: of the transaction.
            whole: all that is known of it.
            chains: those that are locked by now.

        Raises:
            InvalidRecordError: another call was started with its id.
            InvocationFinishedError: it has ended otherwise.
            DamageError: its session has no ledger head.
        """
        known = self._known[whole.beginning.id]
        called = (whole.beginning.call.tool_name, whole.beginning.family)
        if called != (known.tool_name, known.family):
            raise InvalidRecordError(f"invocation {known.id} was started as another call")
        locked = {chain.session_key: chain for chain in chains if chain is not None}
        chain = locked.get(known.session_key) or writes.lock_chain(
            connection, known.session_key, known.session_id
        )
        rows = replace(whole.rows, started_at=known.started_at)
        if not write_finished(connection, chain, known.key, rows, whole.publisher):
            raise InvocationFinishedError(f"invocation {known.id} has ended otherwise")
        is_alone = only_call_of(connection, known.session_key) == known.id
        if is_alone and chain.closed_at is None:
            write_closed(connection, chain, rows.ended_at())


def ends_missing(connection: Connection, ends: Sequence[CallEnded]) -> set[UUID]:
    """Of ends whose calls the store has, those that it does not have itself.

    A producer that has shown nobody a result tells of whole calls only.
    """
    shown = {entry.id: entry for entry in ends if entry.shown is not None}
    if not shown:
        return set()
    row, output, result = InvocationRow, CompleteOutputRow, CanonicalResultRow
    query = (
        select(row.id, output.digest, result.digest)
        .join(output, output.invocation_key == row.key)
        .join(result, result.invocation_key == row.key)
        .where(row.id.in_(shown))
    )
    there = {name: told for name, *told in connection.execute(query)}
    return {name for name, entry in shown.items() if there.get(name) != _digests(entry)}


def _digests(entry: CallEnded) -> list[Digest]:
    canonical = "" if entry.shown is None else entry.shown.canonical
    return [digest_of(entry.complete_output.encode()), digest_of(canonical.encode())]


def salvaged(
    store: "Store", entry: CallEnded, scratch: Scratch, folder: Path
) -> Mapping[Digest, CapturedStream]:
    """Staged anew, the streams of an end that are to become artifacts and are in the spool alone.

    Raises:
        InvalidRecordError: what is there is not what the entry tells of.
        UnavailableError: it cannot be read, or there is no room for another file.
    """
    found: dict[Digest, CapturedStream] = {}
    for stream in entry.all_streams():
        if stream.spooled is None or stream.path is None:
            continue
        file = folder / f"{stream.role}.zst"
        if not file.exists():
            # Nobody is to wait for what does not come back.
            raise InvalidRecordError(f"stream {stream.role!r} is not in {folder}")
        scratch.claim()
        one = salvage(
            file,
            stream.role,
            scratch.folder / f"{entry.id}-{len(found)}.zst",
            edge_bytes=0,
            inline_bytes=0,
            frame_size=store.archive.frame_size,
        ).captured
        if one.record.digest != stream.spooled.digest:
            raise InvalidRecordError(f"stream {stream.role!r} of {folder} was cut or altered")
        found[one.record.digest] = one
    return found
