"""Something else happens just before a write begins, when nobody has its turn yet."""

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager

import pytest
from sqlalchemy import Connection

from tooltrail.store import Store
from tooltrail.store._engines.database import Database


@contextmanager
def before_write(store: Store, action: Callable[[], object]) -> Generator[None]:
    """Do something before the next write transaction of a store begins, once."""
    pending, write = [action], Database.write

    def come_in(
        database: Database, deadline: float | None = None, *, is_brief: bool = False
    ) -> AbstractContextManager[Connection]:
        if database is store.database and pending:
            pending.pop()()
        return write(database, deadline, is_brief=is_brief)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Database, "write", come_in)
        yield
    assert not pending
