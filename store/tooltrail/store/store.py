"""A store that is open: where sessions begin, and where everything recorded is read."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import UUID

from tooltrail.artifacts import ArtifactArchive, SpoolOwner, defer_sink
from tooltrail.journal.clock import new_id, now
from tooltrail.records import FamilyRegistry, NotFoundError, Policy, ToolCall, UnavailableError
from tooltrail.store._engines.database import Database
from tooltrail.store._engines.reserve import DiskReserve
from tooltrail.store._engines.targets import SqliteTarget
from tooltrail.store._outbox.known_stores import remember
from tooltrail.store._reading.ranges import RangeKeeper
from tooltrail.store._recording.group_commit import GroupCommit, Write
from tooltrail.store._recording.keys import Taken, checked_key, refuse_conflict
from tooltrail.store._recording.running import Place, RunningInvocation, begin
from tooltrail.store._recording.sessions import Opening, claim_session, open_once, write_opened
from tooltrail.store._recording.starting import Started, commit_start, plan_start
from tooltrail.store._recording.threads import WriterThreads
from tooltrail.store._recording.upkeep import Upkeep, read_upkeep
from tooltrail.store._roots.mark_names import mark_path
from tooltrail.store._roots.remembered import resolve_root
from tooltrail.store.entries import Entry, SessionOpened
from tooltrail.store.environment import current_environment, environment_json
from tooltrail.store.info import StoreInfo
from tooltrail.store.invocation import Invocation
from tooltrail.store.limits import StoreLimits
from tooltrail.store.on_unavailable import Fallback, OnUnavailable, SessionAwayError
from tooltrail.store.reader import Reader
from tooltrail.store.recorder import Session


class Store:
    """An open store. Safe to share between threads, and with a forked child.

    Made by `create_store` or `open_store`. Any number of processes may have the same store open.
    A child that was forked while a thread of its parent was reading for long gets
    `UnavailableError` where it uses an SQLite file, since SQLite cannot be shared then.

    Attributes:
        database: the connection.
        writes: how records get into it.
        threads: in which records of tasks are written.
        archive: the artifacts. When `relocate` has moved them, the next record that has some finds
            that out and goes on at the new root; a store that only reads is to be opened again.
        info: what the store knows about itself.
        upkeep: the newest upkeep that this process knows of; for whoever commits references.
        spool: local folder for output that is being captured.
        policy: the budgets of new records.
        families: the tool families.
        limits: how much is kept of what tools print.
        fallback: how it records while it cannot be reached.
    """

    def __init__(
        self,
        *,
        database: Database,
        archive: ArtifactArchive,
        info: StoreInfo,
        upkeep: Upkeep,
        spool: Path,
        policy: Policy,
        families: FamilyRegistry,
        limits: StoreLimits,
        on_unavailable: OnUnavailable = "outbox",
        check: "Callable[[Store], None] | None" = None,
    ) -> None:
        self._check = check
        self._is_remembered = False
        self._ranges = RangeKeeper(database)
        self.database = database
        self.writes = GroupCommit(database)
        self.threads = WriterThreads()
        self.archive = archive
        self.info = info
        self.upkeep = upkeep
        self.spool = spool
        self.owner = SpoolOwner(spool, str(info.id))
        self.policy = policy.covering(families)
        self.families = families
        self.limits = limits
        self.fallback = Fallback(self, on_unavailable)
        target = database.target
        self.reserve = DiskReserve(target.path if isinstance(target, SqliteTarget) else None)

    def confirm(self) -> None:
        """Find out that it is this store, when it was opened while its database was away.

        Raises:
            StoreNotFoundError, SchemaMismatchError, DamageError, UnavailableError: see
                `open_store`.
        """
        # Once, as another thread may have done so meanwhile.
        check = self._check
        if check is not None:
            check(self)
            self._check = None

    @property
    def is_confirmed(self) -> bool:
        """Whether it is known to be this store, and this process was let in once."""
        return self._check is None

    @property
    def reader(self) -> Reader:
        """Everything that can be asked of the store; see also `confirm`."""
        self.confirm()
        return Reader(self.database, self.archive, self.spool, self._ranges)

    def open_session(
        self,
        *,
        title: str | None = None,
        agent: str | None = None,
        parent: UUID | None = None,
        idempotency_key: str | None = None,
    ) -> Session:
        """Begin a conversation; durable when this returns.

        With an idempotency key it is begun once, by whichever process is first, and is the same
        session whenever it is asked for again, closed or not.

        Args:
            title: what people will call it.
            agent: the name of the agent that holds it.
            parent: the session that started this one, when it is a sub-agent's.
            idempotency_key: any text of up to 1,000 characters, in use for nothing else in the
                store.

        Raises:
            NotFoundError: there is no session `parent`.
            IdempotencyConflictError: the key names a session with another title, agent or parent,
                or an invocation.
            InvalidRecordError: the key is empty or too long.
            UnavailableError: the store cannot be written now.
        """
        self._prepare()
        name, at = new_id(), now()
        environment = current_environment()

        def attempt() -> Session:
            named = None if parent is None else self._parent(parent)
            opening = Opening(name, at, environment_json(environment), title, agent, named)
            return self._opened(opening, idempotency_key)

        def instead() -> tuple[Entry, Session]:
            if idempotency_key is not None:
                checked_key(idempotency_key)
            entry = SessionOpened(
                id=name,
                at=at,
                environment=environment,
                title=title,
                agent=agent,
                parent=parent,
                idempotency_key=idempotency_key,
            )
            session = Session(self, 0, name, is_own=True, opening=attempt)
            if self.fallback.choice == "drop_and_count":
                self.fallback.unopened[name] = session
            return entry, session

        return self.fallback.run(attempt, instead)

    def _parent(self, parent: UUID) -> tuple[int, UUID] | None:
        """Key and id of a session; None for one that was dropped and that nobody can open."""
        dropped = self.fallback.unopened.get(parent)
        try:
            if dropped is None:
                return self.reader.session_key(parent), parent
            dropped.resolve()
        except SessionAwayError:
            return None
        except NotFoundError:
            if self.fallback.is_missed(parent):
                return None
            raise
        return dropped.key, dropped.id

    def _opened(self, opening: Opening, idempotency_key: str | None) -> Session:
        claimed = None if idempotency_key is None else claim_session(idempotency_key, opening)
        found = self.writes.run(Write(lambda c: open_once(c, opening, claimed)))
        if isinstance(found, Taken):
            if claimed is not None:
                refuse_conflict(claimed, found)
            key = self.reader.session_key(found.subject_id)
            return Session(self, key, found.subject_id, is_own=True)
        return Session(self, found.session_key, opening.id, is_own=True)

    def start_alone(
        self, call: ToolCall, *, family: str | None = None, policy: Policy | None = None
    ) -> Invocation:
        """Record that a tool is about to run, in a session that is for this call alone.

        The session begins with the call and is closed with it, each in one transaction; `repair`
        closes it, too, when the call is interrupted. For arguments and errors see `Session.start`.
        """
        self._prepare()
        environment = current_environment()
        name = new_id()

        def attempt(started: Started) -> RunningInvocation:
            spelled = environment_json(environment)
            opening = Opening(name, started.at, spelled, only_call=started.id)
            key, chain = commit_start(
                self, started, lambda connection: write_opened(connection, opening)
            )
            session = Session(self, chain.session_key, name, is_own=False, only_call=started.id)
            return RunningInvocation(self, session, key, started)

        def away(started: Started) -> Place:
            session = Session(self, 0, name, is_own=False, only_call=started.id)
            return Place(session, environment)

        return begin(self, partial(plan_start, self, call, family, policy), attempt, away)

    def join_session(self, session_id: UUID) -> Session:
        """Go on with a session that is open, from this or any other process.

        Used in a `with` block it stays open at the end: whoever opened it closes it.

        While the store is away nobody can tell whether it has such a session, so that with an
        outbox it is taken for one. Should there be none, what was recorded in it is delivered into
        a session of its own, titled `delivered late for session …`, and `repair` says so; what is
        recorded when the store is back raises `NotFoundError`.

        Raises:
            NotFoundError: there is no such session: neither in the store, which is there, nor in
                the outbox. Outboxes in other spools are looked into while anything waits here.
            SessionClosedError: by the first record, when it was closed.
            UnavailableError: the store is away, and nothing is to be kept for later.
        """
        self._prepare()
        session = Session(self, 0, session_id, is_own=False)
        self.fallback.catch_up()
        try:
            session.resolve()
        except SessionAwayError as error:
            self._refuse_unknown(session, error)
        except UnavailableError:
            if self.fallback.choice == "raise":
                raise
        return session

    def _refuse_unknown(self, session: Session, away: SessionAwayError) -> None:
        """Raise unless a session that the store had not just now may come there later.

        Raises:
            NotFoundError: it may not.
            SessionAwayError: it may, and nothing is to be recorded in it before.
        """
        if self.fallback.is_awaited(session.id):
            if self.fallback.choice == "raise":
                raise away
            return
        try:
            # It may have been delivered between the two looks.
            session.resolve()
        except SessionAwayError:
            raise NotFoundError(f"no session has the id {session.id}") from away

    def _prepare(self) -> None:
        """Get ready to record: hold room back, and remember the store for when it is away.

        Not when it is opened, since whoever only reads leaves nothing behind.
        """
        self.reserve.hold()
        if not self._is_remembered and self.is_confirmed and self.fallback.choice != "raise":
            remember(self.spool, self.database.target, self.info)
            self._is_remembered = True

    def find_artifacts(self) -> str | None:
        """Look whether the artifacts are where they should be; the reason when they are away."""
        try:
            self.archive.sink.exists(mark_path(self.info.id))
        except UnavailableError as error:
            return str(error)
        return None

    def has_moved(self, seen: Upkeep) -> bool:
        """Whether the artifacts were moved since then; this process goes on where they are now.

        Raises:
            UnavailableError: the database cannot be read now.
        """
        with self.database.read() as connection:
            current = read_upkeep(connection)
        if current.artifact_root == seen.artifact_root:
            return False
        self.follow(current)
        return True

    def follow(self, upkeep: Upkeep) -> ArtifactArchive:
        """Go on with the artifacts at the root that the store remembers now."""
        root = upkeep.artifact_root
        sink = defer_sink(resolve_root(self.database.target, root), mark=mark_path(self.info.id))
        self.archive = ArtifactArchive(sink)
        self.info = replace(self.info, artifact_root=root)
        # Last: who reads this one first and the archive then never has an older archive.
        self.upkeep = upkeep
        return self.archive

    def make_room(self) -> None:
        """Give up the room that is held back on the disk of the database, for what must be written.

        Connections are made anew, since those to a database on a full disk write with more care.
        """
        self.reserve.release()
        self.database.close()

    def close(self) -> None:
        """Give the connections back, when what tasks are recording is done.

        Open sessions stay open in the store.
        """
        self.threads.close()
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
