"""A database on a server that lasts for one module of tests."""

from collections.abc import Iterator

import pytest
from sqlalchemy import URL
from tests.support.postgres import fresh_database


@pytest.fixture(scope="module")
def module_postgres_url(postgres_server: URL) -> Iterator[str]:
    with fresh_database(postgres_server) as url:
        yield url
