"""An empty store on the lean schema with one journal, and facts of calls to append to it."""

import itertools
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast
from uuid import UUID

from sqlalchemy import Table
from tests.support.empty_databases import empty_database
from tests.support.raw_rows import table_rows

from tooltrail.artifacts import ArtifactArchive, ArtifactSink, Capture, open_sink
from tooltrail.journal import Entry, JournalLog
from tooltrail.migrations import HEAD_REVISION, statements_of
from tooltrail.records import (
    CompleteOutput,
    StreamRecord,
    default_families,
    default_policy,
)
from tooltrail.records.digests import Digest, digest_of
from tooltrail.records.facts import (
    CallEnded,
    CallStarted,
    MessageAdded,
    Shown,
    StreamFact,
)
from tooltrail.records.families.command import CommandOutput
from tooltrail.store import schema
from tooltrail.store.bodies import decode_body
from tooltrail.store.engines.database import Database, ensure_wal, open_database
from tooltrail.store.engines.targets import parse_target
from tooltrail.store.ingest.ingester import Ingested, Ingester

FAMILIES = default_families()
POLICY = default_policy(FAMILIES)
POLICY_JSON = POLICY.to_json()
BEGIN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

_numbers = itertools.count(1)


def next_id() -> UUID:
    """An id that no test has seen yet."""
    return UUID(int=(7 << 76) | (2 << 62) | next(_numbers))


def moment(seconds: int = 0) -> datetime:
    """A time of the test, the same in every run."""
    return BEGIN + timedelta(seconds=seconds)


class AwaySink:
    """A sink that can be away. Everything else is the sink's."""

    def __init__(self, sink: ArtifactSink) -> None:
        self._sink = sink
        self.is_away = False

    def put(self, path: str, source: Path) -> bool:
        from tooltrail.records import UnavailableError

        if self.is_away:
            raise UnavailableError("the sink is away")
        return self._sink.put(path, source)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sink, name)


@dataclass
class IngestedStore:
    """A store that ingests one journal.

    Attributes:
        database: with the rows.
        spool: with the journal.
        sink: with the artifacts.
    """

    database: Database
    spool: Path
    sink: AwaySink
    log: JournalLog = field(init=False)

    def __post_init__(self) -> None:
        self.log = JournalLog(self.spool / "journal")

    @property
    def archive(self) -> ArtifactArchive:
        return ArtifactArchive(cast("ArtifactSink", self.sink))

    def ingester(self) -> Ingester:
        return Ingester(self.database, self.archive, self.spool, FAMILIES)

    def append(self, *entries: Entry) -> None:
        self.log.record(entries)

    def ingest(self, *entries: Entry) -> Ingested:
        """Append facts and ingest the journal."""
        if entries:
            self.append(*entries)
        return self.ingester().ingest(thoroughly=True)

    def rows(self, table: Table, *names: str) -> list[tuple[Any, ...]]:
        """Rows of a table in the order of its key, all columns or some."""
        with self.database.read() as connection:
            return table_rows(connection, table, *names)

    def count(self, table: Table) -> int:
        return len(self.rows(table))

    def body(self, digest: Digest) -> bytes | None:
        with self.database.read() as connection:
            row = connection.query_one(
                "SELECT size, encoding, data FROM bodies WHERE digest = ?",
                (connection.sha(digest),),
            )
        return None if row is None else decode_body(digest, *row)

    def rejections(self) -> list[str]:
        return [reason for (reason,) in self.rows(schema.rejected_facts, "reason")]


@contextmanager
def ingested_store(
    database: str, folder: Path, *, is_new: bool = True, name: str = "spool"
) -> Generator[IngestedStore]:
    """A store at a place, created unless it is there."""
    if is_new:
        _create(database)
    opened = open_database(parse_target(database))
    try:
        sink = AwaySink(open_sink(str(folder / "artifacts"), create=is_new))
        yield IngestedStore(opened, folder / name, sink)
    finally:
        opened.close()


def _create(database: str) -> None:
    opened = empty_database(database)
    try:
        ensure_wal(opened)
        with opened.write() as connection:
            for statement in statements_of(
                HEAD_REVISION, "postgresql" if opened.is_server else "sqlite"
            ):
                connection.run(statement)
    finally:
        opened.close()


def started(
    session: UUID,
    call: UUID,
    *,
    arguments: bytes = b'{"command":"ls"}',
    owner: str | None = None,
    at: int = 0,
) -> Entry:
    """The start of a shell command."""
    fact = CallStarted(
        session=session,
        id=call,
        at=moment(at),
        tool_name="bash",
        family="command",
        arguments=digest_of(arguments),
        policy=POLICY.digest,
        owner=owner,
        call_id="toolu_1",
    )
    return Entry(fact, [arguments], [POLICY_JSON])


def ended(
    session: UUID,
    call: UUID,
    stdout: bytes | StreamRecord = b"out\n",
    *,
    spooled: str | None = None,
    shown: Shown | None = None,
    bodies: Sequence[bytes] = (),
    exit_status: int = 0,
    at: int = 1,
) -> Entry:
    """The end of a shell command."""
    record = stdout
    if isinstance(record, bytes):
        record = StreamRecord.from_bytes("stdout", record)
    output = CompleteOutput.success(
        "bash",
        CommandOutput(
            command="ls",
            stdout=record,
            stderr=StreamRecord.from_bytes("stderr", b""),
            exit_status=exit_status,
        ),
    )
    document = output.to_json()
    fact = CallEnded(
        session=session,
        id=call,
        at=moment(at),
        state="success",
        output=digest_of(document),
        streams=tuple(
            StreamFact.of(one, spooled if one.role == "stdout" else None) for one in output.streams
        ),
        exit_status=exit_status,
        duration_ms=3,
        shown=shown,
    )
    content = [] if spooled is not None or record.content is None else [record.content]
    return Entry(fact, [document, *content, *bodies])


def as_shown(
    canonical: bytes, receipt: bytes, *, renderer: str = "seen", version: int = 0
) -> Shown:
    return Shown(
        canonical=digest_of(canonical),
        receipt=digest_of(receipt),
        renderer=renderer,
        renderer_version=version,
    )


def spool(store: IngestedStore, call: UUID, data: bytes, role: str = "stdout") -> StreamRecord:
    """Capture a stream into the folder of a call; its record carries no content."""
    with Capture(
        role, store.spool / str(call) / f"{role}.zst", edge_bytes=64 << 10, inline_bytes=0
    ) as capture:
        capture.write(data)
    return capture.close().record


def ended_spooled(store: IngestedStore, session: UUID, call: UUID, data: bytes) -> Entry:
    """The end of a command whose long output is in the spool."""
    return ended(session, call, spool(store, call, data), spooled=f"{call}/stdout.zst")


def message(session: UUID, text: bytes = b"hello", *, id: UUID | None = None) -> Entry:  # noqa: A002
    fact = MessageAdded(
        session=session, id=id or next_id(), at=moment(), role="user", text=digest_of(text)
    )
    return Entry(fact, [text])


def changed(entry: Entry, **members: object) -> Entry:
    """The same entry with other members of its fact."""
    fact: Any = entry.fact.replaced(**members)
    return entry._replace(fact=fact)
