"""`kill -9` at a chosen moment: a fork runs a task and kills itself at its n-th call.

Moments are counted and not timed, so that each moment can be reached even on a slow machine.
"""

import os
import signal
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType

Task = Callable[[], None]


def count_moments(task: Task) -> int:
    """The number of calls of a task in its own thread, counted in a fork that completes it."""
    read, write = os.pipe()

    def run() -> None:
        counter = _Counter(None)
        _run(task, counter)
        os.write(write, str(counter.count).encode())

    child = fork(run)
    os.close(write)
    with os.fdopen(read, "rb") as answer:
        count = answer.read()
    assert end_of(child) == 0
    return int(count)


def run_and_kill(task: Task, moment: int) -> bool:
    """Run a task in a fork that is killed at its n-th call; return whether the task completed."""
    code = end_of(fork(partial(_run, task, _Counter(moment))))
    assert code in (0, -signal.SIGKILL)
    return code == 0


class Said:
    """Lines that a process wrote before it was killed, in a file that outlives the process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.write_text("")

    def __call__(self, line: str) -> None:
        with self._path.open("a") as file:
            file.write(f"{line}\n")

    def of(self, word: str) -> list[str]:
        lines = self._path.read_text().splitlines()
        return [line.split()[-1] for line in lines if line.split()[0] == word]


class _Counter:
    def __init__(self, limit: int | None) -> None:
        self.count = 0
        self._limit = limit

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        self.count += 1
        if self.count == self._limit:
            os.kill(os.getpid(), signal.SIGKILL)


def _run(task: Task, counter: _Counter) -> None:
    sys.setprofile(counter)
    try:
        task()
    finally:
        sys.setprofile(None)


def fork(task: Callable[[], object]) -> int:
    """Run a task in a fork; return its process id."""
    child = os.fork()
    if child:
        return child
    try:
        task()
        os._exit(0)
    except BaseException:  # noqa: BLE001  a fork must not continue as its parent
        traceback.print_exc()
        os._exit(1)


def end_of(child: int) -> int:
    """Wait for a fork; return its exit code, or the negated number of its signal."""
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)
