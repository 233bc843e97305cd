"""A process that appends to a journal: `python -m tests.support.journal_worker WHAT FOLDER …`.

append FOLDER NAME THREADS COUNT SEAL   record COUNT facts with each of THREADS threads;
                                        segments are sealed at SEAL bytes
pair FOLDER THREADS COUNT SEAL          run two such processes at once

A producer is the name with the number of the thread. Each line on standard output is one of:

begun PRODUCER N             the fact is about to be appended
acked PRODUCER N SEGMENT     the fact is acknowledged, and is in this segment
failed PRODUCER N ERROR      the fact is not acknowledged
"""

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest.mock import patch

from tests.support.journals import entry
from tests.support.threads import at_once

from tooltrail.journal import JournalLog, log
from tooltrail.records.errors import UnavailableError

BATCH = 3
"""Facts that are appended together in every fourth append."""


def append(folder: str, name: str, threads: str, count: str, seal: str) -> None:
    with patch.object(log, "SEAL_BYTES", int(seal)):
        journal = JournalLog(Path(folder))
        at_once(
            *(
                partial(record, journal, f"{name}{number}", int(count), say)
                for number in range(int(threads))
            )
        )


def record(
    journal: JournalLog, producer: str, count: int, say: Callable[..., None], first: int = 0
) -> None:
    """Record `count` facts, and report the outcome of each."""
    number, turn = first, 0
    while number < first + count:
        turn += 1
        size = min(BATCH if turn % 4 == 0 else 1, first + count - number)
        numbers = range(number, number + size)
        for one in numbers:
            say("begun", producer, one)
        try:
            cursors = journal.record([entry(producer, one, 30 + one * 37 % 900) for one in numbers])
        except UnavailableError as error:
            for one in numbers:
                say("failed", producer, one, type(error).__name__)
        else:
            for one, cursor in zip(numbers, cursors, strict=True):
                say("acked", producer, one, cursor.segment)
        number += size


def pair(folder: str, threads: str, count: str, seal: str) -> None:
    command = [sys.executable, "-m", "tests.support.journal_worker", "append", folder]
    both = [subprocess.Popen([*command, name, threads, count, seal]) for name in ("a", "b")]
    assert [one.wait() for one in both] == [0, 0]


def say(*words: str | int) -> None:
    """Print one line with a single write."""
    os.write(sys.stdout.fileno(), (" ".join(map(str, words)) + "\n").encode())


if __name__ == "__main__":
    TASKS: dict[str, Callable[..., None]] = {task.__name__: task for task in (append, pair)}
    TASKS[sys.argv[1]](*sys.argv[2:])
