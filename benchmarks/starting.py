"""Processor time of whole processes, beside that of an empty Python."""

import os
import statistics
import subprocess
import sys
from pathlib import Path

from benchmarks._calls import made_rounds, record
from benchmarks._measure import IS_FULL, TOOLTRAIL, Report, Times, cost, scratch_folder
from tooltrail.store import create_store

ROUNDS = 31 if IS_FULL else 7
CALLS = 20

_PYTHON = "python3 -c pass"
_TARGETS = {
    "--version": "≤ 5",
    "exec -- true": "≤ 5",
    "log": "≤ 15",
    "show": "≤ 15",
    "status": "≤ 15",
    "transcript": "≤ 15",
    "artifact ls": "≤ 15",
}


def lines() -> Report:
    """Each command, all of them in turn."""
    commands = {_PYTHON: [sys.executable, "-c", "pass"]}
    commands |= {name: [*TOOLTRAIL, *name.split()] for name in _TARGETS}
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    with scratch_folder() as folder:
        # `exec` has a store of its own, so that the others have nothing to ingest.
        for name in ("read", "written"):
            _make_store(folder / name / "tooltrail.db")
        for number in range(ROUNDS + 1):
            for name, command in commands.items():
                home = "written" if name.startswith("exec") else "read"
                used = _processor_seconds(command, folder / home / "tooltrail.db")
                if number:
                    seconds[name].append(used)
    medians = {name: statistics.median(used) for name, used in seconds.items()}
    for name, target in _TARGETS.items():
        times = Times(medians[name], medians[_PYTHON])
        yield cost(f"tooltrail {name}, processor time", _PYTHON, times, target)


def _make_store(database: Path) -> None:
    with create_store(database) as store, store.open_session() as session:
        record(session, next(made_rounds(CALLS)))


def _processor_seconds(command: list[str], database: Path) -> float:
    environment = {**os.environ, "TOOLTRAIL_DB": str(database)}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime
