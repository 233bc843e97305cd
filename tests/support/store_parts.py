"""The parts of a store with a journal, for ingesting, reading, altering and verifying."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from uuid import UUID

from sqlalchemy import Table
from tests.support import schema
from tests.support.call_facts import FAMILIES, ended, moment
from tests.support.new_stores import make_store
from tests.support.raw_rows import table_rows

from tooltrail.artifacts import ArtifactArchive, ArtifactSink, Capture, open_sink
from tooltrail.journal import Entry, JournalLog
from tooltrail.records import StreamRecord, UnavailableError
from tooltrail.records.digests import Digest, digest_of
from tooltrail.store.bodies import decode_body
from tooltrail.store.engines.database import Database
from tooltrail.store.engines.targets import parse_target
from tooltrail.store.ingest.ingester import Ingested, Ingester
from tooltrail.store.read.reader import Reader
from tooltrail.store.verify import Finding, Totals, verify


class AwaySink:
    """A sink that can be made unreachable for `put`. All other calls are forwarded."""

    def __init__(self, sink: ArtifactSink) -> None:
        self._sink = sink
        self.is_away = False
        self.reason = "the sink is away"
        self.refused_count = 0

    def put(self, path: str, source: Path) -> bool:
        if self.is_away:
            self.refused_count += 1
            raise UnavailableError(self.reason)
        return self._sink.put(path, source)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sink, name)


@dataclass
class StoreParts:
    """The parts of a store with one journal.

    Attributes:
        database: database with the rows.
        spool: spool with the journal.
        sink: sink with the artifacts.
    """

    database: Database
    spool: Path
    sink: AwaySink

    def __post_init__(self) -> None:
        self.log = JournalLog(self.spool / "journal")
        self.archive = ArtifactArchive(cast("ArtifactSink", self.sink))
        self.reader = Reader(self.database, lambda: self.archive, self.spool)

    def ingester(self) -> Ingester:
        return Ingester(self.database, self.archive, self.spool, FAMILIES)

    def append(self, *entries: Entry) -> None:
        self.log.record(entries)

    def ingest(self, *entries: Entry) -> Ingested:
        """Append facts and ingest the journal."""
        if entries:
            self.append(*entries)
        return self.ingester().ingest(thoroughly=True)

    def other_journal(self) -> "StoreParts":
        """The store as seen from another machine, with its own journal."""
        return StoreParts(self.database, self.spool.with_name("other-spool"), self.sink)

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

    @property
    def is_sqlite(self) -> bool:
        """Whether the database is SQLite."""
        return not self.database.is_server

    def run(self, sql: str, values: Any = ()) -> list[Any]:
        """Run one statement, with `?` for values, behind the back of the store."""
        with self.database.write() as connection:
            if connection.is_sqlite:
                connection.run("PRAGMA ignore_check_constraints = ON")
            if sql.startswith("SELECT"):
                return connection.query(sql, tuple(values))
            connection.execute(sql, tuple(values))
            return []

    def drop_guards(self) -> None:
        """Remove the triggers."""
        with self.database.write() as connection:
            if not self.is_sqlite:
                connection.run(
                    "ALTER TABLE store_info DROP CONSTRAINT IF EXISTS ck_store_info_single"
                )
            for table in schema.EVIDENCE:
                on = "" if self.is_sqlite else f" ON {table.name}"
                for event in ("update", "delete", "erasure", "truncate"):
                    connection.run(f"DROP TRIGGER IF EXISTS {table.name}_no_{event}{on}")

    def alter(self, sql: str) -> None:
        """Run a statement without triggers and checks, as a fault of a disk would."""
        self.drop_guards()
        self.run(sql)

    def bury(self, kind: str, digest: Digest) -> None:
        """Write a tombstone, as retention does for a removed object."""
        with self.database.write() as connection:
            row = {
                "kind": kind,
                "digest": connection.sha(digest),
                "size": 1,
                "reason": "a person asked",
                "rule": "request 7",
                "actor": "tests",
                "removed_at": connection.moment(moment(60)),
            }
            connection.insert("tombstones", [row])

    def literal(self, digest: Digest) -> str:
        """A digest as a literal of an SQL statement."""
        spelled = digest.removeprefix("sha256:")
        return f"x'{spelled}'" if self.is_sqlite else f"'\\x{spelled}'"

    def erase_body(self, data: bytes) -> Digest:
        """Remove the bytes of a body, as retention does."""
        digest = digest_of(data)
        self.bury("body", digest)
        self.alter(f"UPDATE bodies SET data = NULL WHERE digest = {self.literal(digest)}")
        return digest

    def verify(self, *, receipts: bool = False, totals: Totals | None = None) -> list[Finding]:
        """All findings."""
        families = FAMILIES if receipts else None
        return list(verify(self.database, self.archive, families=families, totals=totals))

    def damage(self, *, receipts: bool = False) -> list[Finding]:
        """The findings of damage."""
        return [one for one in self.verify(receipts=receipts) if one.kind == "damage"]


@contextmanager
def store_parts(
    database: str, folder: Path, *, is_new: bool = True, name: str = "spool"
) -> Generator[StoreParts]:
    """A store in a database and a folder; created if `is_new`."""
    target = parse_target(database)
    if is_new:
        make_store(database, folder)
    opened = Database(target)
    try:
        sink = AwaySink(open_sink(str(folder / "artifacts"), create=is_new))
        yield StoreParts(opened, folder / name, sink)
    finally:
        opened.close()


def spool(parts: StoreParts, call: UUID, data: bytes, role: str = "stdout") -> StreamRecord:
    """Capture a stream into the folder of a call."""
    with Capture(role, parts.spool / str(call) / f"{role}.zst", edge_bytes=64 << 10) as capture:
        capture.write(data)
    return capture.close().record


def ended_spooled(parts: StoreParts, session: UUID, call: UUID, data: bytes) -> Entry:
    """The end of a command whose long output is in the spool."""
    return ended(session, call, spool(parts, call, data), spooled=f"{call}/stdout.zst")
