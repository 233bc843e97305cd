"""A store of the lean schema, on each engine in turn."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.new_store_read import ReadStore, read_store


@pytest.fixture
def new_store(database: str, tmp_path: Path) -> Iterator[ReadStore]:
    """An empty store, on each engine in turn."""
    with read_store(database, tmp_path) as made:
        yield made


@pytest.fixture
def sqlite_new_store(tmp_path: Path) -> Iterator[ReadStore]:
    """An empty store in a file, for damage that PostgreSQL cannot hold."""
    with read_store(str(tmp_path / "trail.db"), tmp_path) as made:
        yield made
