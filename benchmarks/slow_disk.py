"""The same recording where a sync takes longer than on the machine that measures.

By strace each fsync and fdatasync waits before it is done, those of the baseline as well.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import bulk, recording
from benchmarks._measure import Ratio
from tooltrail.artifacts import sync_folder

SYNC_MS = 2
"""As of a network volume, or of a consumer's disk."""

_SYNCS = "fsync,fdatasync"


def can_slow_down() -> bool:
    """Whether a program's syncs can be held back here: there is strace, and it may trace."""
    if shutil.which("strace") is None:
        return False
    sync = "import os; os.fsync(os.open('.', os.O_RDONLY))"
    traced = [*_traced(1), sys.executable, "-c", sync]
    return subprocess.run(traced, check=False, stderr=subprocess.DEVNULL).returncode == 0


def _traced(sync_ms: int) -> list[str]:
    delay = f"inject={_SYNCS}:delay_enter={sync_ms * 1000}"
    options = ["-f", "--seccomp-bpf", "-o", "/dev/null", "-e", f"trace={_SYNCS}", "-e", delay]
    return ["strace", *options]


def measure(sync_ms: int = SYNC_MS) -> tuple[Ratio, Ratio, Ratio]:
    """Start and finish one by one, the same by many at once, and an import; see `recording`."""
    done = subprocess.run(
        [*_traced(sync_ms), sys.executable, "-m", "benchmarks.slow_disk"],
        check=True,
        stdout=subprocess.PIPE,
    )
    one_by_one, many, imported = (Ratio(*times) for times in json.loads(done.stdout))
    return one_by_one, many, imported


def _measure_here() -> list[tuple[float, float]]:
    with tempfile.TemporaryDirectory(prefix="tooltrail-bench-") as name:
        folder = Path(name)
        began = time.perf_counter()
        sync_folder(folder)
        if time.perf_counter() - began < SYNC_MS / 2000:
            raise RuntimeError("syncs are not held back: run `make bench`")
        ratios = (
            recording.measure_recording(folder),
            recording.measure_many_recorders(folder),
            bulk.measure_sqlite(folder / "bulk"),
        )
    return [(ratio.subject, ratio.baseline) for ratio in ratios]


if __name__ == "__main__":
    print(json.dumps(_measure_here()))
