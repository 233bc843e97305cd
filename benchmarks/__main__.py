"""`make bench`: every measurement beside its baseline, as a ratio.

    python -m benchmarks [--full] [SUBJECT ...]

`--full` records 20,000 calls with ingestion, reads a store of a million calls, and the last
lines of 4 GB: an hour, and some 10 GB of disk.
"""

import argparse
import os
from importlib import import_module

SUBJECTS = (
    *("recording", "processes", "slow_disk", "importing", "disk", "large_store"),
    *("starting", "capture", "projecting", "wire"),
)
"""The modules with a function `lines`."""


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help=", ".join(SUBJECTS))
    parser.add_argument("--full", action="store_true", help="large amounts: about an hour")
    asked = parser.parse_args()
    if unknown := set(asked.subjects) - set(SUBJECTS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(SUBJECTS)}")
    # Programs are measured as they are installed: compiled once.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    print(f"{'subject':52} {'ratio':>9} {'target':>8}  baseline: absolute figures of both")
    for name in asked.subjects or SUBJECTS:
        for line in import_module(f"benchmarks.{name}").lines(is_full=asked.full):
            print(line, flush=True)


if __name__ == "__main__":
    main()
