"""A process that records or maintains a store: `python -m tests.support.upkeep_worker WHAT …`.

record DB ARTIFACTS SPOOL COUNT     record COUNT contents, each of which lay there unreferenced
killed WHAT DB ARTIFACTS SPOOL COUNT SEED [ROOT]
                                    begin COUNT runs of prune or relocate and kill each of them
hold DB ARTIFACTS SPOOL             be a run that is under way, until it is killed
"""

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.support.recording import run_command
from tests.support.upkeep import NO_GRACE, publish

from tooltrail.records import UnavailableError
from tooltrail.store import Store, open_store, plan_pruning, prune, relocate
from tooltrail.store._roots.maintenance import maintenance_run

STEPS = 5
LONGEST_S = 0.02
"""A run is killed in one of its first steps, so many seconds after it began at the latest."""


def record(database: str, artifacts: str, spool: str, count: str) -> None:
    """The same contents in the same order in every such process."""
    with open_store(database, artifacts=artifacts or None, spool=Path(spool)) as store:
        session = store.open_session()
        for number in range(int(count)):
            content = b"content %d\n" % number * 3_000
            # Where it cannot, the artifacts were moved since it published the last time.
            with suppress(UnavailableError):
                publish(store, content)
            run_command(session, content, b"stderr %d\n" % number * 3_000)


def killed(what: str, *arguments: str) -> None:
    """Prints the exit status of each run, -9 for those that were still at it."""
    database, artifacts, spool, count, seed, *rest = arguments
    chance = random.Random(seed)
    for _ in range(int(count)):
        hears, tells = os.pipe()
        child = os.fork()
        if child == 0:
            with open_store(database, artifacts=artifacts or None, spool=Path(spool)) as store:
                run(store, what, tells, *rest)
            os._exit(0)
        os.close(tells)
        # Within a step or just after it, whatever the machine is busy with.
        for _ in range(chance.randint(1, STEPS)):
            os.read(hears, 1)
        time.sleep(chance.random() * LONGEST_S)
        os.kill(child, signal.SIGKILL)
        os.close(hears)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(status, flush=True)  # noqa: T201  the parent counts them


def run(store: Store, what: str, tells: int, *rest: str) -> None:
    """One run, which tells each step."""

    def tell(*_: int) -> None:
        os.write(tells, b".")

    plan = plan_pruning(store, NO_GRACE)
    tell()
    if what == "prune":
        prune(store, plan, on_progress=tell)
    else:
        relocate(store, *rest, on_progress=tell)


def hold(database: str, artifacts: str, spool: str) -> None:
    with (
        open_store(database, artifacts=artifacts, spool=Path(spool)) as store,
        maintenance_run(store.database, "gc", {}),
    ):
        print("under way", flush=True)  # noqa: T201  the parent waits for it
        signal.pause()


if __name__ == "__main__":
    TASKS: dict[str, Callable[..., None]] = {"record": record, "killed": killed, "hold": hold}
    TASKS[sys.argv[1]](*sys.argv[2:])
