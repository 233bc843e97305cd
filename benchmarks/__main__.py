"""`make bench`: every measurement beside its baseline, as a ratio.

With TOOLTRAIL_BENCH_GIANT=1 the last lines of 4 GB too, which takes minutes and a gigabyte of disk.
"""

import os
import tempfile
from pathlib import Path

from benchmarks import capture, projecting, reading, recording
from benchmarks._measure import Ratio


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
    ratio = projecting.measure_projecting()
    plain = "json.dumps + json.loads of the record"
    _report("project + render 2 KB, validated", plain, ratio, projecting.REPEATS, "/s")


def _measure_reading(folder: Path) -> None:
    stored = reading.Stored.of(folder / "input", folder / "reading")
    for subject, baseline, measure in reading.SUBJECTS:
        _report(subject, baseline, measure(stored), 1, "/s")
    if os.environ.get("TOOLTRAIL_BENCH_GIANT"):
        giant = reading.Stored.of(folder / "input", folder / "giant", reading.GIANT_TIMES)
        ratio = reading.measure_tail_command(giant, reading.GIANT_ROUNDS)
        _report("artifact tail of 4 GB, whole process", reading.TAIL, ratio, 1, "/s")


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
