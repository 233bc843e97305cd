"""The subjects of `recording` where a sync takes longer than on the machine that measures.

By strace each fsync and fdatasync waits before it is done, those of the baseline as well.
"""

import shutil
import subprocess
import sys

from benchmarks._measure import Report

SYNC_MS = 2
"""As of a network volume, or of a consumer's disk."""

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
    """The lines of a run whose syncs are held back."""
    if shutil.which("strace") is None or subprocess.run([*_STRACE, "true"], check=False).returncode:
        yield "recording on a slow disk: not measured, since strace is missing or may not trace"
        return
    yield f"with {SYNC_MS} ms more for each sync:"
    command = [*_STRACE, sys.executable, "-m", "benchmarks", "recording"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    yield from done.stdout.splitlines()[1:]
