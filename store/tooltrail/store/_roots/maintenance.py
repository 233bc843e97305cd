"""Runs over the objects of a store: one at a time, each with an account that survives its death.

A run holds a lock for as long as it lives, which the system takes back when its process dies: an
`flock` on a file beside an SQLite database, a session's advisory lock on PostgreSQL. Its row in
`maintenance_runs` is committed before it touches anything, and a run that finds the row of another
without an end closes it as `abandoned`, since with the lock in hand it knows that one to be dead.
Should a server have given up a connection whose process lives, that process finds its row closed
at its next step, and stops.
"""

import fcntl
import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from sqlalchemy import Connection, false, insert, select, text, update
from sqlalchemy.exc import DBAPIError, OperationalError

from tooltrail.artifacts import PRIVATE_FILE
from tooltrail.journal.clock import new_id, now
from tooltrail.records import TooltrailError, UnavailableError
from tooltrail.records.canonical_json import encode_text
from tooltrail.store._engines.database import Database
from tooltrail.store._engines.targets import SqliteTarget
from tooltrail.store._recording.upkeep import admit_no_references
from tooltrail.store.environment import current_environment, environment_json
from tooltrail.store.tables import MaintenanceRunRow

if TYPE_CHECKING:
    from tooltrail.store.store import Store

Kind = Literal["gc", "relocate", "repair"]
Outcome = Literal["finished", "interrupted", "failed", "abandoned"]

RUN_LOCK = 0x746F6F67
"""PostgreSQL advisory lock that a run holds for as long as it lives."""

_LOCK_NOT_AVAILABLE = "55P03"
"""SQLSTATE of a row that somebody else has locked, for whom nobody waits."""

_LOCK_SUFFIX = "-maintenance"
"""Ends the name of the file beside an SQLite database whose lock a run holds.

Not the database file itself: to close any descriptor of that gives up SQLite's own locks.
"""


class MaintenanceRun:
    """The account of one run that is under way. One thread.

    Attributes:
        id: of the run.
        report: what its end will say; a mapping that JSON can carry.
    """

    def __init__(self, database: Database, run_id: UUID) -> None:
        self._database = database
        self.id = run_id
        self.report: Mapping[str, Any] = {}

    def go_on(self, connection: Connection) -> None:
        """Keep those who commit references out of this transaction, as one who may still act.

        Raises:
            UnavailableError: another run has taken over.
        """
        admit_no_references(connection)
        self._refuse_closed(connection)

    @contextmanager
    def alone(self) -> Generator[Callable[[], None]]:
        """While the block lasts no other run begins, and who records is not held off.

        For what takes as long as an artifact root takes to answer. What is yielded asks, before
        something that cannot be undone, whether this still holds.

        On SQLite nobody can take the lock of the file from a process that lives. On PostgreSQL it
        goes with its connection; so the row of this run is kept, which every other one closes in
        the transaction in which it begins, as does one of this run that nobody answered.

        Raises:
            UnavailableError: another run has taken over, also later, by what is yielded.
        """
        if isinstance(self._database.target, SqliteTarget):
            with self._database.read() as connection:
                self._refuse_closed(connection)
            yield _nothing
        else:
            with self._database.write() as connection:
                self._refuse_closed(connection)
                yield partial(self.confirm, connection)

    def confirm(self, connection: Connection) -> None:
        """Ask, before something that cannot be undone, whether this transaction still stands.

        Raises:
            DBAPIError: its connection is gone, and what it held with it.
        """
        if connection.dialect.name == "postgresql":
            connection.execute(_STILL_THERE)

    def _refuse_closed(self, connection: Connection) -> None:
        """Raise when this run was closed; on PostgreSQL nobody can close it until the end."""
        finished_at = connection.scalar(
            select(MaintenanceRunRow.finished_at)
            .where(MaintenanceRunRow.id == self.id)
            .with_for_update()
        )
        if finished_at is not None:
            raise UnavailableError(f"maintenance run {self.id} was taken for dead and closed")

    def count(self, connection: Connection, objects: int, stored_bytes: int) -> None:
        """Add to the account what was done, unless it is closed."""
        if objects:
            row = MaintenanceRunRow
            connection.execute(
                update(row)
                .where(row.id == self.id, row.finished_at.is_(None))
                .values(
                    object_count=row.object_count + objects,
                    stored_bytes=row.stored_bytes + stored_bytes,
                )
            )

    def end(self, connection: Connection, outcome: Outcome) -> None:
        """Close the account with its report, unless it is closed."""
        connection.execute(
            update(MaintenanceRunRow)
            .where(MaintenanceRunRow.id == self.id, MaintenanceRunRow.finished_at.is_(None))
            .values(finished_at=now(), outcome=outcome, report=encode_text(dict(self.report)))
        )


def refuse_read_only(store: "Store") -> None:
    """Raise for a store in which no run can be recorded, before one is found to have nothing to do.

    Raises:
        UnavailableError: its database is read-only, or cannot be written now.
    """
    with store.database.write() as connection:
        # SQLite begins to write only with a statement that could.
        connection.execute(update(MaintenanceRunRow).where(false()).values(outcome="failed"))


@contextmanager
def maintenance_run(
    database: Database,
    kind: Kind,
    facts: Mapping[str, Any],
    *,
    prepare: Callable[[], None] | None = None,
) -> Generator[MaintenanceRun]:
    """A run that is recorded before the block begins, and whose end is recorded after it.

    Args:
        database: of the store.
        kind: what it does.
        facts: what it was asked to do; a mapping that JSON can carry, without secrets.
        prepare: done when no other run is under way, and before anything is recorded.

    Raises:
        UnavailableError: another run is under way, or the store cannot be written.
    """
    with _alone(database):
        if prepare is not None:
            prepare()
        run = _begin(database, kind, facts)
        try:
            yield run
        except BaseException as error:
            outcome: Outcome = "failed" if isinstance(error, Exception) else "interrupted"
            # What went wrong is worth more than that its account cannot be closed either.
            with suppress(TooltrailError), database.write() as connection:
                run.end(connection, outcome)
            raise
        with database.write() as connection:
            run.end(connection, "finished")


def record_finished_run(
    database: Database,
    kind: Kind,
    began_at: datetime,
    *,
    object_count: int,
    stored_bytes: int,
    report: Mapping[str, Any],
) -> None:
    """The account of a run that deletes nothing that others may refer to, written at its end.

    Any number of such runs may be under way, and beside one of `maintenance_run`.

    Raises:
        UnavailableError: the store cannot be written.
    """
    with database.write() as connection:
        connection.execute(
            insert(MaintenanceRunRow).values(
                id=new_id(),
                kind=kind,
                environment=environment_json(current_environment()),
                facts=encode_text({}),
                started_at=began_at,
                object_count=object_count,
                stored_bytes=stored_bytes,
                finished_at=now(),
                outcome="finished",
                report=encode_text(dict(report)),
            )
        )


def _nothing() -> None:
    """What there is to ask where nothing can have changed."""


def _begin(database: Database, kind: Kind, facts: Mapping[str, Any]) -> MaintenanceRun:
    run = MaintenanceRun(database, new_id())
    moment = now()
    is_open = MaintenanceRunRow.finished_at.is_(None)
    with database.write() as connection:
        admit_no_references(connection)
        # Who holds the row of a run still acts, although its lock was lost, and may do so for long:
        # nobody who records is to wait for that. On SQLite there is no such lock, nor such a run.
        rows = select(MaintenanceRunRow.key).where(is_open).with_for_update(nowait=True)
        try:
            connection.execute(rows).all()
        except OperationalError as error:
            if getattr(error.orig, "sqlstate", None) != _LOCK_NOT_AVAILABLE:
                raise
            raise _busy(database.target) from error
        connection.execute(
            update(MaintenanceRunRow).where(is_open).values(finished_at=moment, outcome="abandoned")
        )
        connection.execute(
            insert(MaintenanceRunRow).values(
                id=run.id,
                kind=kind,
                environment=environment_json(current_environment()),
                facts=encode_text(dict(facts)),
                started_at=moment,
                object_count=0,
                stored_bytes=0,
            )
        )
    return run


@contextmanager
def _alone(database: Database) -> Generator[None]:
    target = database.target
    if isinstance(target, SqliteTarget):
        with _locked_file(target.path.with_name(target.path.name + _LOCK_SUFFIX)):
            yield
    else:
        with _locked_server(database):
            yield


@contextmanager
def _locked_file(path: Path) -> Generator[None]:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)
    except OSError as error:
        raise UnavailableError(f"{path} cannot be locked: {error.strerror}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise _busy(path) from error
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _locked_server(database: Database) -> Generator[None]:
    with database.autocommit() as connection:
        if not connection.scalar(_TRY_LOCK, {"lock": RUN_LOCK}):
            raise _busy(database.target)
        try:
            yield
        finally:
            # The connection goes back to its pool, and the lock with it if it were kept. Where the
            # server has gone, so has the lock.
            with suppress(DBAPIError):
                connection.execute(_UNLOCK, {"lock": RUN_LOCK})


def _busy(where: object) -> UnavailableError:
    return UnavailableError(f"another run of gc, relocate or repair is under way: {where}")


_TRY_LOCK = text("SELECT pg_try_advisory_lock(:lock)")
_STILL_THERE = text("SELECT 1")
_UNLOCK = text("SELECT pg_advisory_unlock(:lock)")
