"""The same recording where a sync takes longer than on the machine that measures.

By strace each fsync and fdatasync waits before it is done, those of the baseline as well.
"""

import json
import shutil
import subprocess
import sys
import time
from dataclasses import astuple

from benchmarks import recording
from benchmarks._calls import record
from benchmarks._measure import Report, Times, scratch_folder, speed
from tooltrail.artifacts import sync_folder

SYNC_MS = 2
"""As of a network volume, or of a consumer's disk."""

_SYNCS = "fsync,fdatasync"


def lines(*, is_full: bool) -> Report:
    """One by one, and by many threads."""
    del is_full
    if not _can_slow_down():
        yield "recording on a slow disk: not measured, since strace is missing or may not trace"
        return
    done = subprocess.run(
        [*_traced(SYNC_MS), sys.executable, "-m", "benchmarks.slow_disk"],
        check=True,
        stdout=subprocess.PIPE,
    )
    names = ("one by one", f"{recording.RECORDERS} threads")
    for name, times in zip(names, json.loads(done.stdout), strict=True):
        subject = f"start + finish, {name}, {SYNC_MS} ms more a sync"
        baseline = f"{recording.RAW}, the same disk"
        yield speed(subject, baseline, Times(*times), recording.INVOCATIONS)


def _can_slow_down() -> bool:
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


def _measure_here() -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    for subject in (record, recording.by_threads):
        with scratch_folder() as folder:
            began = time.perf_counter()
            sync_folder(folder)
            if time.perf_counter() - began < SYNC_MS / 2000:
                raise RuntimeError("syncs are not held back: run `make bench`")
            found.append(astuple(recording.measure(folder, subject)))
    return found


if __name__ == "__main__":
    print(json.dumps(_measure_here()))
