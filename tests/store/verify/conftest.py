"""Stores to be damaged, and a server database that lasts for one module of tests."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import URL
from tests.support.new_store_verifying import NewStore, fill, new_store, open_store_at
from tests.support.postgres import fresh_database


@pytest.fixture(scope="module")
def module_postgres_url(postgres_server: URL) -> Iterator[str]:
    with fresh_database(postgres_server) as url:
        yield url


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a filled SQLite store, to be copied."""
    folder: Path = tmp_path_factory.mktemp("template")
    with new_store(str(folder / "trail.db"), folder) as store:
        fill(store)
    return folder


@pytest.fixture
def copied(template: Path, tmp_path: Path) -> Iterator[NewStore]:
    """A filled SQLite store for one test."""
    folder = tmp_path / "copy"
    shutil.copytree(template, folder)
    with open_store_at(str(folder / "trail.db"), folder) as store:
        yield store
