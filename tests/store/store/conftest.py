"""Fixtures of the tests of the store."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.support.making import do_between_transactions
from tests.support.template_stores import make_store

from tooltrail.store import Store


@pytest.fixture
def amid_making(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Have something done between the first two transactions that make the next store."""
    return partial(do_between_transactions, monkeypatch)


@pytest.fixture
def patient(database: str, tmp_path: Path) -> Iterator[Store]:
    """A store whose recorder has an outbox, which is the default, on each engine in turn."""
    with make_store(
        database, artifacts=str(tmp_path / "artifacts"), spool=tmp_path / "spool"
    ) as created:
        yield created
