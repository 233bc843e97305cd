"""Changing SQLite files behind the program's back, past all protections."""

from contextlib import closing
from pathlib import Path

from tooltrail.store import Store
from tooltrail.store.engines.sqlite_library import sqlite3
from tooltrail.store.engines.targets import SqliteTarget


def database_file(store: Store) -> Path:
    """The file of a SQLite store."""
    target = store.database.target
    assert isinstance(target, SqliteTarget)
    return target.path


def alter(store: Store, *statements: str) -> None:
    """Run statements without the triggers and checks that protect records."""
    with closing(sqlite3.connect(database_file(store))) as connection, connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        triggers = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        for (trigger,) in triggers.fetchall():
            connection.execute(f"DROP TRIGGER {trigger}")
        for statement in statements:
            connection.execute(statement)
