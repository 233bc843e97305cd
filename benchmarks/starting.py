"""Processor time of whole processes, beside that of an empty Python."""

import os
import statistics
import subprocess
import sys
from pathlib import Path

from benchmarks._calls import made_rounds, record
from benchmarks._measure import Report, Times, cost, scratch_folder
from tooltrail.store import create_store

ROUNDS, ROUNDS_IN_FULL = 7, 31
CALLS = 20
PYTHON = "python3 -c pass"

_TOOLTRAIL = (sys.executable, "-m", "tooltrail.cli")
_TARGETS = {
    "--version": "≤ 5",
    "exec -- true": "≤ 5",
    "log": "≤ 15",
    "show": "≤ 15",
    "status": "≤ 15",
    "transcript": "≤ 15",
    "artifact ls": "≤ 15",
}


def lines(*, is_full: bool) -> Report:
    """Each command; all of them in turn, as often as each other."""
    with scratch_folder() as folder:
        commands = {PYTHON: [sys.executable, "-c", "pass"]}
        commands |= {name: [*_TOOLTRAIL, *name.split()] for name in _TARGETS}
        seconds: dict[str, list[float]] = {name: [] for name in commands}
        environments = {name: _environment(folder / "read") for name in commands}
        environments["exec -- true"] = _environment(folder / "written")
        for number in range((ROUNDS_IN_FULL if is_full else ROUNDS) + 1):
            for name, command in commands.items():
                used = _processor_seconds(command, environments[name])
                if number:
                    seconds[name].append(used)
    medians = {name: statistics.median(used) for name, used in seconds.items()}
    for name, target in _TARGETS.items():
        times = Times(medians[name], medians[PYTHON])
        yield cost(f"tooltrail {name}, processor time", PYTHON, times, target)


def _environment(folder: Path) -> dict[str, str]:
    """The environment of a program that was installed, with a store of some calls."""
    database = folder / "tooltrail.db"
    if not database.exists():
        with create_store(database) as store, store.open_session() as session:
            record(session, next(made_rounds(CALLS)))
    # As it is installed: compiled once.
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "TOOLTRAIL_DB": str(database)}


def _processor_seconds(command: list[str], environment: dict[str, str]) -> float:
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime
