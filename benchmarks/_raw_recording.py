"""What raw sqlite3 does to keep the bytes of a call: one row, and six beside it."""

from pathlib import Path

from tooltrail.store._engines.sqlite import sqlite3

_SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
CREATE TABLE calls (key INTEGER PRIMARY KEY, id BLOB, session_key INTEGER, seq INTEGER,
    tool_name TEXT, arguments TEXT, started_at TEXT, state TEXT, finished_at TEXT);
CREATE TABLE outputs (key INTEGER PRIMARY KEY, document TEXT, digest TEXT);
CREATE TABLE streams (key INTEGER, n INTEGER, role TEXT, digest TEXT, data BLOB,
    PRIMARY KEY (key, n)) WITHOUT ROWID;
CREATE TABLE results (key INTEGER PRIMARY KEY, document TEXT, digest TEXT);
CREATE TABLE receipts (key INTEGER PRIMARY KEY, data BLOB, digest TEXT);
CREATE TABLE entries (n INTEGER PRIMARY KEY, payload TEXT, digest TEXT);
"""
DIGEST = "sha256:" + "0" * 64
PAYLOAD = "{" + ",".join([f'"surface":"{DIGEST}"'] * 4) + "}"
TIME = "2026-11-22T12:00:00.000000Z"


class RawStore:
    """Plain tables without triggers, foreign keys and further indexes. For one thread."""

    def __init__(self, path: Path) -> None:
        """Make the tables."""
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.executescript(_SCHEMA)

    def record(self, arguments: str, output: bytes, documents: "Documents") -> None:
        """Write a call in two transactions: that it began, and how it ended."""
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        key = execute(
            "INSERT INTO calls (id, session_key, seq, tool_name, arguments, started_at, state)"
            " VALUES (?, 1, 1, 'Bash', ?, ?, 'started')",
            (b"0123456789abcdef", arguments, TIME),
        ).lastrowid
        execute("INSERT INTO entries (payload, digest) VALUES (?, ?)", (PAYLOAD, DIGEST))
        execute("COMMIT")
        complete, canonical, receipt = documents
        execute("BEGIN IMMEDIATE")
        execute("UPDATE calls SET state = 'success', finished_at = ? WHERE key = ?", (TIME, key))
        execute("INSERT INTO outputs VALUES (?, ?, ?)", (key, complete, DIGEST))
        self._connection.executemany(
            "INSERT INTO streams VALUES (?, ?, ?, ?, ?)",
            ((key, 0, "stdout", DIGEST, output), (key, 1, "stderr", DIGEST, b"")),
        )
        execute("INSERT INTO results VALUES (?, ?, ?)", (key, canonical, DIGEST))
        execute("INSERT INTO receipts VALUES (?, ?, ?)", (key, receipt, DIGEST))
        execute("INSERT INTO entries (payload, digest) VALUES (?, ?)", (PAYLOAD, DIGEST))
        execute("COMMIT")

    def close(self) -> None:
        """Give the connection back."""
        self._connection.close()


Documents = tuple[str, str, bytes]
"""The complete output and the canonical result as JSON, and the receipt."""
