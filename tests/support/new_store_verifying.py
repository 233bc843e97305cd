"""A store on the lean schema that holds every kind of fact, to be altered and verified."""

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from tooltrail.artifacts import ArtifactArchive, Capture, open_sink
from tooltrail.journal import Entry, JournalLog
from tooltrail.records import CompleteOutput, StreamRecord, default_families, default_policy
from tooltrail.records.canonical_json import encode
from tooltrail.records.digests import digest_of
from tooltrail.records.facts import (
    AgentLeg,
    AgentOutcome,
    ArtifactFact,
    CallEnded,
    CallStarted,
    Maintenance,
    MessageAdded,
    OmissionFact,
    SessionClosed,
    SessionOpened,
    Shown,
    StreamFact,
    ToolsOffered,
)
from tooltrail.records.families.command import CommandOutput
from tooltrail.records.families.structured_output import StructuredOutput
from tooltrail.store import schema
from tooltrail.store.creating import create
from tooltrail.store.engines.database import Database, open_database
from tooltrail.store.engines.targets import parse_target
from tooltrail.store.ingest.ingester import Ingester
from tooltrail.store.verify import Finding, Totals, verify

AT = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
FAMILIES = default_families()
POLICY = default_policy(FAMILIES)
LONG = b"".join(b"line %d of a long output\n" % n for n in range(4000))

OPENED, IMPLICIT, LEG = UUID(int=101), UUID(int=102), UUID(int=103)
TEXT, RICH, OFFER, BEGUN, DONE = (UUID(int=n) for n in range(201, 206))
SHORT, LARGE, SPOOLED, OPEN, SHOWN, ODD, VERDICT, LATE, REPEATED = (
    UUID(int=n) for n in range(301, 310)
)
MAINTAINED = UUID(int=401)


@dataclass
class NewStore:
    """A store with its journal.

    Attributes:
        database: of the store.
        archive: its artifacts.
        sink: folder of the artifacts.
        spool: with the journal.
        log: the journal.
    """

    database: Database
    archive: ArtifactArchive
    sink: Path
    spool: Path
    log: JournalLog

    def ingest(self) -> None:
        """Move the facts into the database."""
        Ingester(self.database, self.archive, self.spool, FAMILIES).ingest()

    def verify(self, *, receipts: bool = False, totals: Totals | None = None) -> list[Finding]:
        """All findings."""
        families = FAMILIES if receipts else None
        return list(verify(self.database, self.archive, families=families, totals=totals))

    def damage(self, *, receipts: bool = False) -> list[Finding]:
        """The findings of damage."""
        return [one for one in self.verify(receipts=receipts) if one.kind == "damage"]

    def run(self, sql: str, values: Any = ()) -> list[Any]:
        """Run one statement, with `?` for values, behind the back of the store."""
        with self.database.write() as connection:
            if connection.is_sqlite:
                connection.run("PRAGMA ignore_check_constraints = ON")
            if sql.startswith("SELECT"):
                return connection.query(sql, tuple(values))
            connection.execute(sql, tuple(values))
            return []


@contextmanager
def new_store(target: str, folder: Path) -> Generator[NewStore]:
    """An empty store."""
    create(parse_target(target), str(folder / "artifacts"))
    with open_store_at(target, folder) as store:
        yield store


@contextmanager
def open_store_at(target: str, folder: Path) -> Generator[NewStore]:
    """A store that is there."""
    database = open_database(parse_target(target))
    spool, sink = folder / "spool", folder / "artifacts"
    archive = ArtifactArchive(open_sink(str(sink), create=True))
    try:
        yield NewStore(database, archive, sink, spool, JournalLog(spool / "journal"))
    finally:
        database.close()


def drop_guards(store: NewStore) -> None:
    """Remove the triggers."""
    is_server = store.database.is_server
    if is_server:
        store.run("ALTER TABLE store_info DROP CONSTRAINT ck_store_info_single")
    for table in schema.EVIDENCE:
        for what in ("delete", "update", *(("truncate",) if is_server else ())):
            behind = f" ON {table.name}" if is_server else ""
            store.run(f"DROP TRIGGER IF EXISTS {table.name}_no_{what}{behind}")
    store.run(f"DROP TRIGGER bodies_no_erasure{' ON bodies' if is_server else ''}")


def start(call: UUID, arguments: bytes = b'{"command":"ls"}', **members: Any) -> Entry:
    """The fact of a call that starts."""
    fact = CallStarted(
        session=members.pop("session", OPENED),
        id=call,
        at=members.pop("at", AT),
        tool_name=members.pop("tool_name", "bash"),
        family=members.pop("family", "command"),
        arguments=digest_of(arguments),
        policy=POLICY.digest,
        **members,
    )
    environment = [] if fact.environment is None else [b'{"host":"h"}']
    return Entry(fact, [arguments, *environment], [POLICY.to_json()])


def end(
    call: UUID,
    output: CompleteOutput,
    *,
    spooled: dict[str, str] | None = None,
    shown: Shown | None = None,
    bodies: Iterable[bytes] = (),
    **members: Any,
) -> Entry:
    """The fact of a call that ended."""
    document = output.to_json()
    places = spooled or {}
    fact = CallEnded(
        session=members.pop("session", OPENED),
        id=call,
        at=members.pop("at", AT + timedelta(seconds=1)),
        state=members.pop("state", "success"),
        output=digest_of(document),
        streams=tuple(StreamFact.of(one, places.get(one.role)) for one in output.streams),
        shown=shown,
        duration_ms=members.pop("duration_ms", 1000),
        **members,
    )
    contents = [one.content or b"" for one in output.streams if one.role not in places]
    return Entry(fact, [document, *contents, *bodies])


def command(
    stdout: bytes | StreamRecord, stderr: bytes = b"", exit_status: int = 0
) -> CompleteOutput:
    """The output of a command."""
    out = stdout if isinstance(stdout, StreamRecord) else StreamRecord.from_bytes("stdout", stdout)
    return CompleteOutput.success(
        "bash",
        CommandOutput(
            command="ls",
            stdout=out,
            stderr=StreamRecord.from_bytes("stderr", stderr),
            exit_status=exit_status,
        ),
    )


def fill(store: NewStore, *, guarded: bool = False) -> None:
    """Record every kind of fact, and ingest them in several runs.

    Args:
        store: an empty one.
        guarded: whether the triggers stay; otherwise a text is erased, too.
    """
    log = store.log
    environment, document, payload = b'{"host":"h"}', b'{"parts":["hello"]}', b"{ }"
    tools = [encode({"name": name, "description": "d"}) for name in ("read", "write")]
    leg = encode(
        {
            "run_id": str(UUID(int=501)),
            "position": 2,
            "tier": "small",
            "model": "m",
            "wire_format": "openai-chat",
            "agent_id": "reviewer",
            "schema_digest": digest_of(b"{}"),
        }
    )
    outcome = encode(
        {"outcome": "escalated", "escalated_to": "large", "attempt_count": 2, "duration_ms": 7}
    )
    log.append(
        [
            Entry(
                SessionOpened(
                    session=OPENED,
                    at=AT,
                    name="nightly",
                    title="Nightly build",
                    agent="builder",
                    parent=IMPLICIT,
                    environment=digest_of(environment),
                ),
                [environment],
            ),
            Entry(
                MessageAdded(session=OPENED, id=TEXT, at=AT, role="user", text=digest_of(b"hello")),
                [b"hello"],
            ),
            start(
                SHORT,
                message=RICH,
                position=1,
                call_id="c-1",
                title="ls",
                owner="o-1",
                environment=digest_of(environment),
            ),
            end(
                SHORT,
                command(b"one line that is long enough to be shared with the receipt, twice\n" * 2),
            ),
            Entry(
                MessageAdded(
                    session=OPENED,
                    id=RICH,
                    at=AT,
                    role="assistant",
                    text=digest_of(b"hello"),
                    document=digest_of(document),
                    payload=digest_of(payload),
                    wire_format="openai-chat",
                ),
                [b"hello", document, payload],
            ),
            start(LARGE),
        ]
    )
    store.ingest()
    with Capture(
        "stdout", store.spool / str(SPOOLED) / "stdout.zst", edge_bytes=4096, inline_bytes=0
    ) as capture:
        capture.write(LONG * 3)
    captured = capture.close().record
    result = b'{"error":null,"result":{"artifacts":[]},"status":"success"}'
    receipt = "shown to the model: \u00e4".encode()
    verdict = CompleteOutput.success(
        "final_answer",
        StructuredOutput.of(
            {"answer": 42}, agent="reviewer", schema_digest=digest_of(b"{}"), attempt=2
        ),
    )
    shown = Shown(
        canonical=digest_of(result),
        receipt=digest_of(receipt),
        renderer="seen",
        renderer_version=0,
        omissions=(
            OmissionFact(
                stage="projector", field="stdout", unit="bytes", before=9, after=4, reason="budget"
            ),
            OmissionFact(
                stage="renderer", field="stdout", unit="lines", before=3, after=1, reason="budget"
            ),
        ),
        artifacts=(ArtifactFact(role="stdout", digest=captured.digest),),
    )
    log.append(
        [
            end(LARGE, command(LONG), exit_status=0),
            start(SPOOLED),
            end(
                SPOOLED,
                command(captured, b"warning: something odd\n", 3),
                spooled={"stdout": f"{SPOOLED}/stdout.zst"},
                exit_status=3,
                signal=9,
                timed_out=True,
            ),
            Entry(
                ToolsOffered(session=LEG, id=OFFER, at=AT, tools=tuple(map(digest_of, tools))),
                tools,
            ),
            Entry(
                AgentLeg(
                    session=LEG,
                    id=BEGUN,
                    at=AT,
                    document=digest_of(leg),
                    agent=digest_of(b"agent"),
                    agent_version="3",
                ),
                [leg, b"agent"],
            ),
            start(
                VERDICT,
                b'{"answer":42}',
                session=LEG,
                tool_name="final_answer",
                family="structured_output",
            ),
            end(VERDICT, verdict, session=LEG),
            Entry(
                AgentOutcome(session=LEG, id=DONE, at=AT, document=digest_of(outcome)), [outcome]
            ),
            start(SHOWN),
            end(
                SHOWN, command(b"shown\n"), shown=shown, bodies=[result, receipt], error_kind="odd"
            ),
            start(ODD, b'{"command":"a\0b\xff"}'),
            end(
                ODD,
                command(
                    b"nul \0 and \xff, and enough of it to be shared with the receipt if it could\n"
                ),
            ),
            start(OPEN, session=IMPLICIT),
            start(REPEATED),
            end(REPEATED, command(b"again\n")),
            Entry(SessionClosed(session=OPENED, at=AT + timedelta(hours=1), reason="done")),
        ]
    )
    store.ingest()
    conflict = start(REPEATED, b'{"command":"other"}')
    log.append(
        [
            start(LATE),
            end(LATE, command(b"late\n")),
            start(REPEATED, title="differs without harm"),
            end(REPEATED, command(b"again\n")),
            conflict,
            Entry(SessionClosed(session=OPENED, at=AT + timedelta(hours=2))),
            Entry(
                Maintenance(
                    id=MAINTAINED, at=AT, action="gc", actor="me", details=digest_of(b'{"n":1}')
                ),
                [b'{"n":1}'],
            ),
        ]
    )
    store.ingest()
    if not guarded:
        drop_guards(store)
        _erase_text(store)


def _erase_text(store: NewStore) -> None:
    """Remove the bytes of one body, as retention does."""
    with store.database.write() as connection:
        digest = connection.sha(digest_of(b"hello"))
        connection.execute("UPDATE bodies SET data = NULL WHERE digest = ?", (digest,))
        connection.execute(
            "INSERT INTO tombstones (kind, digest, size, reason, rule, actor, removed_at)"
            " VALUES ('body', ?, 5, 'r', 'r', 'a', ?)",
            (digest, connection.moment(AT)),
        )
