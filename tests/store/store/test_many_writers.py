"""Several writers at once: one order, no gaps, no lost links, and nobody waits for ever."""

import random
from pathlib import Path

from tests.support.evidence import check_evidence, ledger_of
from tests.support.processes import finish_all, run_python, start_worker
from tests.support.recording import run_command, run_tool
from tests.support.threads import at_once

from tooltrail.records import StoreExistsError
from tooltrail.store import Store, create_store, open_store

THREADS = 8
PROCESSES = 4
EACH = 5


def test_threads_of_one_session_share_one_order_without_gaps(store: Store) -> None:
    session = store.open_session()

    def record() -> None:
        for number in range(EACH):
            session.add_message("user", f"message {number}")
            run_command(session, b"output %d\n" % number)

    at_once(*[record] * THREADS)

    view = store.reader.session(session.id)
    assert view.invocation_count == THREADS * EACH
    assert len(ledger_of(store, session.id)) == 1 + THREADS * EACH * 3
    check_evidence(store)


def test_processes_of_one_session_share_one_order_without_gaps(
    store: Store, database: str, tmp_path: Path
) -> None:
    session = store.open_session()
    places = (database, str(tmp_path / "artifacts"), str(tmp_path / "spool"), str(session.id))

    finish_all([start_worker("many", *places, str(EACH)) for _ in range(PROCESSES)])

    assert store.reader.session(session.id).invocation_count == PROCESSES * EACH
    assert len(ledger_of(store, session.id)) == 1 + PROCESSES * EACH * 3
    check_evidence(store)


def test_sessions_that_share_bodies_in_different_orders_do_not_block_each_other(
    store: Store,
) -> None:
    rounds, width = 12, 24

    def record(seed: int) -> None:
        session = store.open_session()
        shuffled = random.Random(seed)
        for number in range(rounds):
            contents = [f"round {number} part {part}" for part in range(width)]
            shuffled.shuffle(contents)
            run_tool(session, *contents)

    at_once(*[lambda seed=seed: record(seed) for seed in range(4)])

    assert store.reader.counts().invocations == {"success": 4 * rounds}
    check_evidence(store)


def test_of_several_that_create_one_store_one_succeeds_and_the_others_are_told(
    database: str, tmp_path: Path
) -> None:
    def create() -> str:
        try:
            create_store(database, artifacts=str(tmp_path / "artifacts")).close()
        except StoreExistsError:
            return "exists"
        return "created"

    assert sorted(map(str, at_once(*[create] * 4))) == ["created", "exists", "exists", "exists"]
    with open_store(database, artifacts=str(tmp_path / "artifacts")) as store:
        check_evidence(store)


def test_a_forked_child_makes_ids_of_its_own() -> None:
    printed, _ = run_python(
        """
import os, warnings
warnings.simplefilter("ignore")
from tooltrail.store import new_id
ids = [new_id()]
child = os.fork()
later = [new_id() for _ in range(3)]
if child:
    os.waitpid(child, 0)
print("\\n".join(map(str, later)), flush=True)
if not child:
    os._exit(0)
"""
    )
    ids = printed.split()
    assert len(ids) == len(set(ids)) == 6
