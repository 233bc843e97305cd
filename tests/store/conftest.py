"""A store in its parts, on each engine in turn or in a file, and a fast disk."""

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
def sqlite_parts(tmp_path: Path) -> Iterator[StoreParts]:
    """A store in a file, where the engine makes no difference."""
    with store_parts(str(tmp_path / "trail.db"), tmp_path) as opened:
        yield opened


@pytest.fixture
def memory() -> Iterator[Path]:
    """A folder on a fast disk: for images that are synced, or kills that take no page from it."""
    place = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=place if place.is_dir() else None) as name:
        yield Path(name).resolve()
