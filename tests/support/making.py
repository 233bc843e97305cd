"""Stores that are killed while they are made, and the marks that they leave."""

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import inspect
from tests.support.evidence import check_evidence
from tests.support.processes import start_worker
from tests.support.recording import run_command
from tests.support.upkeep import prune_all

from tooltrail.artifacts import open_sink
from tooltrail.store import Store, _making, create_store
from tooltrail.store._roots.mark_names import MARK_PREFIX, mark_path

BIG = b"a line of a long output\n" * 5_000


def marks(root: str) -> list[str]:
    return [stat.path for stat in open_sink(root, create=True).list(MARK_PREFIX)]


def go_on(database: str | Path, root: str, before: list[str]) -> None:
    """Make a store after an attempt that was killed, whose mark it has; it is whole."""
    with create_store(database, artifacts=root) as store:
        own = [mark_path(store.info.id)]
        assert marks(root) == own
        assert before in ([], own)
        check_whole(store)


def check_whole(store: Store) -> None:
    with store.database.read() as connection:
        assert not inspect(connection).has_table("store_being_made")
    assert run_command(store.open_session(), BIG).postponed == ()
    assert prune_all(store).total.count == 0
    check_evidence(store)


def kill_at(database: str | Path, root: str, at: str, nth: int = 1) -> None:
    worker = start_worker("create", str(database), root, at, str(nth))
    _, err = worker.communicate()
    assert worker.returncode == -signal.SIGKILL, err.decode()


def do_between_transactions(patch: pytest.MonkeyPatch, task: Callable[[], object]) -> None:
    """Have something done between the first two transactions that make the next store."""
    complete = _making.complete

    def late(*arguments: object) -> None:
        patch.setattr(_making, "complete", complete)
        task()
        complete(*arguments)  # type: ignore[arg-type]  # as they came

    patch.setattr(_making, "complete", late)
