"""A store that ingests, on each engine in turn."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.lean_store import LeanStore, lean_store
from tests.support.new_store_ingesting import IngestedStore, ingested_store


@pytest.fixture
def ingesting(database: str, tmp_path: Path) -> Iterator[IngestedStore]:
    with ingested_store(database, tmp_path) as store:
        yield store


@pytest.fixture
def sqlite_ingesting(tmp_path: Path) -> Iterator[IngestedStore]:
    with ingested_store(str(tmp_path / "trail.db"), tmp_path) as store:
        yield store


@pytest.fixture
def store(database: str, tmp_path: Path) -> Iterator[LeanStore]:
    """A store with a recorder."""
    with lean_store(database, tmp_path) as made:
        yield made


@pytest.fixture
def sqlite_store(tmp_path: Path) -> Iterator[LeanStore]:
    """A store with a recorder in a file, where the engine makes no difference."""
    with lean_store(str(tmp_path / "trail.db"), tmp_path) as made:
        yield made
