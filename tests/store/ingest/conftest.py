"""A store that ingests, on each engine in turn."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.new_store_ingesting import IngestedStore, ingested_store


@pytest.fixture
def ingesting(database: str, tmp_path: Path) -> Iterator[IngestedStore]:
    with ingested_store(database, tmp_path) as store:
        yield store


@pytest.fixture
def sqlite_ingesting(tmp_path: Path) -> Iterator[IngestedStore]:
    with ingested_store(str(tmp_path / "trail.db"), tmp_path) as store:
        yield store
