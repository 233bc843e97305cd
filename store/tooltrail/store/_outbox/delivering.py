"""Brings what waits in an outbox into the store: in order, each entry once, by one process.

A file is removed when all in it is in the store, or put away with the reason. What a newer program
wrote waits for one, and so does all that is behind it. How far it is
delivered only its process knows: a delivery that was killed is done again, and meets what it has
written by its ids.
"""

from collections.abc import Generator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING
from uuid import UUID

from tooltrail.journal.clock import new_id
from tooltrail.records import (
    DamageError,
    InvalidRecordError,
    StoreNotFoundError,
    TooltrailError,
    UnavailableError,
)
from tooltrail.store._outbox.delivery_windows import One, batches_of, iter_windows
from tooltrail.store._outbox.delivery_writes import BatchWriter, Told, entries_there, ids_there
from tooltrail.store._outbox.entry_plans import plan_call
from tooltrail.store._outbox.journal_lines import Line, iter_lines
from tooltrail.store._outbox.reach import Reach
from tooltrail.store._recording.ended_invocation import Scratch
from tooltrail.store._recording.group_commit import Write
from tooltrail.store._recording.keys import Claim, find_taken_unlocked
from tooltrail.store._recording.sessions import Opening, claim_session
from tooltrail.store._recording.side_by_side import Task, in_order
from tooltrail.store.entries import (
    CallEnded,
    Entry,
    NewerEntryError,
    SessionOpened,
    read_entry,
)
from tooltrail.store.info import read_info
from tooltrail.store.outbox import Outbox
from tooltrail.store.recorder import Session

if TYPE_CHECKING:
    from tooltrail.store.store import Store

_LATE = "there is more than is delivered at once"

_REFUSALS = (TooltrailError, TypeError, ValueError, LookupError, AttributeError)
"""What an entry can lead to that no program of ours has written; nobody else is to wait for it."""


@dataclass(frozen=True, slots=True)
class KeptEntry:
    """An entry of an outbox that cannot be delivered.

    Attributes:
        file: the journal that it was in.
        line: its number there, from 1.
        reason: why, in one sentence.
        kept_in: the file that it was moved to; the reason is beside it.
    """

    file: str
    line: int
    reason: str
    kept_in: str


@dataclass(slots=True)
class Delivery(Told):
    """What a delivery came to: what was written, what was known, notes on either, and the rest.

    Attributes:
        kept: entries that cannot be in the store.
        failure: why something still waits; empty when nothing does.
        waiting_count: entries that still wait, where that was looked for.
        is_under_way: whether something waits only because another process delivers it, or because
            there is more than was to be delivered at once.
        is_own: whether it is the latter.
    """

    kept: list[KeptEntry] = field(default_factory=list[KeptEntry])
    failure: str = ""
    waiting_count: int = 0
    is_under_way: bool = False
    is_own: bool = False


def deliver(
    store: "Store",
    outbox: Outbox,
    *,
    others: Sequence[Outbox] = (),
    wait: bool = True,
    seconds: float | None = None,
) -> Delivery:
    """Deliver what waits, as far as that can be done now.

    Args:
        store: where to.
        outbox: of that store.
        others: of the same, in which sessions may wait that started some of these.
        wait: for another process that delivers, half a minute at most.
        seconds: after which no further batch is begun but the first; without an end by default.

    Raises:
        StoreNotFoundError, SchemaMismatchError: see `Store.confirm`.
    """
    done = Delivery()
    deadline = None if seconds is None else monotonic() + seconds
    try:
        if outbox.journal.is_waiting():
            with outbox.journal.delivering(wait=wait) as is_ours:
                is_whole = is_ours and _Deliverer(store, outbox, Reach(outbox, others), done).run(
                    deadline
                )
            if not is_whole:
                busy = f"{outbox.journal.deliverer()} is delivering it"
                done.failure, done.is_under_way = _LATE if is_ours else busy, True
                done.is_own = is_ours
    except OSError as error:
        done.failure = f"outbox {outbox.journal.folder}: {error.strerror}"
    except (UnavailableError, DamageError) as error:
        done.failure = str(error)
    return done


class _Deliverer:
    def __init__(self, store: "Store", outbox: Outbox, reach: Reach, done: Delivery) -> None:
        self._store = store
        self._reach = reach
        self._journal = outbox.journal
        self._outbox = outbox
        self._progress = outbox.progress
        self._done = done
        self._seen: set[UUID] = set()
        self._looked_for: set[UUID] = set()
        self._newer = ""

    def run(self, deadline: float | None) -> bool:
        """Deliver file by file; whether nothing is left.

        Raises:
            OSError, TooltrailError: it ends there; see `deliver`.
        """
        self._store.confirm()
        # First, so that while the store is away the journal stays as it is; and each time, since
        # another one may have been made at its place.
        with self._store.database.read() as connection:
            found = read_info(connection).id
        if found != self._store.info.id:
            raise StoreNotFoundError(
                f"store {self._store.info.id} is not at {self._store.database.target} any more, "
                f"where store {found} is now; what waits in {self._journal.folder} "
                "is not of that one"
            )
        is_first = True
        while files := self._journal.seal():
            for file in files:
                self._progress.begin(file)
                for batch in self._batches(file):
                    if not is_first and deadline is not None and monotonic() >= deadline:
                        return False
                    self._deliver(file, batch)
                    self._progress.note(one.line.number for one in batch)
                    is_first = False
                if self._newer:
                    raise UnavailableError(self._newer)
                self._journal.remove(file)
                self._progress.forget()
        self._journal.tidy()
        return True

    def _batches(self, file: Path) -> Generator[list[One]]:
        """Entries of one session, as many as one transaction takes."""
        for window in iter_windows(self._entries(file)):
            self._seen = self._there([one.entry for one in window])
            yield from batches_of(window, self._names(window))

    def _entries(self, file: Path) -> Generator[One]:
        for line in iter_lines(file, is_ended=True):
            if self._progress.is_done(line.number):
                continue
            try:
                entry = self._read(file, line)
            except NewerEntryError as error:
                # Whatever is behind it may be of the same session.
                self._newer = (
                    f"line {line.number:,} of {file} {error}: it waits for a newer program"
                )
                return
            if entry is None:
                self._progress.note([line.number])
            else:
                yield One(line, entry)

    def _names(self, window: Sequence[One]) -> dict[UUID, UUID]:
        """What the sessions of a window are called in the store, where that is known."""
        entries = [one.entry for one in window]
        names = {name: self._outbox.joined(name) for name in {one.session for one in entries}}
        claims = [one for one in map(_claim_of, entries) if one is not None]
        known = find_taken_unlocked(self._store.database, claims)
        sessions = {name: met.subject_id for name, met in known.items() if met.kind == "session"}
        return names | sessions

    def _read(self, file: Path, line: Line) -> Entry | None:
        """None for a line that is put away.

        Raises:
            NewerEntryError: this one is left.
        """
        if line.data is None:
            self._keep(file, line, "it was altered or cut: it is not what its digest names")
            return None
        try:
            return read_entry(line.data)
        except NewerEntryError:
            raise
        except InvalidRecordError as error:
            self._keep(file, line, str(error))
            return None

    def _deliver(self, file: Path, batch: Sequence[One]) -> None:
        """Deliver a batch, as a whole if that can be.

        Raises:
            UnavailableError: the store is away.
            DamageError: it is damaged.
        """
        try:
            told = self._write([one.entry for one in batch])
        except UnavailableError:
            raise
        except _REFUSALS as error:
            if isinstance(error, DamageError) and error.path != "ledger_heads":
                raise
            if len(batch) > 1:
                for one in batch:
                    self._deliver(file, [one])
            elif self._there([batch[0].entry]):
                # A commit that nobody had answered came through between the look and the write.
                self._done.known_count += 1
            else:
                reason = str(error) if isinstance(error, TooltrailError) else f"no entry: {error!r}"
                self._keep(file, batch[0].line, reason)
            return
        self._done.add(told)

    def _write(self, entries: Sequence[Entry], outbox: Outbox | None = None) -> Told:
        """Write entries of one session of an outbox, by default of the one that is delivered."""
        outbox = outbox or self._outbox
        if isinstance(entries[0], SessionOpened) and entries[0].parent is not None:
            self._write_parent(entries[0].parent)
        name = outbox.joined(entries[0].session)
        scratch = Scratch(self._store, new_id())
        session = Session(self._store, 0, name, is_own=False)
        spool = self._journal.folder.parent
        try:
            ended = [
                entry
                for entry in entries
                if isinstance(entry, CallEnded) and entry.id not in self._seen
            ]
            plan = partial(plan_call, self._store, session, scratch=scratch, spool=spool)
            tasks = [Task(partial(plan, entry), self._is_published(entry)) for entry in ended]
            with closing(in_order(tasks, self._store.archive.concurrent_puts)) as planned:
                plans = {entry.id: next(planned) for entry in ended}
            writer = BatchWriter(self._store, name, entries, self._reach, plans)
            told = self._store.writes.run(Write(writer.write))
        finally:
            scratch.leave()
        if writer.joined is not None:
            # Before the file goes that says it; until then it is found out anew.
            outbox.join(entries[0].session, writer.joined)
        return told

    def _is_published(self, entry: CallEnded) -> bool:
        """Whether any of its output becomes an artifact, as far as its sizes tell."""
        most = self._store.policy.inline_bytes
        return any(
            stream.path is not None or len(stream.content) > most for stream in entry.all_streams()
        )

    def _write_parent(self, parent: UUID) -> None:
        """Write the beginning of a session that waits in another outbox, before what it started."""
        if parent in self._looked_for or not self._reach.is_waiting_elsewhere():
            return
        self._looked_for.add(parent)
        with self._store.database.read() as connection:
            if ids_there(connection, [self._reach.joined(parent)]):
                return
        found = self._reach.find_opening(parent)
        if found is not None:
            outbox, entry = found
            try:
                self._write([entry], outbox)
            except UnavailableError:
                raise
            except _REFUSALS:
                # Its own delivery meets that, too, or has written it just now.
                return

    def _there(self, entries: Sequence[Entry]) -> set[UUID]:
        """The ids of those that the store has, as far as can be seen without a lock."""
        with self._store.database.read() as connection:
            return entries_there(connection, entries)

    def _keep(self, file: Path, line: Line, reason: str) -> None:
        place = f"{reason} ({file.name}, line {line.number:,})"
        kept = self._outbox.put_away.keep(line.raw, place)
        self._done.kept.append(KeptEntry(str(file), line.number, reason, str(kept)))


def _claim_of(entry: Entry) -> Claim | None:
    """The key by which a session begins once; None without one, or for one that is none."""
    if not isinstance(entry, SessionOpened) or entry.idempotency_key is None:
        return None
    with suppress(InvalidRecordError):
        return claim_session(entry.idempotency_key, Opening(entry.id, entry.at, ""))
    return None
