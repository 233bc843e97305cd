"""A store on the lean schema with a recorder beside it, as the recording API will open one."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from sqlalchemy import text

from tooltrail.artifacts import ArtifactArchive, open_sink
from tooltrail.journal.clock import new_id, now
from tooltrail.journal.recorder import Recorder
from tooltrail.journal.session import Session
from tooltrail.journal.work import Acknowledge
from tooltrail.records import (
    CompleteOutput,
    StreamRecord,
    ToolCall,
    default_families,
    default_policy,
)
from tooltrail.records.families.command import CommandOutput
from tooltrail.store import guards, schema
from tooltrail.store._engines.database import Database, open_database
from tooltrail.store._engines.targets import parse_target
from tooltrail.store.ingest.background import BackgroundIngester
from tooltrail.store.ingest.ingester import Ingested, Ingester
from tooltrail.store.read.reader import Reader


@dataclass(frozen=True)
class LeanStore:
    """The parts of a store.

    Attributes:
        database: with empty tables.
        archive: with no artifacts yet.
        spool: folder of the journal.
        ingester: of that journal.
        background: the same in a thread.
        recorder: appends facts.
    """

    database: Database
    archive: ArtifactArchive
    spool: Path
    ingester: Ingester
    background: BackgroundIngester
    recorder: Recorder

    @property
    def reader(self) -> Reader:
        """Reads the store, after everything that waits was ingested."""
        self.ingester.ingest()
        return Reader(self.database, self.archive, self.spool)

    def open_session(self, **given: Any) -> Session:
        """See `Session.open`."""
        return Session.open(self.recorder, **given)

    def join_session(self, session: UUID | str) -> Session:
        """See `Session.join`."""
        return Session.join(self.recorder, session)

    def ingest(self) -> Ingested:
        """Ingest everything that waits, and recover what dead programs left."""
        return self.ingester.ingest(thoroughly=True)

    def captured(self) -> list[str]:
        """Names of the folders of the spool with output that is being captured."""
        return sorted(one.name for one in self.spool.glob("????????-????-*") if one.is_dir())

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """All rows of a query, after everything that waits was ingested."""
        self.ingester.ingest()
        with self.database.read() as connection:
            return [tuple(row) for row in connection.exec_driver_sql(sql)]


@contextmanager
def lean_store(
    target: str,
    folder: Path,
    *,
    acknowledge: Acknowledge = "journal",
    strict: bool = False,
    timeout_s: float = 30.0,
) -> Generator[LeanStore]:
    """Make an empty store, and close it at the end.

    Args:
        target: path of a file, or URL of an empty database.
        folder: for the spool and the artifacts.
        acknowledge: see `Recorder`.
        strict: see `Recorder`.
        timeout_s: see `BackgroundIngester`.
    """
    make_tables(target)
    database = open_database(parse_target(target), foreign_keys=False, durability="process")
    families = default_families()
    spool = folder / "spool"
    archive = ArtifactArchive(open_sink(str(folder / "artifacts"), create=True))
    ingester = Ingester(database, archive, spool, families)
    background = BackgroundIngester(ingester, database, timeout_s=timeout_s)
    recorder = Recorder(
        spool,
        policy=default_policy(families),
        families=families,
        acknowledge=acknowledge,
        strict=strict,
        ingestion=background,
    )
    try:
        yield LeanStore(database, archive, spool, ingester, background, recorder)
    finally:
        recorder.close()
        background.close()
        database.close()


def make_tables(target: str) -> None:
    """Make the tables and their guards in an empty place."""
    database = open_database(parse_target(target), create=True, foreign_keys=False)
    if not database.is_server:
        database.ensure_wal()
    with database.write() as connection:
        schema.metadata.create_all(connection)
        for statement in guards.guard_ddl(connection.dialect.name):
            connection.execute(text(statement))
        connection.execute(
            schema.store_info.insert().values(
                key=1, id=new_id(), format=1, artifact_root="artifacts", created_at=now()
            )
        )
    database.close()


def shell_call(command: str = "ls", call_id: str | None = None) -> ToolCall:
    """A call of the shell."""
    return ToolCall.of("Bash", {"command": command}, call_id=call_id)


def shell_output(stdout: bytes = b"done\n", *, exit_status: int = 0) -> CompleteOutput:
    """What the shell gave."""
    result = CommandOutput(
        command="ls",
        exit_status=exit_status,
        stdout=StreamRecord.from_bytes("stdout", stdout),
        stderr=StreamRecord.from_bytes("stderr", b""),
    )
    return CompleteOutput.success("Bash", result)


@contextmanager
def new_ingester(store: LeanStore) -> Generator[Ingester]:
    """An ingester of the same journal as another process has one, with connections of its own."""
    database = open_database(store.database.target, foreign_keys=False, durability="process")
    try:
        yield Ingester(database, store.archive, store.spool, default_families())
    finally:
        database.close()
