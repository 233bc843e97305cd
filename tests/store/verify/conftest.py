"""Stores to be damaged."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.every_fact import fill
from tests.support.store_parts import StoreParts, store_parts


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a filled SQLite store, to be copied."""
    folder: Path = tmp_path_factory.mktemp("template")
    with store_parts(str(folder / "trail.db"), folder) as store:
        fill(store)
    return folder


@pytest.fixture
def copied(template: Path, tmp_path: Path) -> Iterator[StoreParts]:
    """A filled SQLite store for one test."""
    folder = tmp_path / "copy"
    shutil.copytree(template, folder)
    with store_parts(str(folder / "trail.db"), folder, is_new=False) as store:
        yield store
