"""A store with very many calls: reading, verification, and recording.

The baseline of reading is raw `sqlite3` that reads the same rows. The baseline of recording is a
store with few calls: recording must cost the same in both.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from functools import partial
from pathlib import Path

import zstandard

from benchmarks import _stores
from benchmarks._calls import Call, made_rounds, record
from benchmarks._measure import Action, Report, Times, compare, compare_rounds, cost, speed
from benchmarks.importing import record_many
from tooltrail.records import FamilyRegistry
from tooltrail.store import InvocationFilter, Store, open_store
from tooltrail.store.engines.sqlite_library import sqlite3
from tooltrail.store.filters import ALL
from tooltrail.store.verify import verify
from tooltrail.transcripts import load_transcript

PAGE = 20
ROUNDS = 9
VERIFY_ROUNDS = 3
INVOCATIONS = 320

_RAW_PAGE = "the newest 20 by raw sqlite3"
_NEWEST = """
SELECT i.*, s.id FROM invocations i JOIN sessions s ON s.key = i.session_key
ORDER BY i.started_at DESC, i.key DESC LIMIT 20
"""
_ROWS = """
SELECT t.* FROM invocations i JOIN {} t ON t.invocation_key = i.key
WHERE i.session_key = ? ORDER BY i.seq
"""
_TRANSCRIPT = (
    "SELECT * FROM invocations WHERE session_key = ? ORDER BY seq",
    *map(_ROWS.format, ("surfaces", "streams", "omissions", "invocation_artifacts")),
)
"""The queries that a transcript cannot do without."""

_EVIDENCE = ("ledger_entries", "invocations", "surfaces", "streams", "omissions", "bodies")
"""The large tables, all of which a verification must read."""

_OLD = _stores.BEGINNING + timedelta(seconds=2_000)
ONE_FILTER = {
    "tool of most": InvocationFilter(tools=("Bash",)),
    "tool of one": InvocationFilter(tools=(_stores.RARE_TOOL,)),
    "family": InvocationFilter(families=("command",)),
    "family of none": InvocationFilter(families=("notification",)),
    "state": InvocationFilter(states=("error",)),
    "kind of error": InvocationFilter(error_kinds=("tool_failed",)),
    "agent": InvocationFilter(agents=("coder",)),
    "agent of the oldest": InvocationFilter(agents=(_stores.RARE_AGENT,)),
    "exit status": InvocationFilter(exit_statuses=(1,)),
    "exit status of one": InvocationFilter(exit_statuses=(_stores.RARE_STATUS,)),
    "size": InvocationFilter(min_size=10_000),
    "size of none": InvocationFilter(min_size=1 << 40),
    "time of the oldest": InvocationFilter(until=_OLD),
}
TWO_FILTERS = {
    "tool and exit status": InvocationFilter(tools=("Bash",), exit_statuses=(1,)),
    "tool and time": InvocationFilter(tools=("Bash",), since=_OLD),
    "tool and size": InvocationFilter(tools=("Lookup",), min_size=10_000),
    "family and error": InvocationFilter(families=("command",), error_kinds=("tool_failed",)),
    "agent and state": InvocationFilter(agents=("planner",), states=("error",)),
    "agent and time": InvocationFilter(agents=("coder",), until=_OLD),
}
"""Common filters; and filters that few or no calls match, so that all others are scanned."""


def lines() -> Report:
    """Pages, the transcript of the longest session, verification and recording."""
    many, few = _stores.MANY, _stores.FEW
    database = _stores.stored_calls(many)
    with open_store(database) as store, closing(sqlite3.connect(database)) as raw:
        yield cost(f"the newest 20 of {many:,}", _RAW_PAGE, _measure_page(store, raw, ALL))
        kinds = (("one filter", ONE_FILTER, "≤ 5 ms"), ("two filters", TWO_FILTERS, "≤ 25 ms"))
        for name, filters, target in kinds:
            found = {what: _measure_page(store, raw, where) for what, where in filters.items()}
            ordered = sorted(found, key=lambda what: found[what].subject)
            median, slowest = ordered[len(ordered) // 2], ordered[-1]
            yield cost(f"page of {name}, median", _RAW_PAGE, found[median], target)
            yield cost(f"page of {name}, slowest ({slowest})", _RAW_PAGE, found[slowest], target)
        times = _measure_transcript(store, raw)
        yield cost("transcript of the longest session", "its raw queries", times, "≤ 3")
    database = _stores.stored_calls(few)
    with open_store(database) as store:
        ways = (("verify", None, "≤ 12"), ("verify --receipts", store.families, "≤ 60"))
        for name, families, target in ways:
            times = _measure_verify(store, families, database)
            yield cost(f"{name} of {few:,}", "rows and artifacts read and hashed", times, target)
        with open_store(_stores.stored_calls(many)) as large:
            for name, step in (("start + finish", _one_by_one), ("record_many", _record_many)):
                times = compare_rounds(_rounds(large, store, step))
                subject, baseline = f"{name} among {many:,}, ingested", f"the same among {few:,}"
                yield speed(subject, baseline, times, INVOCATIONS, "≥ 0.8")


def _measure_page(store: Store, raw: sqlite3.Connection, where: InvocationFilter) -> Times:
    return compare(
        lambda: store.reader.invocations(where, limit=PAGE),
        lambda: raw.execute(_NEWEST).fetchall(),
        ROUNDS,
    )


def _measure_transcript(store: Store, raw: sqlite3.Connection) -> Times:
    session = max(store.reader.sessions(limit=2), key=lambda view: view.invocation_count)
    ((key,),) = raw.execute("SELECT key FROM sessions WHERE id = ?", (session.id.bytes,))
    return compare(
        lambda: load_transcript(store.reader, str(session.id)),
        lambda: [raw.execute(sql, (key,)).fetchall() for sql in _TRANSCRIPT],
        ROUNDS,
    )


def _measure_verify(store: Store, families: FamilyRegistry | None, database: Path) -> Times:
    def subject() -> None:
        for finding in verify(store.database, store.archive, families=families):
            raise AssertionError(finding.message)

    return compare(subject, lambda: _hash_all(database), VERIFY_ROUNDS)


def _hash_all(database: Path) -> None:
    with closing(sqlite3.connect(database)) as raw:
        for table in _EVIDENCE:
            for row in raw.execute(f"SELECT * FROM {table}"):
                for value in row:
                    if isinstance(value, (str, bytes)):
                        hashlib.sha256(value.encode() if isinstance(value, str) else value)
    decompressor = zstandard.ZstdDecompressor()
    for file in Path(f"{database}-artifacts").rglob("*.zst"):
        with file.open("rb") as stored:
            plain = decompressor.stream_reader(stored, read_across_frames=True)
            digest = hashlib.sha256()
            while data := plain.read(1 << 20):
                digest.update(data)


def _rounds(
    large: Store, few: Store, step: Callable[[Store, list[Call]], None]
) -> Iterator[tuple[Action, Action]]:
    made = made_rounds(INVOCATIONS)
    for _ in range(ROUNDS + 1):
        yield partial(step, large, next(made)), partial(step, few, next(made))


def _one_by_one(store: Store, calls: list[Call]) -> None:
    with store.open_session() as session:
        record(session, calls)
    store.ingest()


def _record_many(store: Store, calls: list[Call]) -> None:
    record_many(store, [call.ended() for call in calls])
