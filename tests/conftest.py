"""Fixtures that every wing's tests share: real databases, fresh stores."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import URL
from tests.support.postgres import fresh_database, running_server

from tooltrail.store import Store, create_store


def pytest_configure() -> None:
    """Undo what a background job or nohup hands down, since the tests send these signals.

    A shell starts background jobs with SIGINT and SIGQUIT ignored, children inherit that, and a
    script cannot even trap a signal that was ignored when it started.
    """
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            handler = signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL
            signal.signal(number, handler)


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
