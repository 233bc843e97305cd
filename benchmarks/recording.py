"""Recording small invocations one by one, beside raw sqlite3 with the same durability."""

import sqlite3
from pathlib import Path

from benchmarks._measure import Ratio, compare
from tooltrail.records import CommandOutput, CompleteOutput, StreamRecord, ToolCall
from tooltrail.store import create_store

INVOCATIONS = 300
ROUNDS = 5
_OUTPUT = b"collected 24 items\n" * 60


def measure_recording(folder: Path) -> Ratio:
    """Start and finish, each durable, beside two raw transactions of the same bytes."""
    store = create_store(folder / "store" / "tooltrail.db")
    raw = sqlite3.connect(folder / "raw.db", isolation_level=None)
    raw.execute("PRAGMA journal_mode = WAL")
    raw.execute("PRAGMA synchronous = FULL")
    raw.execute("CREATE TABLE invocations (key INTEGER PRIMARY KEY, state TEXT, body BLOB)")

    def subject() -> None:
        with store.open_session() as session:
            for number in range(INVOCATIONS):
                invocation = session.start(ToolCall.of("Bash", {"command": f"pytest -k {number}"}))
                result = CommandOutput(
                    command="pytest",
                    exit_status=0,
                    stdout=StreamRecord.from_bytes("stdout", b"%d\n" % number + _OUTPUT),
                    stderr=StreamRecord.from_bytes("stderr", b""),
                )
                invocation.finish(CompleteOutput.success("Bash", result))

    def baseline() -> None:
        for number in range(INVOCATIONS):
            raw.execute("BEGIN IMMEDIATE")
            cursor = raw.execute("INSERT INTO invocations (state) VALUES ('started')")
            raw.execute("COMMIT")
            raw.execute("BEGIN IMMEDIATE")
            raw.execute(
                "UPDATE invocations SET state = 'success', body = ? WHERE key = ?",
                (b"%d\n" % number + _OUTPUT, cursor.lastrowid),
            )
            raw.execute("COMMIT")

    try:
        return compare(subject, baseline, ROUNDS)
    finally:
        store.close()
        raw.close()
