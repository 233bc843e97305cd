"""Keeping SQLite's log from growing without end.

After a commit SQLite copies the log into the database by itself, and begins it anew once all of it
is copied and nobody reads it. While one reads who began long ago it cannot, nor where there is
always somebody who reads: each of them may be quick. Whoever has written then waits a little for
those who read now, while no other writes; who comes later already reads the database instead.
"""

from contextlib import suppress
from pathlib import Path

from sqlalchemy import Connection

from tooltrail.store._engines import sqlite_connections as _sqlite
from tooltrail.store._engines.sqlite import sqlite3

READERS_WAIT_S = 0.5
"""Seconds that a writer gives to those who read; they block no one for long, but a person may."""


class LogLimit:
    """The log of one database file.

    A writer waits for readers when its own transaction has taken the log beyond a multiple of
    `JOURNAL_SIZE_LIMIT`. So one of them does, once for each such size, however many processes there
    are and however short each of them lives; nothing is to be remembered. Safe to share between
    threads.
    """

    def __init__(self, database: Path) -> None:
        """Prepare; nothing is looked at yet."""
        self._path = database.with_name(f"{database.name}-wal")

    def size(self) -> int:
        """Its bytes; 0 while there is none."""
        try:
            return self._path.stat().st_size
        except OSError:
            return 0

    def hold(self, connection: Connection, before: int) -> None:
        """Empty a log that has become too long.

        Args:
            connection: one that has just committed.
            before: its size when that transaction had begun.
        """
        if _times_too_long(self.size()) > _times_too_long(before):
            # What was to be written is written, whatever becomes of this.
            with suppress(sqlite3.Error):
                _empty(connection)


def _times_too_long(size: int) -> int:
    """How many times the limit it is beyond; one that ends at the limit is not too long."""
    return max(0, size - 1) // _sqlite.JOURNAL_SIZE_LIMIT


def _empty(connection: Connection) -> None:
    cursor = connection.connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {round(READERS_WAIT_S * 1000)}")
    try:
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        cursor.execute(f"PRAGMA busy_timeout = {round(_sqlite.BUSY_TIMEOUT_S * 1000)}")
        cursor.close()
