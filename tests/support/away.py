"""Stores that are unreachable for a while."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.support.postgres import closed_database

from tooltrail.store import Store


@contextmanager
def away(store: Store, database: str) -> Generator[None]:
    """Make the database of a store unreachable during the block."""
    store.database.close()
    try:
        with gone(database):
            yield
            store.database.close()
    finally:
        store.database.close()


@contextmanager
def gone(database: str) -> Generator[None]:
    """Make a database that is not open unreachable during the block."""
    if "://" in database:
        with closed_database(database):
            yield
        return
    hidden = Path(f"{database}.hidden")
    Path(database).rename(hidden)
    try:
        yield
    finally:
        hidden.rename(database)
