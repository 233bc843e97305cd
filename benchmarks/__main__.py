"""`make bench`: every measurement beside its baseline, as a ratio."""

import tempfile
from pathlib import Path

from benchmarks import capture, projecting, recording
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
    with tempfile.TemporaryDirectory(prefix="tooltrail-bench-") as name:
        ratio = recording.measure_recording(Path(name))
        raw = "raw sqlite3, two FULL transactions"
        _report("start + finish of a 1 KB command", raw, ratio, recording.INVOCATIONS, "/s")
    ratio = projecting.measure_projecting()
    plain = "json.dumps + json.loads of the record"
    _report("project + render 2 KB, validated", plain, ratio, projecting.REPEATS, "/s")


def _report(subject: str, baseline: str, ratio: Ratio, amount: float, unit: str = " MB/s") -> None:
    print(
        f"{subject:38} {amount / ratio.subject:8,.0f}{unit:5}  "
        f"{baseline:36} {amount / ratio.baseline:8,.0f}{unit:5}  ratio {ratio.throughput:.2f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
