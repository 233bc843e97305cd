"""Databases without a schema."""

from tooltrail.store.engines.database import Database
from tooltrail.store.engines.targets import SqliteTarget, parse_target


def empty_database(database: str) -> Database:
    """Open a database that exists and has no tables."""
    target = parse_target(database)
    if isinstance(target, SqliteTarget):
        target.path.touch()
    return Database(target)
