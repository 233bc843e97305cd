"""A writer that is killed at any moment leaves a store that opens, verifies and goes on."""

import random
import time
from pathlib import Path

import pytest
from tests.support.effort import times
from tests.support.evidence import check_evidence
from tests.support.processes import start_worker
from tests.support.recording import run_command
from tests.support.template_stores import make_store

from tooltrail.store import DURABILITIES, Durability, open_store

KILLS = times(4)


@pytest.mark.parametrize("durability", DURABILITIES)
def test_a_writer_that_is_killed_leaves_started_invocations_and_no_broken_reference(
    tmp_path: Path, durability: Durability
) -> None:
    database = tmp_path / "trail.db"
    make_store(database).close()
    chance = random.Random(15)
    finished = 0
    for kill in range(1, KILLS + 1):
        worker = start_worker("loop", str(database), durability)
        assert worker.stdout is not None
        acknowledged = 0
        for _ in range(chance.randint(1, 4)):
            acknowledged = int(worker.stdout.readline())
        time.sleep(chance.random() * 0.02)
        worker.kill()
        rest, _ = worker.communicate()
        assert worker.returncode == -9
        acknowledged += len(rest.decode().split())
        with open_store(database) as store:
            check_evidence(store)
            counts = store.reader.counts()
            assert counts.sessions == kill
            done = counts.invocations.get("success", 0)
            assert done >= finished + acknowledged
            # Each writer was in one invocation at the most.
            assert counts.invocations.get("started", 0) <= kill
            finished = done
    with open_store(database) as store:
        run_command(store.open_session(), b"goes on\n")
        check_evidence(store)
