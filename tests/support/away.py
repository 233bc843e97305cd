"""Stores that cannot be reached for a while, or not any more."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.support.postgres import closed_database

from tooltrail.store import Store


@contextmanager
def away(store: Store, database: str) -> Generator[None]:
    """Nobody can connect to the database of a store as long as the block lasts."""
    store.database.close()
    try:
        with gone(database):
            yield
            store.database.close()
    finally:
        store.database.close()


@contextmanager
def gone(database: str) -> Generator[None]:
    """The same of a database that nobody has open."""
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
