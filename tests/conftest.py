"""Fixtures that every wing's tests share: real databases, fresh stores."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import URL
from tests.support.postgres import fresh_database, running_server

from tooltrail.store import Store, create_store


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[URL]:
    with running_server() as url:
        yield url


@pytest.fixture
def postgres_url(postgres_server: URL) -> Iterator[str]:
    with fresh_database(postgres_server) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty place for a store, on each engine in turn."""
    if request.param == "postgresql":
        url: str = request.getfixturevalue("postgres_url")
        return url
    return str(tmp_path / "trail.db")


@pytest.fixture
def store(database: str, tmp_path: Path) -> Iterator[Store]:
    """A fresh store, on each engine in turn."""
    with create_store(
        database, artifacts=str(tmp_path / "artifacts"), spool=tmp_path / "spool"
    ) as created:
        yield created


@pytest.fixture
def sqlite_store(tmp_path: Path) -> Iterator[Store]:
    """A fresh store in a file, where the engine makes no difference."""
    with create_store(tmp_path / "trail.db") as created:
        yield created
