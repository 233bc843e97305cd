"""Fixtures of the tests of the store."""

from collections.abc import Callable
from functools import partial

import pytest
from tests.support.making import do_between_transactions


@pytest.fixture
def amid_making(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Have something done between the first two transactions that make the next store."""
    return partial(do_between_transactions, monkeypatch)
