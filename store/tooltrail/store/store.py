"""An open store: begins sessions, and reads everything that was recorded.

    with open_store("trail.db") as store, store.open_session(title="nightly") as session:
        invocation = session.start(ToolCall.of("Bash", {"command": "make"}))
        ...
        finished = invocation.finish(output)

Recording appends to the journal in the spool and never needs the database. A background thread of
this process moves the facts into the database.
"""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import cached_property
from pathlib import Path
from threading import RLock
from types import NoneType
from typing import TYPE_CHECKING, Final, TypedDict, TypeVar, Unpack
from uuid import UUID

from tooltrail.records.errors import (
    DamageError,
    StoreExistsError,
    TooltrailError,
    UnavailableError,
    check_type,
)
from tooltrail.store.engines.database import Database
from tooltrail.store.engines.targets import is_there
from tooltrail.store.info import StoreInfo, check_revision, read_info, read_revision
from tooltrail.store.ingest.places import what_is_behind
from tooltrail.store.locking import wait_until_free
from tooltrail.store.roots import mark_path, named_root, resolve_root

if TYPE_CHECKING:
    from tooltrail.artifacts import ArtifactArchive
    from tooltrail.journal.log import Acknowledge
    from tooltrail.journal.recorder import Recorder
    from tooltrail.journal.session import Session, SessionOptions
    from tooltrail.records import FamilyRegistry, Policy
    from tooltrail.store.ingest.background import BackgroundIngester
    from tooltrail.store.ingest.ingester import Ingested, Ingester
    from tooltrail.store.read.reader import Reader

T = TypeVar("T")

READ_WAIT_S: Final = 3.0
"""Seconds that a reader waits until the database is free for ingestion."""

STUCK_S: Final = 30.0
"""Seconds that a reader waits for another ingester that commits nothing."""

Ingesting = Callable[[], AbstractContextManager[Callable[[int], object]]]


class StoreOptions(TypedDict, total=False):
    """Arguments of `open_store`, which describes them."""

    artifacts: str | Path | None
    policy: "Policy | None"
    families: "FamilyRegistry | None"
    acknowledge: "Acknowledge | None"
    strict: bool
    free_bytes: int | None


class _made_once(cached_property[T]):  # noqa: N801  a decorator
    """A cached property that is computed once, even if several threads read it."""

    if not TYPE_CHECKING:

        def __get__(self, store: "Store", owner: type["Store"] | None = None) -> T:
            with store._making:  # noqa: SLF001  of the same module
                return super().__get__(store, owner)


class Store(AbstractContextManager["Store"]):
    """An open store. Safe to share between threads and tasks.

    Made by `open_store` or `create_store`. Any number of processes may open the same store. A
    forked child may continue to record; to read, it must open the store again.

    Attributes:
        spool: folder of the journal and of output that is being captured.
        options: arguments of `open_store`.
        ingesting: makes the context of each run of `ingest` or `reader` that ingests. It yields a
            function that is called after each batch with the number of facts of this run so far.
    """

    def __init__(
        self, database: Database, spool: Path, options: StoreOptions, *, creates: bool
    ) -> None:
        self.database = database
        self.spool = spool
        self.options = options
        self._creates = creates
        self.ingesting: Ingesting = lambda: nullcontext(bool)  # shows nothing
        self._archive: ArtifactArchive | None = None
        self._opened: tuple[str, str] | None = None
        self._making = RLock()

    @_made_once
    def families(self) -> "FamilyRegistry":
        """The tool families."""
        from tooltrail.records import (  # noqa: PLC0415  slow, for recorders only
            FamilyRegistry,
            default_families,
        )

        families = self.options.get("families")
        check_type("families", families, FamilyRegistry, NoneType)
        return default_families() if families is None else families

    @_made_once
    def policy(self) -> "Policy":
        """The budgets of new records."""
        from tooltrail.records import default_policy  # noqa: PLC0415  see `families`

        policy = self.options.get("policy")
        return default_policy(self.families) if policy is None else policy

    @_made_once
    def recorder(self) -> "Recorder":
        """Appends facts to the journal."""
        from tooltrail.journal.recorder import Recorder  # noqa: PLC0415  see `families`

        level: Acknowledge = "store" if self.database.is_server else "journal"
        return Recorder(
            self.spool,
            policy=self.policy,
            families=self.families,
            acknowledge=self.options.get("acknowledge") or level,
            strict=self.options.get("strict", False),
            ingestion=self._background,
            free_bytes=self.options.get("free_bytes"),
        )

    def check_revision(self) -> None:
        """Check that this program can read the store, like `info`. Creates a missing store."""
        if self._creates:
            self._create_if_missing()
            self._creates = False  # a store that is gone later is not replaced by an empty one
        with self.database.read() as connection:
            check_revision(connection)

    @property
    def info(self) -> StoreInfo:
        """Id, format and artifact root of the store.

        Raises:
            StoreNotFoundError: there is no store in the database, and `create` is False.
            SchemaMismatchError: the store has another schema revision than this program.
            DamageError, UnavailableError: the database cannot be read.
        """
        self.check_revision()
        with self.database.read() as connection:
            return read_info(connection)

    @property
    def archive(self) -> "ArtifactArchive":
        """The artifacts, at their current root: `relocate` may move them. Raises like `info`."""
        from tooltrail.artifacts import ArtifactArchive, defer_sink  # noqa: PLC0415  see `families`

        info, named = self.info, self.options.get("artifacts")
        root = info.artifact_root if named is None else named_root(named)
        where = (resolve_root(self.database.target, root), mark_path(info.id))
        if self._archive is None:
            self._archive = ArtifactArchive(defer_sink(where[0], mark=where[1]))
        elif where != self._opened:
            self._archive.move_to(defer_sink(where[0], mark=where[1]))
        self._opened = where
        return self._archive

    @property
    def reader(self) -> "Reader":
        """Reads the store; raises like `info`, unless only the row of the store is damaged.

        Every fact that was acknowledged on this host before is ingested first. If the database
        cannot be written, or is locked for some seconds, or damage prevents ingestion, the reader
        returns what is there, and `lag` says why the rest is missing.
        """
        from tooltrail.store.read.reader import Reader  # noqa: PLC0415  recorders do not read

        self.check_revision()
        # A reader that waited in vain has waited for the next ones, too.
        is_patient, self.lag = self.lag is None, None
        try:
            with self.database.read() as connection:
                read_info(connection)  # damage of the row prevents ingestion
                behind = what_is_behind(connection, self.spool)
            if behind is not None:
                wait_until_free(self.database, READ_WAIT_S if is_patient else 0)
                wait_s = STUCK_S if is_patient else 0
                self._ingest(thoroughly=behind == "dead program", wait_s=wait_s)
        except (UnavailableError, DamageError) as error:
            self.lag = error
        return Reader(self.database, lambda: self.archive, self.spool)

    lag: TooltrailError | None = None
    """Why the last use of `reader` could not ingest the facts of the journal; None if it could."""

    def open_session(self, **options: "Unpack[SessionOptions]") -> "Session":
        """Begin a session; see `Session.open`."""
        from tooltrail.journal.session import Session  # noqa: PLC0415  see `families`

        return Session.open(self.recorder, **options)

    async def aopen_session(self, **options: "Unpack[SessionOptions]") -> "Session":
        """Like `open_session`, without blocking the event loop."""
        from tooltrail.journal.session import Session  # noqa: PLC0415  see `families`

        return await Session.aopen(self.recorder, **options)

    def join_session(self, session: UUID | str) -> "Session":
        """Continue a session of this or another process; see `Session.join`."""
        from tooltrail.journal.session import Session  # noqa: PLC0415  see `families`

        return Session.join(self.recorder, session)

    def ingest(self) -> "Ingested":
        """Move every fact that was appended before this call into the database.

        Also ends calls whose program died, and publishes artifacts that wait for the sink. Raises
        like `info`; `UnavailableError` if the spool cannot be used now, too.
        """
        return self._ingest(thoroughly=True)

    def close(self) -> None:
        """Ingest what was recorded, if the database can be used, and release all resources.

        Open sessions stay open.
        """
        if "recorder" in self.__dict__:
            self.recorder.close()
        if "_background" in self.__dict__:
            self._background.close()
        self.database.close()

    @_made_once
    def _background(self) -> "BackgroundIngester":
        from tooltrail.store.ingest import background  # noqa: PLC0415  see `families`

        return background.BackgroundIngester(lambda: self._ingester)

    @_made_once
    def _ingester(self) -> "Ingester":
        from tooltrail.store.ingest.ingester import Ingester  # noqa: PLC0415  see `families`
        from tooltrail.store.search import filling  # noqa: PLC0415  see `families`

        least = filling.LEAST_ENTRIES
        return Ingester(
            self.database,
            self.archive,
            self.spool,
            self.families,
            lambda: self.archive,
            follow=lambda: filling.fill_index(self.database, lambda: self.archive, least=least),
        )

    def _ingest(self, *, thoroughly: bool, wait_s: float = math.inf) -> "Ingested":
        with self.ingesting() as on_progress:
            return self._ingester.ingest(
                thoroughly=thoroughly, on_progress=on_progress, wait_s=wait_s
            )

    def _create_if_missing(self) -> None:
        target = self.database.target
        if is_there(target):
            with self.database.read() as connection:
                if read_revision(connection) is not None:
                    return
        from tooltrail.store.creating import create  # noqa: PLC0415  once in the life of a store

        with suppress(StoreExistsError):  # another process created it first
            create(target, self.options.get("artifacts"), self.spool)

    def __exit__(self, *_: object) -> None:
        self.close()
