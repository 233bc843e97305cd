"""Stores that cannot be reached for a while, or not any more."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import psycopg
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


def remove_store(database: str) -> None:
    """Delete the database of a store, so that another one can be made at its place."""
    if "://" in database:
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    else:
        for suffix in ("", "-wal", "-shm"):
            Path(f"{database}{suffix}").unlink(missing_ok=True)
