"""The same recording where a sync takes longer than on the machine that measures.

By strace each fsync and fdatasync waits before it is done, those of the baseline as well.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import bulk, recording
from benchmarks._measure import Ratio

SYNC_MS = 2
"""As of a network volume, or of a consumer's disk."""

_SYNCS = "fsync,fdatasync"


def has_strace() -> bool:
    """Whether syncs can be slowed down here."""
    return shutil.which("strace") is not None


def measure(sync_ms: int = SYNC_MS) -> tuple[Ratio, Ratio, Ratio]:
    """Start and finish one by one, the same by many at once, and an import; see `recording`."""
    delay = f"inject={_SYNCS}:delay_enter={sync_ms * 1000}"
    traced = ["strace", "-f", "--seccomp-bpf", "-o", "/dev/null", "-e", f"trace={_SYNCS}", "-e"]
    done = subprocess.run(
        [*traced, delay, sys.executable, "-m", "benchmarks.slow_disk"],
        check=True,
        stdout=subprocess.PIPE,
    )
    one_by_one, many, imported = (Ratio(*times) for times in json.loads(done.stdout))
    return one_by_one, many, imported


def _measure_here() -> list[tuple[float, float]]:
    with tempfile.TemporaryDirectory(prefix="tooltrail-bench-") as name:
        folder = Path(name)
        ratios = (
            recording.measure_recording(folder),
            recording.measure_many_recorders(folder),
            bulk.measure_sqlite(folder / "bulk"),
        )
    return [(ratio.subject, ratio.baseline) for ratio in ratios]


if __name__ == "__main__":
    print(json.dumps(_measure_here()))
