"""A store in its parts, in a file or on each engine in turn, and a fast disk."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.store_parts import StoreParts, store_parts


@pytest.fixture
def parts(database: str, tmp_path: Path) -> Iterator[StoreParts]:
    with store_parts(database, tmp_path) as opened:
        yield opened


@pytest.fixture
def memory() -> Iterator[Path]:
    """A folder on a fast disk: for images that are synced, or kills that take no page from it."""
    place = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=place if place.is_dir() else None) as name:
        yield Path(name).resolve()
