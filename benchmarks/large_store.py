"""Reading a store of very many invocations, beside raw `sqlite3` and beside the start of Python."""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

from tests.support.large_store import BEGINNING, RARE_AGENT, RARE_STATUS, RARE_TOOL

from benchmarks._measure import Ratio, compare
from tooltrail.store import InvocationFilter, Reader, Store
from tooltrail.store._engines.sqlite import sqlite3

MANY = 1_000_000
FEW = 20_000
ROUNDS = 9
PAGE = 20
_PYTHON = (sys.executable, "-c", "pass")
_TOOLTRAIL = (sys.executable, "-m", "tooltrail.cli")
_NEWEST = """
SELECT i.*, s.id FROM invocations i JOIN sessions s ON s.key = i.session_key
ORDER BY i.key DESC LIMIT 20
"""
_RAW = (
    """
    SELECT i.*, b.*, c.document, c.digest, r.document, r.digest FROM invocations i
    LEFT JOIN bodies b ON b.digest = i.arguments_digest
    LEFT JOIN complete_outputs c ON c.invocation_key = i.key
    LEFT JOIN canonical_results r ON r.invocation_key = i.key
    WHERE i.session_key = ? ORDER BY i.seq
    """,
    """
    SELECT r.*, b.* FROM invocations i
    JOIN receipts r ON r.invocation_key = i.key AND r.n = 0
    LEFT JOIN bodies b ON b.digest = r.body_digest WHERE i.session_key = ?
    """,
    """
    SELECT o.* FROM invocations i JOIN output_streams o ON o.invocation_key = i.key
    WHERE i.session_key = ? ORDER BY o.invocation_key, o.n
    """,
)
"""What a transcript cannot do without."""

_RECENT = InvocationFilter(tools=("Bash",), since=BEGINNING + timedelta(seconds=10_000))
FILTERS = {
    "tool of most": InvocationFilter(tools=("Bash",)),
    "tool of one": InvocationFilter(tools=(RARE_TOOL,)),
    "family": InvocationFilter(families=("command",)),
    "state": InvocationFilter(states=("error",)),
    "status": InvocationFilter(statuses=("error",)),
    "kind of error": InvocationFilter(error_kinds=("tool_execution_failed",)),
    "agent": InvocationFilter(agents=("coder",)),
    "exit status": InvocationFilter(exit_statuses=(1,)),
    "size": InvocationFilter(min_size=10_000),
    "time": InvocationFilter(since=BEGINNING),
    "tool and exit status": InvocationFilter(tools=("Bash",), exit_statuses=(1,)),
    "tool and time": _RECENT,
    "exit status of one": InvocationFilter(exit_statuses=(RARE_STATUS,)),
    "size of none": InvocationFilter(min_size=1 << 40),
    "family of none": InvocationFilter(families=("notification",)),
    "time of the oldest": InvocationFilter(until=BEGINNING + timedelta(seconds=2_000)),
    "time of none": InvocationFilter(since=BEGINNING + timedelta(days=10_000)),
    "agent of the oldest": InvocationFilter(agents=(RARE_AGENT,)),
    "tool of many and size of many, both of none": InvocationFilter(
        tools=("Read",), min_size=10_000
    ),
    "family and kind of error, both of none": InvocationFilter(
        families=("command",), error_kinds=("tool_execution_failed",)
    ),
    "three that few have together": InvocationFilter(
        agents=("coder",), states=("success",), until=BEGINNING + timedelta(seconds=2_000)
    ),
}
"""What people ask for; and what few have or none, so that it passes by all others."""


def measure_newest(store: Store, database: Path) -> Ratio:
    """The newest 20 in this process, beside the same rows by raw `sqlite3`."""
    raw = sqlite3.connect(database)
    try:
        return compare(
            lambda: _keep(store.reader.invocations(limit=PAGE)),
            lambda: _keep(raw.execute(_NEWEST).fetchall()),
            ROUNDS,
        )
    finally:
        raw.close()


def measure_filter(store: Store, where: InvocationFilter) -> Ratio:
    """A page of a filter, beside the newest 20."""
    reader = store.reader
    return compare(lambda: _page(reader, where), lambda: _page(reader), ROUNDS)


def measure_transcript(store: Store, database: Path) -> Ratio:
    """The longest session with all surfaces, beside the three raw queries that it needs."""
    session = max(store.reader.sessions(limit=2), key=lambda view: view.invocation_count)
    raw = sqlite3.connect(database)
    ((key,),) = raw.execute("SELECT key FROM sessions WHERE id = ?", (session.id.bytes,))
    try:
        return compare(
            lambda: _keep(store.reader.conversation(session.id)),
            lambda: _keep([raw.execute(sql, (key,)).fetchall() for sql in _RAW]),
            ROUNDS,
        )
    finally:
        raw.close()


def measure_log(database: Path) -> Ratio:
    """`tooltrail log -n 20` as a whole process, beside `tooltrail --version`."""
    log = (*_TOOLTRAIL, "log", "-n", str(PAGE), "--db", str(database))
    return compare(_process(log), _process((*_TOOLTRAIL, "--version")), 2 * ROUNDS)


def measure_version() -> Ratio:
    """`tooltrail --version` as a whole process, beside `python -c pass`."""
    return compare(_process((*_TOOLTRAIL, "--version")), _process(_PYTHON), 2 * ROUNDS)


def _process(command: Sequence[str]) -> Callable[[], None]:
    # As it is installed: compiled once.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}

    def run() -> None:
        subprocess.run(command, check=True, capture_output=True, env=environment)

    return run


def _page(reader: Reader, where: InvocationFilter | None = None) -> None:
    _keep(reader.invocations(where or InvocationFilter(), limit=PAGE))


def _keep(value: object) -> None:
    assert value is not None
