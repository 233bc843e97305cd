"""The store of these tests is in SQLite, since nothing here depends on the database."""

import pytest

from tooltrail.store import Store


@pytest.fixture
def store(sqlite_store: Store) -> Store:
    return sqlite_store
