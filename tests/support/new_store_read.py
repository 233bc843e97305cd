"""A store of the lean schema to read from: facts go through the journal and the ingester."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from tests.support.empty_databases import empty_database

from tooltrail.artifacts import ArtifactArchive, Capture, open_sink
from tooltrail.journal import Entry, JournalLog
from tooltrail.journal.clock import new_id
from tooltrail.migrations import HEAD_REVISION, statements_of
from tooltrail.records import (
    CommandOutput,
    CompleteOutput,
    Digest,
    Policy,
    StreamRecord,
    canonical_json,
    default_families,
    default_policy,
    digest_of,
)
from tooltrail.records.facts import (
    CallEnded,
    CallStarted,
    Fact,
    Shown,
    StreamFact,
)
from tooltrail.records.states import InvocationState
from tooltrail.store import schema
from tooltrail.store.engines.database import Database, ensure_wal
from tooltrail.store.ingest.ingester import Ingested, Ingester
from tooltrail.store.read.reader import Reader

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    """A time of the recorded world."""
    return EPOCH + timedelta(seconds=seconds)


@dataclass
class ReadStore:
    """A fresh store with its journal.

    Attributes:
        database: of the store.
        archive: of its artifacts.
        spool: with the journal.
        policy: of the calls.
    """

    database: Database
    archive: ArtifactArchive
    spool: Path
    policy: Policy = field(default_factory=lambda: default_policy(default_families()))

    def __post_init__(self) -> None:
        self.log = JournalLog(self.spool / "journal")
        self.ingester = Ingester(self.database, self.archive, self.spool, default_families())
        self.reader = Reader(self.database, lambda: self.archive, self.spool)

    def record(self, *entries: Entry) -> Ingested:
        """Append some facts and ingest them."""
        if entries:
            self.log.append(entries)
        return self.ingester.ingest()

    def spooled(self, ended: CallEnded, role: str, data: bytes, **changes: Any) -> CallEnded:
        """The end of a call whose stream of one role was captured in the spool."""
        path = f"{ended.id}/{role}.zst"
        with Capture(role, self.spool / path, edge_bytes=10, inline_bytes=0) as capture:
            capture.write(data)
        streams = tuple(
            one.replaced(spooled=path) if one.role == role else one for one in ended.streams
        )
        return ended.replaced(streams=streams, **changes)

    def damage(self, sql: str) -> None:
        """Run a statement past the triggers and checks, as a fault of a disk would."""
        with self.database.write() as connection:
            for table in schema.EVIDENCE:
                for event in ("update", "delete", "erasure"):
                    on = "" if self.is_sqlite else f" ON {table.name}"
                    connection.execute(f"DROP TRIGGER IF EXISTS {table.name}_no_{event}{on}")
            if self.is_sqlite:
                connection.execute("PRAGMA ignore_check_constraints = ON")
            connection.execute(sql)

    def bury(self, kind: str, digest: Digest) -> None:
        """Leave a tombstone, as retention does where it removes something."""
        with self.database.write() as connection:
            row = {
                "kind": kind,
                "digest": connection.sha(digest),
                "size": 1,
                "reason": "a person asked",
                "rule": "request 7",
                "actor": "tests",
                "removed_at": connection.moment(at(60)),
            }
            connection.insert("tombstones", [row])

    @property
    def is_sqlite(self) -> bool:
        """Whether the database is SQLite."""
        return not self.database.is_server


@contextmanager
def read_store(database: str, folder: Path) -> Generator[ReadStore]:
    """A fresh store in an empty place."""
    opened = empty_database(database)
    ensure_wal(opened)
    with opened.write() as connection:
        dialect = "sqlite" if connection.is_sqlite else "postgresql"
        for statement in statements_of(HEAD_REVISION, dialect):
            connection.run(statement)
    archive = ArtifactArchive(open_sink(str(folder / "artifacts"), create=True))
    spool = folder / "spool"
    spool.mkdir(parents=True)
    try:
        yield ReadStore(opened, archive, spool)
    finally:
        opened.close()


@dataclass
class Call:
    """A call of a tool as it is recorded: everything that the store must give back.

    Attributes:
        started: its first fact.
        ended: its last one; None for an open call.
        arguments: body.
        document: of the complete output.
        streams: bytes of each stream, by role.
        canonical: body; None where the ingester projects.
        receipt: body; likewise.
        policy: canonical JSON.
    """

    started: CallStarted
    ended: CallEnded | None
    arguments: bytes
    policy: bytes
    document: bytes = b""
    streams: dict[str, bytes] = field(default_factory=dict[str, bytes])
    canonical: bytes | None = None
    receipt: bytes | None = None

    def entries(self) -> list[Entry]:
        """What is appended to the journal."""
        found = [self.start_entry()]
        if self.ended is not None:
            found.append(self.end_entry(self.ended))
        return found

    def start_entry(self) -> Entry:
        """The fact that starts it."""
        return Entry(self.started, [self.arguments], [self.policy])

    def end_entry(self, ended: Fact) -> Entry:
        """The fact that ends it."""
        inline = [
            self.streams[one.role] for one in getattr(ended, "streams", ()) if one.spooled is None
        ]
        more = [one for one in (self.canonical, self.receipt) if one is not None]
        return Entry(ended, [self.document, *inline, *more])


def call(
    session: UUID,
    seconds: float = 0.0,
    *,
    tool: str = "bash",
    family: str = "command",
    arguments: bytes = b'{"command":"ls"}',
    stdout: bytes = b"",
    stderr: bytes = b"",
    state: InvocationState | None = "success",
    receipt: bytes | None = None,
    canonical: bytes | None = None,
    output: CompleteOutput | None = None,
    start: dict[str, Any] | None = None,
    end: dict[str, Any] | None = None,
) -> Call:
    """A call of a command, or of what `output` says; without `receipt` the ingester makes one."""
    policy = default_policy(default_families()).to_json()
    started = CallStarted(
        session=session,
        id=new_id(),
        at=at(seconds),
        tool_name=tool,
        family=family,
        arguments=digest_of(arguments),
        policy=digest_of(policy),
        **(start or {}),
    )
    if state is None:
        return Call(started, None, arguments, policy)
    if output is None:
        output = CompleteOutput.success(
            tool,
            CommandOutput(
                command="ls",
                stdout=StreamRecord.from_bytes("stdout", stdout),
                stderr=StreamRecord.from_bytes("stderr", stderr),
                exit_status=0,
            ),
        )
    document = output.to_json()
    made = Call(started, None, arguments, policy, document)
    made.streams = {"stdout": stdout, "stderr": stderr}
    shown = None
    if receipt is not None:
        canonical = canonical or canonical_json.encode(
            {
                "tool_name": tool,
                "status": "success" if state == "success" else "error",
                "summary_text": "",
                "result": None,
                "error": None,
            }
        )
        made.canonical, made.receipt = canonical, receipt
        shown = Shown(
            canonical=digest_of(canonical),
            receipt=digest_of(receipt),
            renderer="seen",
            renderer_version=0,
        )
    fields: dict[str, Any] = {
        "duration_ms": 5,
        "exit_status": 0,
        "streams": tuple(StreamFact.of(one) for one in output.streams),
        **(end or {}),
    }
    made.ended = CallEnded(
        session=session,
        id=started.id,
        at=at(seconds + 0.5),
        state=state,
        output=digest_of(document),
        shown=shown,
        **fields,
    )
    return made


def entries_of(calls: Sequence[Call]) -> list[Entry]:
    """The facts of some calls, each behind the other."""
    return [entry for one in calls for entry in one.entries()]
