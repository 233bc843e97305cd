"""`make bench`: every measurement beside its baseline, as a ratio.

    python -m benchmarks [--full] [SUBJECT ...]

`--full` records 20,000 calls with ingestion, reads a store of a million calls, and the last
lines of 4 GB: an hour, and some 10 GB of disk.
"""

import argparse
from collections.abc import Callable

from benchmarks import (
    artifacts,
    capture,
    disk,
    far_artifacts,
    growth,
    importing,
    projecting,
    reading,
    recording,
    slow_disk,
    starting,
    wire,
)
from benchmarks._measure import Report

SUBJECTS: dict[str, Callable[..., Report]] = {
    "recording": recording.lines,
    "slow_disk": slow_disk.lines,
    "importing": importing.lines,
    "disk": disk.lines,
    "reading": reading.lines,
    "growth": growth.lines,
    "starting": starting.lines,
    "capture": capture.lines,
    "artifacts": artifacts.lines,
    "far_artifacts": far_artifacts.lines,
    "projecting": projecting.lines,
    "wire": wire.lines,
}


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help=", ".join(SUBJECTS))
    parser.add_argument("--full", action="store_true", help="large amounts: about an hour")
    asked = parser.parse_args()
    if unknown := set(asked.subjects) - set(SUBJECTS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(SUBJECTS)}")
    print(f"{'subject':52} {'ratio':>9} {'target':>8}  baseline: absolute figures of both")
    for name in asked.subjects or SUBJECTS:
        for line in SUBJECTS[name](is_full=asked.full):
            print(line, flush=True)


if __name__ == "__main__":
    main()
