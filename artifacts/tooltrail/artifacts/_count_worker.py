"""A process that counts lines of an artifact: run with `python -m` by `_counting_processes`.

It is told by one line on standard input what to count, takes the parts that it counts from a pipe,
and answers with one line on standard output; or it ends without a word, and whoever asked meets by
itself what is wrong.
"""

import json
import select
import sys
from typing import NamedTuple, Self

from tooltrail.artifacts._block_counts import Counter, literal_counter, others
from tooltrail.artifacts._frames import Frames, open_frames
from tooltrail.artifacts._line_counts import count_lines_of
from tooltrail.artifacts._part_queue import PartQueue
from tooltrail.artifacts.fsspec_sink import open_sink


class Task(NamedTuple):
    """What is to be counted, in what JSON can carry.

    Attributes:
        url: of the sink.
        path: of the artifact.
        frame_index: of the artifact, in hexadecimal digits.
        literal: the text that the lines have, in hexadecimal digits.
        invert: count the lines that do not have it.
        parts_fd: descriptor of the `PartQueue`.
    """

    url: str
    path: str
    frame_index: str
    literal: str
    invert: bool
    parts_fd: int

    @classmethod
    def from_line(cls, line: bytes) -> Self:
        """What `to_line` made."""
        return cls(*json.loads(line))

    def counter(self) -> Counter:
        """Counts the lines of a block that are wanted."""
        counter = literal_counter(bytes.fromhex(self.literal))
        return others(counter) if self.invert else counter

    def to_line(self) -> bytes:
        """One line, however odd a path is."""
        return json.dumps(self).encode("ascii") + b"\n"


class Tally(NamedTuple):
    """What somebody counted: lines, in so many parts, all of which were counted to their end."""

    found: int
    parts: int


def count_parts(frames: Frames, path: str, counter: Counter, parts: PartQueue) -> Tally:
    """Count parts for as long as there are some; see `count_lines_of` for the errors."""
    counts = [sum(count_lines_of(frames, path, counter, part)) for part in parts]
    return Tally(sum(counts), len(counts))


def main() -> None:
    """Count what the task says, and print the tally."""
    task = Task.from_line(sys.stdin.buffer.readline())
    frames = open_frames(
        open_sink(task.url), task.path, bytes.fromhex(task.frame_index), size=None, line_count=None
    )
    with PartQueue(task.parts_fd) as parts:
        tally = count_parts(frames, task.path, _while_wanted(task.counter()), parts)
    sys.stdout.write(json.dumps(tally) + "\n")


def _while_wanted(counter: Counter) -> Counter:
    """The same, which ends the program when nobody waits for its answer any more."""
    answer = select.poll()
    # That the other end of a pipe was closed is reported without being asked for.
    answer.register(sys.stdout, 0)

    def count(block: bytes) -> int:
        if answer.poll(0):
            sys.exit(1)
        return counter(block)

    return count


if __name__ == "__main__":
    main()
