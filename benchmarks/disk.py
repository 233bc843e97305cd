"""Bytes on disk of the sessions of real agents, for each byte that their tools gave."""

import sqlite3  # noqa: TID251  Python's own library counts pages, and no other has the file open
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

from tests.support.corpus.calls import RecordedCall, complete, encoded
from tests.support.corpus.formats import CORPUS, READERS, recorded_calls

from benchmarks._measure import Line, Report, scratch_folder
from tooltrail.records import CompleteOutput, ToolCall, default_families
from tooltrail.store import EndedCall, create_store

_FAMILIES = default_families()
_SESSION = 50
"""Calls of one session."""

_TEXTS = ("arguments", "output", "canonical", "receipt")
"""The columns of `surfaces`, by far the largest table."""


def lines(*, is_full: bool) -> Report:
    """All calls of the corpus, and the parts of their store."""
    del is_full
    if not CORPUS.is_dir():
        yield f"bytes on disk: not measured, since there is no corpus at {CORPUS}"
        return
    calls = [call for name in READERS for call in recorded_calls(name)]
    ended = [_ended(call) for call in calls]
    size = sum(map(_output_size, calls, (one.output for one in ended)))
    with scratch_folder() as folder:
        _record(folder / "tooltrail.db", ended)
        artifacts = sum(file.stat().st_size for file in (folder / "artifacts").rglob("*.zst"))
        total = artifacts + (folder / "tooltrail.db").stat().st_size
        parts = [("artifacts", artifacts), *_tables(folder / "tooltrail.db")]
    detail = f"{total:,} and {size:,} bytes, {len(calls):,} calls"
    yield Line("bytes on disk of real sessions", total / size, "≤ 2.5", "a byte of output", detail)
    yield from (f"  {name:50} {part / size:9.2f}" for name, part in parts if part > size / 100)


def _record(database: Path, calls: list[EndedCall]) -> None:
    with create_store(database) as store:
        waiting = iter(calls)
        while some := list(islice(waiting, _SESSION)):
            with store.open_session() as session:
                for _ in session.record_many(some):
                    pass
        assert not store.ingest().rejected_count


def _ended(call: RecordedCall) -> EndedCall:
    family, output = complete(call, _FAMILIES)
    return EndedCall(ToolCall.of(call.tool_name, call.arguments), output, family=family.name)


def _output_size(call: RecordedCall, output: CompleteOutput) -> int:
    """Bytes that the tool gave: of all streams, or of its texts where it has none."""
    if output.streams:
        return sum(stream.produced_size for stream in output.streams)
    return sum(len(encoded(text)) for text in call.texts)


def _tables(database: Path) -> Iterator[tuple[str, int]]:
    """Bytes of the texts of calls, and of each table and index where the library counts pages."""
    with closing(sqlite3.connect(database)) as raw:
        for name in _TEXTS:
            sql = f"SELECT sum(length(CAST({name} AS BLOB))) FROM surfaces"
            yield f"surfaces.{name}", raw.execute(sql).fetchone()[0]
        if raw.execute("SELECT sqlite_compileoption_used('ENABLE_DBSTAT_VTAB')").fetchone()[0]:
            yield from raw.execute(
                "SELECT name, sum(pgsize) FROM dbstat GROUP BY 1 ORDER BY 2 DESC"
            )
