"""The recorder, with which all sessions of a process append facts to one journal."""

from asyncio import Future
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from tooltrail.journal.frames import Cursor
from tooltrail.journal.log import Acknowledge, Entry, JournalLog, sync_files
from tooltrail.journal.owners import Owner
from tooltrail.journal.segments import JOURNAL_FOLDER
from tooltrail.journal.tasks import AppendingThread
from tooltrail.records.errors import InvalidRecordError, UnavailableError, check_type

if TYPE_CHECKING:
    from tooltrail.records import FamilyRegistry, Policy

T = TypeVar("T")


class Ingestion(Protocol):
    """The ingester of this process; the code that opens the store provides one."""

    def notice(self) -> None:
        """Take note that facts were appended. Returns at once."""
        ...

    def wait(self, cursors: Sequence[Cursor]) -> None:
        """Wait until facts are committed in the database.

        Raises:
            UnavailableError: the database or the sink cannot be reached in time.
            InvalidRecordError: a fact was rejected.
        """
        ...


class Recorder:
    """Appends facts and acknowledges them. Safe for threads, tasks and forked children.

    Attributes:
        spool: folder of the journal and of output that is being captured.
        log: the journal.
        owner: the lock that shows that this process is alive.
        policy: budgets of new records.
        families: the tool families.
        acknowledge: which failures a record survives once it is acknowledged.
        strict: whether to raise if a record is not in the store in time. Otherwise the record is
            acknowledged as `journal`, and `Finished.acknowledged` is `journal`.
        free_bytes: bytes that a capture leaves free on the disk of the spool.
    """

    def __init__(
        self,
        spool: Path,
        *,
        policy: "Policy",
        families: "FamilyRegistry",
        acknowledge: Acknowledge = "journal",
        strict: bool = False,
        ingestion: Ingestion | None = None,
        free_bytes: int | None = None,
    ) -> None:
        """Prepare. The first record creates the spool and the journal.

        The arguments are the attributes. Raises `InvalidRecordError` if records are acknowledged as
        `store` and there is no `ingestion`.
        """
        from tooltrail.records import Policy  # noqa: PLC0415  the caller has imported it

        check_type("policy", policy, Policy)
        if acknowledge == "store" and ingestion is None:
            raise InvalidRecordError("`store` cannot be acknowledged without an ingester")
        self.spool = spool
        self.log = JournalLog(spool / JOURNAL_FOLDER)
        self.owner = Owner(spool)
        self.policy = policy.covering(families)
        self.families = families
        self.acknowledge: Acknowledge = acknowledge
        self.strict = strict
        self.free_bytes = free_bytes
        self._ingestion = ingestion
        self._thread = AppendingThread(self.log.append, self._acknowledged)

    def append(self, entries: Sequence[Entry]) -> Acknowledge:
        """Sync the files that facts name, append the facts, and return which failures they survive.

        Raises:
            InvalidRecordError: a fact cannot be recorded, or was rejected.
            UnavailableError: the spool cannot be written; or with `strict` the database cannot be
                reached.
        """
        sync_files(entries)
        return self._acknowledged(self.log.append(entries))

    def append_async(
        self, make: Callable[[], tuple[Sequence[Entry], T]]
    ) -> Future[tuple[Acknowledge, T]]:
        """Make facts and append them in a thread, together with those of other tasks.

        The order is that of the calls, awaited or not. A task that is cancelled while it waits does
        not learn whether its facts were appended.

        Args:
            make: returns the facts and the result for the caller.

        Raises:
            Exception: the errors of `append`, and any error of `make`.
        """
        return self._thread.submit(make)

    def close(self) -> None:
        """Wait for the facts of tasks, close files, release the owner lock. Sessions stay open."""
        self._thread.close()
        self.log.close()
        self.owner.release()

    def _acknowledged(self, cursors: Sequence[Cursor]) -> Acknowledge:
        if cursors and self.acknowledge != "process":
            self.log.sync(cursors[-1])
        ingestion = self._ingestion if cursors else None
        if self.acknowledge != "store" or ingestion is None:
            if ingestion is not None:
                ingestion.notice()
            return self.acknowledge
        try:
            ingestion.wait(cursors)
        except UnavailableError:
            if self.strict:
                raise
            return "journal"
        return "store"
