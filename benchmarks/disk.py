"""Bytes on disk of the sessions of real agents, for each byte that their tools gave."""

from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

from tests.support.corpus.calls import RecordedCall, complete, encoded
from tests.support.corpus.formats import CORPUS, READERS, recorded_calls

from benchmarks._measure import Line, Report, scratch_folder
from tooltrail.records import CompleteOutput, ToolCall, default_families
from tooltrail.store import EndedCall, create_store
from tooltrail.store.engines.sqlite_library import standard

_FAMILIES = default_families()
_SESSION = 50
"""Calls of one session."""


def lines(*, is_full: bool) -> Report:
    """All calls of the corpus, and then the parts of their store, table by table."""
    del is_full
    if not CORPUS.is_dir():
        yield f"bytes on disk: not measured, since there is no corpus at {CORPUS}"
        return
    calls = [call for name in READERS for call in recorded_calls(name)]
    ended = [_ended(call) for call in calls]
    size = sum(map(_output_size, calls, (one.output for one in ended)))
    with scratch_folder() as folder:
        _record(folder / "tooltrail.db", ended)
        parts = dict(_parts(folder))
    for name, part in sorted(parts.items(), key=lambda item: -item[1]):
        if part > size / 100:
            yield f"  {name:50} {part / size:9.2f}"
    total = sum(parts.values())
    detail = f"{total:,} and {size:,} bytes, {len(calls):,} calls"
    yield Line("bytes on disk of real sessions", total / size, "≤ 2.5", "a byte of output", detail)


def _record(database: Path, calls: list[EndedCall]) -> None:
    with create_store(database) as store:
        waiting = iter(calls)
        while some := list(islice(waiting, _SESSION)):
            with store.open_session() as session:
                for _ in session.record_many(some):
                    pass
        done = store.ingest()
        assert not done.rejected_count


def _ended(call: RecordedCall) -> EndedCall:
    family, output = complete(call, _FAMILIES)
    return EndedCall(ToolCall.of(call.tool_name, call.arguments), output, family=family.name)


def _output_size(call: RecordedCall, output: CompleteOutput) -> int:
    """Bytes that the tool gave: of all streams, or of its texts where it has none."""
    if output.streams:
        return sum(stream.produced_size for stream in output.streams)
    return sum(len(encoded(text)) for text in call.texts)


def _parts(folder: Path) -> Iterator[tuple[str, int]]:
    """Bytes of the artifacts, and of each table and index."""
    files = (file for file in (folder / "artifacts").rglob("*") if file.is_file())
    yield "artifacts", sum(file.stat().st_size for file in files)
    # Nothing has the file open any more. Python's own library counts pages, others may not.
    with closing(standard.connect(folder / "tooltrail.db")) as raw:
        (has_pages,) = raw.execute(
            "SELECT sqlite_compileoption_used('ENABLE_DBSTAT_VTAB')"
        ).fetchone()
        if has_pages:
            yield from raw.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name")
            return
    yield "database", (folder / "tooltrail.db").stat().st_size
