"""A store of very many invocations, made in a minute: real records, copied row by row.

A few invocations are recorded the ordinary way. Each further one is a copy of one of them as it
stands in the tables, with other ids, times, places, output, digests and ledger entries, inserted
with raw `sqlite3`. So a row holds what the recorder writes, and everything agrees: digests with
documents, bodies with digests, chains with heads. Only objects of
copied artifacts are not there.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import UUID

from tests.support.recording import fail_tool, run_command, run_tool

from tooltrail.artifacts import artifact_path
from tooltrail.records import digest_of
from tooltrail.records.ledger import GENESIS, entry_json
from tooltrail.store import create_store, open_store
from tooltrail.store._recording.bodies import decode_body, encode_body
from tooltrail.store.engines.sqlite_library import sqlite3
from tooltrail.store.tables import metadata

BEGINNING = datetime(2025, 1, 1, tzinfo=UTC)
LONG_SESSION = 10_000
"""Invocations of the longest session, where there are ten times as many in the store."""

SESSION = 100
"""Invocations of every other session."""

RARE_AGENT, RARE_TOOL, RARE_STATUS = "archivist", "Rare", 42
"""Of the oldest records alone, so that who looks for them from the newest passes by all others."""

_TOKEN = "00000000"
_LINE = f"tests/store/test_{_TOKEN}.py::test_case PASSED\n".encode()
_BIG = _LINE * 1_000
_CHUNK = 5_000
_AGENTS = ("coder", "planner", None)
_OF_INVOCATION = (
    "complete_outputs",
    "output_streams",
    "canonical_results",
    "receipts",
    "invocation_artifacts",
    "omissions",
)

_Row = dict[str, Any]


@dataclass(frozen=True)
class _Pattern:
    """A recorded invocation as it stands in the tables: its rows by table."""

    invocation: _Row
    rows: dict[str, list[_Row]]
    entries: list[_Row]
    bodies: list[_Row]
    artifacts: list[_Row]

    @property
    def id(self) -> UUID:
        return UUID(bytes=self.invocation["id"])


@dataclass
class _Home:
    """A session that copies are put into."""

    key: int
    id: UUID
    entry_count: int = 0
    digest: str = GENESIS
    next_seq: int = 0


@dataclass
class _Batch:
    """Rows by table that are inserted at once."""

    rows: dict[str, list[_Row]] = field(default_factory=dict[str, list[_Row]])

    def add(self, table: str, row: _Row) -> None:
        self.rows.setdefault(table, []).append(row)

    def insert(self, connection: sqlite3.Connection) -> None:
        """Insert all; bodies and artifacts that are there already stay as they are."""
        for table in metadata.sorted_tables:
            rows = self.rows.pop(table.name, None)
            if rows:
                names = list(rows[0])
                sql = (
                    f"INSERT OR IGNORE INTO {table.name} ({', '.join(names)})"
                    f" VALUES ({', '.join('?' * len(names))})"
                )
                if table.name not in ("bodies", "artifacts"):
                    sql = sql.replace(" OR IGNORE", "")
                connection.executemany(sql, [tuple(row.values()) for row in rows])
        connection.commit()


def make_large_store(database: Path, count: int) -> None:
    """A store in a file with at least so many invocations.

    The newest session is open and has one invocation, the one before it is the long one.
    """
    _record_patterns(database)
    connection = sqlite3.connect(database)
    connection.row_factory = sqlite3.Row
    # Nobody minds when the machine fails now.
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("PRAGMA cache_size = -500000")
    try:
        copies = _copies(_patterns(connection), _session_sizes(count))
        while chunk := list(islice(copies, _CHUNK)):
            batch = _Batch()
            for rows in chunk:
                for table, row in rows:
                    batch.add(table, row)
            batch.insert(connection)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.close()
    with open_store(database) as store:
        run_command(store.open_session(agent="coder"), b"the newest\n")


def _session_sizes(count: int) -> Iterator[int]:
    long = LONG_SESSION if count >= 10 * LONG_SESSION else SESSION
    yield from [SESSION] * ((count - long) // SESSION)
    yield long


def _record_patterns(database: Path) -> None:
    with create_store(database) as store:
        with store.open_session(agent=RARE_AGENT) as session:
            run_command(session, _LINE * 8, exit_status=RARE_STATUS)
            run_tool(session, "rare", tool=RARE_TOOL)
            fail_tool(session, "permission_denied")
        with store.open_session(agent="coder") as session:
            run_command(session, _LINE * 8)
            run_tool(session, (_LINE * 4).decode())
            fail_tool(session)
            run_command(session, _LINE, _LINE, exit_status=1)
            run_command(session, _BIG)


def _patterns(connection: sqlite3.Connection) -> list[_Pattern]:
    """The invocations of the second session, in their order."""
    select = "SELECT * FROM invocations WHERE session_key = 2 ORDER BY seq"
    return [_pattern(connection, dict(row)) for row in connection.execute(select)]


def _pattern(connection: sqlite3.Connection, invocation: _Row) -> _Pattern:
    def ask(sql: str, *values: object) -> list[_Row]:
        return [dict(row) for row in connection.execute(sql, values)]

    key = invocation["key"]
    rows = {t: ask(f"SELECT * FROM {t} WHERE invocation_key = ?", key) for t in _OF_INVOCATION}
    named = [invocation["arguments_digest"]]
    named += [row["digest"] for row in rows["output_streams"]]
    named += [row["body_digest"] for row in rows["receipts"]]
    return _Pattern(
        invocation,
        rows,
        ask("SELECT * FROM ledger_entries WHERE subject_id = ? ORDER BY n", invocation["id"]),
        [row for name in named for row in ask("SELECT * FROM bodies WHERE digest = ?", name)],
        [row for n in named for row in ask("SELECT * FROM artifacts WHERE digest = ?", n)],
    )


def _copies(patterns: list[_Pattern], sizes: Iterator[int]) -> Iterator[list[tuple[str, _Row]]]:
    """The rows of every invocation, and before them, in the same list, those of its session."""
    key = 100
    for number, size in enumerate(sizes):
        home = _Home(100 + number, _id(key, 1))
        opened = _moment(key)
        rows = _session_rows(home, _AGENTS[number % 3], opened)
        for _ in range(size):
            rows += _copy(patterns[_kind(key)], home, key)
            key += 1
            yield rows
            rows = []
        closed = _moment(key)
        rows = [_entry(home, "session.closed", home.id, closed, "{}")]
        head = {"session_key": home.key, "entry_count": home.entry_count, "digest": home.digest}
        yield [*rows, ("ledger_heads", {**head, "next_seq": home.next_seq, "closed_at": closed})]


def _kind(key: int) -> int:
    """Which pattern: most are commands that succeeded with a short output."""
    for step, kind in ((50, 4), (40, 2), (20, 3), (10, 1)):
        if key % step == 7:
            return kind
    return 0


def _session_rows(home: _Home, agent: str | None, opened: str) -> list[tuple[str, _Row]]:
    row = {"key": home.key, "id": home.id.bytes, "agent": agent}
    return [
        ("sessions", {**row, "environment": "{}", "opened_at": opened}),
        _entry(home, "session.opened", home.id, opened, "{}"),
    ]


def _copy(pattern: _Pattern, home: _Home, key: int) -> list[tuple[str, _Row]]:
    new_id, moment = _id(key, 2), _moment(key)
    changes = [(_TOKEN, f"{key:08d}"), (str(pattern.id), str(new_id))]
    rows = list(_payloads(pattern, key, changes))
    invocation = {**pattern.invocation, "key": key, "id": new_id.bytes, "seq": home.next_seq}
    invocation |= {"session_key": home.key, "started_at": moment, "finished_at": moment}
    rows.append(("invocations", invocation))
    for table in _OF_INVOCATION:
        for row in pattern.rows[table]:
            changed = {n: _changed(value, changes) for n, value in row.items()}
            changed["invocation_key"] = key
            if "document" in changed:
                changed["digest"] = digest_of(changed["document"].encode())
                changes.append((row["digest"], changed["digest"]))
            rows.append((table, changed))
    changes.append((f'"seq":{pattern.invocation["seq"]},', f'"seq":{home.next_seq},'))
    home.next_seq += 1
    for entry in pattern.entries:
        payload = _changed(entry["payload"], changes)
        rows.append(_entry(home, entry["kind"], new_id, moment, payload))
    return rows


def _payloads(
    pattern: _Pattern, key: int, changes: list[tuple[str, str]]
) -> Iterator[tuple[str, _Row]]:
    """Bodies and artifacts with the output of this copy; their new digests go into the changes."""
    token, own = (text.encode() for text in changes[0])
    for body in pattern.bodies:
        data = decode_body(body["digest"], body["size"], body["encoding"], body["data"])
        if token in data:
            data = data.replace(token, own)
            encoding, stored = encode_body(data)
            digest = digest_of(data)
            changes.append((body["digest"], digest))
            yield "bodies", {**body, "digest": digest, "encoding": encoding, "data": stored}
    for artifact in pattern.artifacts:
        digest = digest_of(b"%d" % key)
        path = artifact_path(digest)
        changes += [(artifact["path"], path), (artifact["digest"], digest)]
        yield "artifacts", {**artifact, "path": path, "digest": digest}


def _changed(value: Any, changes: list[tuple[str, str]]) -> Any:
    if isinstance(value, str):
        for old, new in changes:
            value = value.replace(old, new)
    return value


def _entry(home: _Home, kind: Any, subject: UUID, moment: str, payload: str) -> tuple[str, _Row]:
    """The next link of a session's chain."""
    document = entry_json(
        session_id=home.id,
        n=home.entry_count,
        kind=kind,
        subject_id=subject,
        happened_at=datetime.fromisoformat(moment),
        payload=payload.encode(),
        previous=home.digest,
    )
    digest = digest_of(document)
    row = {"session_key": home.key, "n": home.entry_count, "kind": kind}
    row |= {"subject_id": subject.bytes, "happened_at": moment, "payload": payload}
    row |= {"previous": home.digest, "digest": digest}
    home.entry_count += 1
    home.digest = digest
    return "ledger_entries", row


def _id(key: int, kind: int) -> UUID:
    """A UUID of version 7 that says when, and whose end differs from its neighbours'."""
    milliseconds = int(datetime.fromisoformat(_moment(key)).timestamp() * 1000)
    scattered = key * 0x9E3779B97F4A7C15 % 2**62
    return UUID(int=milliseconds << 80 | 0x7 << 76 | kind << 64 | 0x2 << 62 | scattered)


def _moment(key: int) -> str:
    return (BEGINNING + timedelta(seconds=key)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
