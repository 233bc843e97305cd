"""Keeping SQLite's log from growing without end.

After a commit SQLite copies the log into the database by itself, and begins it anew once all of it
is copied and nobody reads it. While one reads who began long ago it cannot, nor where there is
always somebody who reads: each of them may be quick. Whoever has written then waits a little for
those who read now, while no other writes; who comes later already reads the database instead.
"""

from contextlib import suppress
from pathlib import Path

from sqlalchemy import Connection

from tooltrail.store import _sqlite_connections as _sqlite
from tooltrail.store._sqlite import sqlite3

READERS_WAIT_S = 0.5
"""Seconds that a writer gives to those who read; they block no one for long, but a person may."""


class LogLimit:
    """The log of one database file, as far as one process has seen it grow.

    Safe to share between threads of which one at a time has the turn to write.
    """

    def __init__(self, database: Path) -> None:
        """Prepare; nothing is looked at yet."""
        self._path = database.with_name(f"{database.name}-wal")
        self._vain = 0

    def hold(self, connection: Connection) -> None:
        """Empty a log that has become too long; once for each `JOURNAL_SIZE_LIMIT` of it.

        Args:
            connection: one that has just committed.
        """
        size = self._size()
        if size > self._vain + _sqlite.JOURNAL_SIZE_LIMIT:
            # What was to be written is written, whatever becomes of this.
            with suppress(sqlite3.Error):
                _empty(connection)
            self._vain = self._size()
        else:
            self._vain = min(self._vain, size)

    def _size(self) -> int:
        try:
            return self._path.stat().st_size
        except OSError:
            return 0


def _empty(connection: Connection) -> None:
    cursor = connection.connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {round(READERS_WAIT_S * 1000)}")
    try:
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        cursor.execute(f"PRAGMA busy_timeout = {round(_sqlite.BUSY_TIMEOUT_S * 1000)}")
        cursor.close()
