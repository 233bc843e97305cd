"""A store on the lean schema with a recorder beside it, as the recording API will open one."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tooltrail.artifacts import ArtifactArchive, open_sink
from tooltrail.journal.recorder import Recorder
from tooltrail.journal.work import Acknowledge
from tooltrail.records import (
    CompleteOutput,
    StreamRecord,
    ToolCall,
    default_families,
    default_policy,
)
from tooltrail.records.families.command import CommandOutput
from tooltrail.store.creating import create
from tooltrail.store.engines.database import Database, open_database
from tooltrail.store.engines.targets import parse_target
from tooltrail.store.ingest.background import BackgroundIngester
from tooltrail.store.ingest.ingester import Ingester


@dataclass(frozen=True)
class LeanStore:
    """The parts of a store.

    Attributes:
        database: with empty tables.
        spool: folder of the journal.
        ingester: of that journal.
        background: the same in a thread.
        recorder: appends facts.
    """

    database: Database
    spool: Path
    ingester: Ingester
    background: BackgroundIngester
    recorder: Recorder

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """All rows of a query, after everything that waits was ingested."""
        self.ingester.ingest()
        with self.database.read() as connection:
            return connection.query(sql)


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
    create(parse_target(target), str(folder / "artifacts"))
    database = open_database(parse_target(target))
    families = default_families()
    spool = folder / "spool"
    archive = ArtifactArchive(open_sink(str(folder / "artifacts")))
    ingester = Ingester(database, archive, spool, families)
    background = BackgroundIngester(lambda: ingester, timeout_s=timeout_s)
    recorder = Recorder(
        spool,
        policy=default_policy(families),
        families=families,
        acknowledge=acknowledge,
        strict=strict,
        ingestion=background,
    )
    try:
        yield LeanStore(database, spool, ingester, background, recorder)
    finally:
        recorder.close()
        background.close()
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
