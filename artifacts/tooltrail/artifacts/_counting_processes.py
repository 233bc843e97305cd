"""How many lines of an artifact have a text, counted by several processes.

A text that many lines have keeps Python's interpreter busy, which serves one thread at a time. So
this process and others count parts of the artifact, whoever is ready the next one. None is forked,
for there may be threads, and none imports the program that asks, as those of `multiprocessing` do.
"""

import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Generator

from tooltrail.artifacts._block_counts import literal_counter
from tooltrail.artifacts._count_worker import Tally, Task, count_parts
from tooltrail.artifacts._frames import Frames
from tooltrail.artifacts._part_queue import PartQueue, parts_of
from tooltrail.records.errors import TooltrailError

PROCESS_BYTES = 48 * 1024 * 1024
"""Plain bytes for each process at least: of less, threads count most of it while one starts."""

SHARE = 32
"""A text that less than one in so many lines has is counted as fast by threads."""

SAMPLES = 4
"""Frames that are looked at to find out how many lines have a text."""

WORKER = "tooltrail.artifacts._count_worker"
"""The module that a process runs."""

_NOTHING = Tally(0, 0)


def count_in_processes(
    frames: Frames, path: str, literal: bytes, *, invert: bool, processes: int
) -> int | None:
    """How many lines have a text, or with `invert` have it not; None when threads are to count.

    They are where it does not pay, or cannot be, and where a part was not counted to its end,
    whatever the reason is: they meet it too, and say it in the right place.
    """
    url = frames.folder_url
    processes = min(processes, frames.index.plain_size // PROCESS_BYTES)
    if url is None or processes < 2 or not _can_start() or not _is_common(frames, literal):
        return None
    parts = parts_of(frames.index, processes)
    index = frames.index.to_bytes().hex()
    try:
        with PartQueue.of(parts, processes) as queue:
            task = Task(url, path, index, literal.hex(), invert, queue.fd)
            return _counted(frames, task, queue, len(parts), processes - 1)
    except (OSError, TooltrailError):
        return None


def _counted(frames: Frames, task: Task, queue: PartQueue, parts: int, workers: int) -> int | None:
    """How many lines are wanted; None when not all parts were counted."""
    with contextlib.ExitStack() as started:
        waiting = [started.enter_context(worker_for(task)) for _ in range(workers)]
        tally = count_parts(frames, task.path, task.counter(), queue)
        # When nothing was left for the others they need not be waited for.
        while waiting and tally.parts < parts:
            found, counted = answer_of(waiting.pop())
            tally = Tally(tally.found + found, tally.parts + counted)
    return tally.found if tally.parts == parts else None


def _is_common(frames: Frames, literal: bytes) -> bool:
    """Whether at least one line in `SHARE` has a text, as some frames from all over it show."""
    index = frames.index
    count = literal_counter(literal)
    found, lines = 0, 0
    # What is wrong with a frame is found and said when all before it were counted.
    with contextlib.suppress(TooltrailError):
        for frame in range(0, len(index), -(-len(index) // SAMPLES)):
            found += sum(count(block.plain) for block in frames.blocks(*index.plain_span(frame)))
            lines += index.newlines_in(frame)
    return found * SHARE > lines


def _can_start() -> bool:
    """Whether this program is Python itself, and not one that Python was built into."""
    return bool(sys.executable) and not hasattr(sys, "frozen")


@contextlib.contextmanager
def worker_for(task: Task) -> Generator["subprocess.Popen[bytes]"]:
    """A process that counts; it is gone when the block is left."""
    # In a file, since a pipe would hold up whoever writes to it until the process has started.
    with tempfile.TemporaryFile() as told:
        told.write(task.to_line())
        told.seek(0)
        with subprocess.Popen(
            [sys.executable, *_isolation(), "-m", WORKER],
            stdin=told,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=(task.parts_fd,),
        ) as process:
            try:
                yield process
            finally:
                process.kill()
                process.wait()


def _isolation() -> list[str]:
    """Options by which a process trusts no more than this one, nor what lies in its folder.

    But for `-S`: without it nothing that is installed is found.
    """
    given = {
        "-I": sys.flags.isolated,
        "-E": sys.flags.ignore_environment,
        "-s": sys.flags.no_user_site,
    }
    return ["-P", *(option for option, is_given in given.items() if is_given)]


def answer_of(process: "subprocess.Popen[bytes]") -> Tally:
    """What a process has counted; nothing when it did not come to its end."""
    assert process.stdout is not None
    with contextlib.suppress(ValueError, TypeError):
        return Tally(*json.loads(process.stdout.readline()))
    return _NOTHING
