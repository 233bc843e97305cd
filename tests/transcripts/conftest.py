"""A store with a recorder, on each engine in turn."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.lean_store import LeanStore, lean_store


@pytest.fixture
def store(database: str, tmp_path: Path) -> Iterator[LeanStore]:
    with lean_store(database, tmp_path) as made:
        yield made


@pytest.fixture
def sqlite_store(tmp_path: Path) -> Iterator[LeanStore]:
    with lean_store(str(tmp_path / "trail.db"), tmp_path) as made:
        yield made
