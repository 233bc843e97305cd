"""The subjects of `recording` on a simulated disk with slower syncs.

strace delays each fsync and fdatasync, including those of the baseline.
"""

import shutil
import subprocess
import sys

from benchmarks._measure import Report

SYNC_MS = 2
"""Extra milliseconds per sync, as on a network volume or a consumer disk."""

_SYNCS = "fsync,fdatasync"
_DELAY = f"inject={_SYNCS}:delay_enter={SYNC_MS * 1000}"
_STRACE = (
    "strace",
    "-f",
    "--seccomp-bpf",
    "-o",
    "/dev/null",
    "-e",
    f"trace={_SYNCS}",
    "-e",
    _DELAY,
)


def lines() -> Report:
    """The lines of a run with delayed syncs."""
    if shutil.which("strace") is None or subprocess.run([*_STRACE, "true"], check=False).returncode:
        yield "recording on a slow disk: not measured, since strace is missing or may not trace"
        return
    yield f"with {SYNC_MS} ms more for each sync:"
    command = [*_STRACE, sys.executable, "-m", "benchmarks", "recording"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    yield from done.stdout.splitlines()[1:]
