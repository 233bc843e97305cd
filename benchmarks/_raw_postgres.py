"""What raw psycopg does to keep the bytes of a call: the rows of `_raw_recording`, on a server."""

import psycopg

from benchmarks._raw_recording import DIGEST, PAYLOAD, TIME, Documents

_SCHEMA = """
CREATE SCHEMA raw;
SET search_path = raw;
CREATE TABLE calls (key BIGSERIAL PRIMARY KEY, id BYTEA, session_key BIGINT, seq BIGINT,
    tool_name TEXT, arguments TEXT, started_at TEXT, state TEXT, finished_at TEXT);
CREATE TABLE outputs (key BIGINT PRIMARY KEY, document TEXT, digest TEXT);
CREATE TABLE streams (key BIGINT, n BIGINT, role TEXT, digest TEXT, data BYTEA,
    PRIMARY KEY (key, n));
CREATE TABLE results (key BIGINT PRIMARY KEY, document TEXT, digest TEXT);
CREATE TABLE receipts (key BIGINT PRIMARY KEY, data BYTEA, digest TEXT);
CREATE TABLE entries (n BIGSERIAL PRIMARY KEY, payload TEXT, digest TEXT);
"""


class RawServer:
    """Plain tables without triggers, foreign keys and further indexes. For one thread."""

    def __init__(self, url: str) -> None:
        """Make the tables."""
        self._connection = psycopg.connect(url, prepare_threshold=1)
        self._connection.execute(_SCHEMA)
        self._connection.commit()

    def record(self, arguments: str, output: bytes, documents: Documents) -> None:
        """Write a call in two transactions: that it began, and how it ended."""
        execute = self._connection.execute
        answer = execute(
            "INSERT INTO calls (id, session_key, seq, tool_name, arguments, started_at, state)"
            " VALUES (%s, 1, 1, 'Bash', %s, %s, 'started') RETURNING key",
            (b"0123456789abcdef", arguments, TIME),
        )
        (key,) = answer.fetchone() or (0,)
        execute("INSERT INTO entries (payload, digest) VALUES (%s, %s)", (PAYLOAD, DIGEST))
        self._connection.commit()
        complete, canonical, receipt = documents
        execute("UPDATE calls SET state = 'success', finished_at = %s WHERE key = %s", (TIME, key))
        execute("INSERT INTO outputs VALUES (%s, %s, %s)", (key, complete, DIGEST))
        for n, (role, data) in enumerate((("stdout", output), ("stderr", b""))):
            execute("INSERT INTO streams VALUES (%s, %s, %s, %s, %s)", (key, n, role, DIGEST, data))
        execute("INSERT INTO results VALUES (%s, %s, %s)", (key, canonical, DIGEST))
        execute("INSERT INTO receipts VALUES (%s, %s, %s)", (key, receipt, DIGEST))
        execute("INSERT INTO entries (payload, digest) VALUES (%s, %s)", (PAYLOAD, DIGEST))
        self._connection.commit()

    def close(self) -> None:
        """Give the connection back."""
        self._connection.close()
