"""A raw sqlite3 writer that keeps the bytes of a call: one row, and seven further rows."""

import json
from pathlib import Path

from benchmarks._calls import Call, Documents
from tooltrail.store.engines.sqlite_library import sqlite3

_SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
CREATE TABLE IF NOT EXISTS calls (key INTEGER PRIMARY KEY, id BLOB, session_key INTEGER,
    seq INTEGER, tool_name TEXT, arguments TEXT, started_at TEXT, state TEXT, finished_at TEXT);
CREATE TABLE IF NOT EXISTS outputs (key INTEGER PRIMARY KEY, document TEXT, digest TEXT);
CREATE TABLE IF NOT EXISTS streams (key INTEGER, n INTEGER, role TEXT, digest TEXT, data BLOB,
    PRIMARY KEY (key, n)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS results (key INTEGER PRIMARY KEY, document TEXT, digest TEXT);
CREATE TABLE IF NOT EXISTS receipts (key INTEGER PRIMARY KEY, data BLOB, digest TEXT);
CREATE TABLE IF NOT EXISTS entries (n INTEGER PRIMARY KEY, payload TEXT, digest TEXT);
"""
_DIGEST = "sha256:" + "0" * 64
_PAYLOAD = "{" + ",".join([f'"surface":"{_DIGEST}"'] * 4) + "}"
_TIME = "2026-11-22T12:00:00.000000Z"
_BUSY_S = 60


class RawStore:
    """Plain tables without triggers, foreign keys or further indexes. For one thread."""

    def __init__(self, path: Path) -> None:
        """Open the file, and create missing tables."""
        self._connection = sqlite3.connect(path, isolation_level=None, timeout=_BUSY_S)
        self._connection.executescript(_SCHEMA)

    def start(self, call: Call) -> int:
        """Write the start of a call, and return its key."""
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        key = execute(
            "INSERT INTO calls (id, session_key, seq, tool_name, arguments, started_at, state)"
            " VALUES (?, 1, 1, 'Bash', ?, ?, 'started')",
            (b"0123456789abcdef", json.dumps(call.arguments), _TIME),
        ).lastrowid
        execute("INSERT INTO entries (payload, digest) VALUES (?, ?)", (_PAYLOAD, _DIGEST))
        execute("COMMIT")
        assert key is not None
        return key

    def finish(self, key: int, call: Call, documents: Documents) -> None:
        """Write the end of a call."""
        execute = self._connection.execute
        complete, canonical, receipt = documents
        execute("BEGIN IMMEDIATE")
        execute("UPDATE calls SET state = 'success', finished_at = ? WHERE key = ?", (_TIME, key))
        execute("INSERT INTO outputs VALUES (?, ?, ?)", (key, complete, _DIGEST))
        self._connection.executemany(
            "INSERT INTO streams VALUES (?, ?, ?, ?, ?)",
            ((key, 0, "stdout", _DIGEST, call.output), (key, 1, "stderr", _DIGEST, b"")),
        )
        execute("INSERT INTO results VALUES (?, ?, ?)", (key, canonical, _DIGEST))
        execute("INSERT INTO receipts VALUES (?, ?, ?)", (key, receipt, _DIGEST))
        execute("INSERT INTO entries (payload, digest) VALUES (?, ?)", (_PAYLOAD, _DIGEST))
        execute("COMMIT")

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
