"""After `kill -9` at any moment, every acknowledged fact is there once, and the next append works.

`TOOLTRAIL_TEST_EFFORT` says how many writers are killed.
"""

import os
import select
import shutil
import signal
import time
from functools import partial
from itertools import count
from pathlib import Path
from random import Random

import pytest
from tests.support.effort import times
from tests.support.journal_worker import record as record_and_say
from tests.support.journals import Label, check_acknowledged, check_whole, record, seal_at
from tests.support.killing import count_moments, end_of, fork, run_and_kill
from tests.support.threads import at_once

from tooltrail.journal import JournalLog

KILLS = 12
KILLS_OF_A_JOURNAL = 3
"""Then a new journal begins, so that the check of all of it stays quick."""

WRITERS = 3
THREADS = 2
SEAL_BYTES = 12_000
SEED = "kills of a journal"

pytestmark = pytest.mark.timeout(1200)


def test_nothing_acknowledged_is_lost_when_writers_are_killed(
    memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal_at(monkeypatch, SEAL_BYTES)
    chance = Random(SEED)
    kills = facts = segments = 0
    while kills < times(KILLS, most=1_000):
        folder = memory / f"{kills}"
        harness = _Harness(folder, chance)
        for _ in range(min(KILLS_OF_A_JOURNAL, times(KILLS, most=1_000) - kills)):
            harness.kill_one()
            kills += 1
        facts += harness.end()
        segments += len(list(folder.glob("*.seg")))
        shutil.rmtree(folder)
    print(f"{kills} kills, {facts} acknowledged facts, {segments} segments, seed {SEED!r}")  # noqa: T201
    assert facts > kills


class _Harness:
    """Several writers of one journal, each replaced when it was killed."""

    def __init__(self, folder: Path, chance: Random) -> None:
        self.folder = folder
        self.chance = chance
        self.names = count()
        self.acknowledged: list[Label] = []
        self.writers: dict[int, int] = {}
        while len(self.writers) < WRITERS:
            self.start()

    def start(self) -> None:
        """Start a writer, and wait until it has acknowledged something."""
        read, write = os.pipe()
        name = f"w{next(self.names)}-"
        child = fork(partial(self.write, name, write))
        os.close(write)
        os.set_blocking(read, False)
        self.writers[child] = read
        select.select([read], [], [])

    def write(self, name: str, out: int) -> None:
        """Record facts by several threads until the end of this process."""

        def say(*words: str | int) -> None:
            if words[0] == "acked":
                os.write(out, f"{words[1]} {words[2]}\n".encode())

        journal = JournalLog(self.folder)
        at_once(
            *(
                partial(record_and_say, journal, f"{name}{thread}", 1 << 30, say)
                for thread in range(THREADS)
            )
        )

    def kill_one(self) -> None:
        """Kill a writer at some moment, and check the journal while the others stand still."""
        child = self.chance.choice(sorted(self.writers))
        time.sleep(self.chance.random() * 0.005)
        os.kill(child, signal.SIGKILL)
        assert end_of(child) == -signal.SIGKILL
        others = self.writers.keys() - {child}
        for other in others:
            os.kill(other, signal.SIGSTOP)
            os.waitpid(other, os.WUNTRACED)
        for read in self.writers.values():
            self.listen(read)
        check_acknowledged(self.folder, self.acknowledged)
        for other in others:
            os.kill(other, signal.SIGCONT)
        os.close(self.writers.pop(child))
        self.start()

    def listen(self, read: int) -> None:
        """Take down what a writer acknowledged. A line is one write, and so there or not."""
        said = b""
        while select.select([read], [], [], 0)[0] and (part := os.read(read, 1 << 16)):
            said += part
        for line in said.decode().splitlines():
            producer, number = line.split()
            self.acknowledged.append((producer, int(number)))

    def end(self) -> int:
        """Kill all writers, check and append; give how many facts were acknowledged."""
        for child in self.writers:
            os.kill(child, signal.SIGKILL)
        for child, read in self.writers.items():
            assert end_of(child) == -signal.SIGKILL
            self.listen(read)
            os.close(read)
        check_acknowledged(self.folder, self.acknowledged)
        record(JournalLog(self.folder), "next", range(3))
        check_acknowledged(self.folder, [*self.acknowledged, ("next", 2)])
        return len(self.acknowledged)


def test_a_kill_at_every_call_of_an_append_costs_no_other_fact(
    memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal_at(monkeypatch, 1_000)
    folder = memory / "journal"

    def task(name: str) -> None:
        record(JournalLog(folder), name, range(4))

    task("first")  # what this process does only once is not counted
    shutil.rmtree(folder)
    moments = count_moments(partial(task, "all"))
    assert moments > 300
    step, kept = max(1, moments // times(40)), list[Label]()
    for number, moment in enumerate(range(1, moments, step)):
        if number % 20 == 0:
            shutil.rmtree(folder, ignore_errors=True)
            kept.clear()
        assert not run_and_kill(partial(task, f"killed{number}"), moment)
        record(JournalLog(folder), f"after{number}", [0])
        kept.append((f"after{number}", 0))
        check_acknowledged(folder, kept)
    assert check_whole(folder)
