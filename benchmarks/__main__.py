"""`make bench`: every measurement as a ratio to its baseline.

    python -m benchmarks [SUBJECT ...]

With TOOLTRAIL_BENCH_FULL=1, 20,000 calls are recorded with ingestion, a store has a million calls,
and an output has 4 GB. That run takes about an hour and some 10 GB of disk.
"""

import os
import sys
from importlib import import_module

SUBJECTS = (
    *("recording", "processes", "slow_disk", "importing", "sessions", "index", "disk"),
    *("large_store", "starting", "capture", "projecting", "wire", "mcp_proxy"),
)
"""The modules that have a function `lines`."""


def main() -> None:
    """Run the measurements, and print the table."""
    chosen = sys.argv[1:] or SUBJECTS
    if not set(chosen) <= set(SUBJECTS):
        sys.exit(f"usage: python -m benchmarks [SUBJECT ...], of {', '.join(SUBJECTS)}")
    # Measure programs like installed ones, which are compiled only once.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    print(f"{'subject':58} {'ratio':>8} {'target':>8}  baseline: absolute figures of both")
    for name in chosen:
        for line in import_module(f"benchmarks.{name}").lines():
            print(line, flush=True)


if __name__ == "__main__":
    main()
