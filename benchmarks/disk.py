"""Bytes on disk of the sessions of real agents, per byte of tool output."""

import sqlite3  # noqa: TID251  Python's own library counts pages, and no other has the file open
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

from tests.support.corpus.formats import CORPUS, READERS, recorded_calls
from tests.support.corpus.replay import Replayed, replay

from benchmarks._measure import Report, consume, line, scratch_folder
from tooltrail.records import ToolCall, default_families
from tooltrail.store import EndedCall, create_store

_SESSION = 50
"""Number of calls per session."""

_TEXTS = ("arguments", "output", "canonical", "receipt")
"""The text columns of `surfaces`, by far the largest table."""


def lines() -> Report:
    """The size of a store with all calls of the corpus, and of the parts of the store."""
    if not CORPUS.is_dir():
        yield f"bytes on disk: not measured, since there is no corpus at {CORPUS}"
        return
    families = default_families()
    calls = [replay(call, families) for name in READERS for call in recorded_calls(name)]
    size = sum(call.given_bytes for call in calls)
    with scratch_folder() as folder:
        _record(folder / "tooltrail.db", calls)
        root = folder / "tooltrail.db-artifacts"
        artifacts = sum(file.stat().st_size for file in root.rglob("*.zst"))
        total = artifacts + (folder / "tooltrail.db").stat().st_size
        parts = [("artifacts", artifacts), *_tables(folder / "tooltrail.db")]
    detail = f"{total:,} and {size:,} bytes, {len(calls):,} calls"
    yield line("bytes on disk of real sessions", total / size, "≤ 2.5", "a byte of output", detail)
    yield from (f"  {name:50} {part / size:9.2f}" for name, part in parts if part > size / 100)


def _record(database: Path, calls: list[Replayed]) -> None:
    with create_store(database) as store:
        waiting = iter(calls)
        while some := list(islice(waiting, _SESSION)):
            with store.open_session() as session:
                consume(session.record_many(map(_ended, some)))
        assert not store.ingest().rejected_count


def _ended(replayed: Replayed) -> EndedCall:
    call = ToolCall.of(replayed.call.tool_name, replayed.call.arguments)
    return EndedCall(call, replayed.output, family=replayed.family.name)


def _tables(database: Path) -> Iterator[tuple[str, int]]:
    """Bytes of the texts of calls; and of each table and index, if the library counts pages."""
    with closing(sqlite3.connect(database)) as raw:
        for name in _TEXTS:
            sql = f"SELECT sum(length(CAST({name} AS BLOB))) FROM surfaces"
            yield f"surfaces.{name}", raw.execute(sql).fetchone()[0]
        if raw.execute("SELECT sqlite_compileoption_used('ENABLE_DBSTAT_VTAB')").fetchone()[0]:
            yield from raw.execute(
                "SELECT name, sum(pgsize) FROM dbstat GROUP BY 1 ORDER BY 2 DESC"
            )
