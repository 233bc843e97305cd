"""Recording takes the same memory whatever the size of the output."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

MIB = 1024 * 1024
MAX_PEAK = 120 * MIB
MAX_GROWTH = 12 * MIB

# Its own process, because the peak of children is the peak of all children ever waited for.
MEASURE = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(peak * (1 if sys.platform == "darwin" else 1024))
"""


def peak_of_recording(size: int, store: Path) -> int:
    env = {**os.environ, "TOOLTRAIL_DB": str(store)}
    text = f"yes 'a line of output that is long enough to be worth a line' | head -c {size}"
    recorded = [sys.executable, "-m", "tooltrail.cli", "exec", "--", "sh", "-c", text]
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, *recorded], env=env, check=True, stdout=subprocess.PIPE
    )
    return int(done.stdout)


@pytest.fixture
def store_path(tmp_path: Path) -> Path:
    path = tmp_path / "tooltrail.db"
    env = {**os.environ, "TOOLTRAIL_DB": str(path)}
    subprocess.run(
        [sys.executable, "-m", "tooltrail.cli", "init"], env=env, check=True, capture_output=True
    )
    return path


def test_recording_128_mb_takes_no_more_memory_than_16_mb(store_path: Path) -> None:
    small = peak_of_recording(16 * MIB, store_path)
    large = peak_of_recording(128 * MIB, store_path)
    assert large <= MAX_PEAK, f"peak of {large / MIB:.0f} MiB"
    assert large - small <= MAX_GROWTH, f"{small / MIB:.0f} MiB grew to {large / MIB:.0f} MiB"
