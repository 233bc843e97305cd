"""Reading parts of a stored artifact, beside the plain programs that decompress all of it."""

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import zstandard

from benchmarks._measure import Ratio, compare
from tooltrail.artifacts import ArtifactReader, FrameIndex, open_reader, open_sink
from tooltrail.cli._searching import Search
from tooltrail.store import create_store, open_store

ROUNDS = 9
GIANT_TIMES = 16
GIANT_ROUNDS = 3
TAIL = "zstd -dc FILE | tail -n 100"
LINES = 100
SLICE = 4096
_TOOLTRAIL = (sys.executable, "-m", "tooltrail.cli")
_SEED = 1
_SLICES = 400
_RARE, _COMMON, _LETTER, _INDENTATION = "importlib.util", "self", "e", "    "
_EXPRESSION = "^def "


@dataclass(frozen=True)
class Stored:
    """An input that a command printed, as the artifact of its output.

    Attributes:
        database: the store's file.
        path: of the artifact.
        index: of its frames.
    """

    database: Path
    path: str
    index: FrameIndex

    @classmethod
    def of(cls, source: Path, folder: Path, times: int = 1) -> "Stored":
        """Record `cat` of the input, so many times in a row, in a store of its own."""
        database = folder / "tooltrail.db"
        create_store(database).close()
        command = [*_TOOLTRAIL, "exec", "--db", str(database), "--", "cat", *[str(source)] * times]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        with open_store(database) as store:
            (artifact,) = store.reader.artifacts()
            index = store.archive.index_of(artifact.path)
        assert index is not None
        return cls(database, artifact.path, index)

    @property
    def file(self) -> Path:
        """The stored object."""
        return self.database.parent / "artifacts" / self.path

    def reader(self) -> ArtifactReader:
        """A new reader."""
        return open_reader(open_sink(str(self.file.parents[2])), self.path)


def measure_tail(stored: Stored) -> Ratio:
    """The last lines, in this process, sink and reader opened anew."""
    return compare(
        lambda: _keep(stored.reader().tail(LINES)), lambda: _tail_program(stored), ROUNDS
    )


def measure_tail_command(stored: Stored, rounds: int = ROUNDS) -> Ratio:
    """`tooltrail artifact tail -n 100`, as a whole process."""
    # As it is installed: compiled once.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    command = [*_TOOLTRAIL, "artifact", "tail", "-n", str(LINES)]
    command += ["--db", str(stored.database), stored.path]

    def subject() -> None:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)

    return compare(subject, lambda: _tail_program(stored), rounds)


def measure_slice(stored: Stored) -> Ratio:
    """Slices of 4 KiB anywhere, beside decompressing as many frames."""
    reader = stored.reader()
    index = stored.index
    data = stored.file.read_bytes()
    frames = [data[slice(*index.stored_span(number))] for number in range(len(index))]
    decompressor = zstandard.ZstdDecompressor()
    offsets = _offsets(reader.size - SLICE)

    def subject() -> None:
        offset = next(offsets)
        _keep(reader.read_bytes(offset, offset + SLICE))

    def baseline() -> None:
        _keep(decompressor.decompress(frames[next(offsets) % len(frames)]))

    return compare(subject, baseline, _SLICES)


def measure_grep(stored: Stored, *, pattern: str, literal: bool = True) -> Ratio:
    """Count the lines with a pattern as the command line does, beside `zstd -dc FILE | grep -c`."""
    reader = stored.reader()
    search = Search(
        literal=literal, ignore_case=False, invert=False, before=0, after=0, max_count=None
    )
    grep = f"grep -{'F' if literal else 'E'} -c '{pattern}'"
    found = int(_program(stored, grep).stdout)

    def subject() -> None:
        assert search.count(reader, pattern) == found

    return compare(subject, lambda: _keep(_program(stored, grep)), ROUNDS)


def measure_rare_grep(stored: Stored) -> Ratio:
    """See `measure_grep`: a literal of a few hundred lines."""
    return measure_grep(stored, pattern=_RARE)


def measure_common_grep(stored: Stored) -> Ratio:
    """See `measure_grep`: a literal of every ninth line."""
    return measure_grep(stored, pattern=_COMMON)


def measure_letter_grep(stored: Stored) -> Ratio:
    """See `measure_grep`: a letter of more than half of the lines."""
    return measure_grep(stored, pattern=_LETTER)


def measure_indentation_grep(stored: Stored) -> Ratio:
    """See `measure_grep`: four spaces, which three quarters of the lines have."""
    return measure_grep(stored, pattern=_INDENTATION)


def measure_expression_grep(stored: Stored) -> Ratio:
    """See `measure_grep`: a regular expression."""
    return measure_grep(stored, pattern=_EXPRESSION, literal=False)


SUBJECTS: tuple[tuple[str, str, Callable[[Stored], Ratio]], ...] = (
    ("last 100 lines of 256 MB", TAIL, measure_tail),
    ("artifact tail -n 100, whole process", TAIL, measure_tail_command),
    ("a 4 KiB slice of 256 MB", "decompress one frame", measure_slice),
    ("count a rare literal in 256 MB", "zstd -dc FILE | grep -c", measure_rare_grep),
    ("count a common literal in 256 MB", "zstd -dc FILE | grep -c", measure_common_grep),
    ("count a letter in 256 MB", "zstd -dc FILE | grep -c", measure_letter_grep),
    ("count four spaces in 256 MB", "zstd -dc FILE | grep -c", measure_indentation_grep),
    ("count an expression in 256 MB", "zstd -dc FILE | grep -c", measure_expression_grep),
)


def _tail_program(stored: Stored) -> None:
    _keep(_program(stored, f"tail -n {LINES}"))


def _program(stored: Stored, filter_: str) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        ["sh", "-c", f'zstd -dc "$0" | {filter_}', str(stored.file)],
        check=True,
        capture_output=True,
    )


def _offsets(limit: int) -> Iterator[int]:
    chance = random.Random(_SEED)
    while True:
        yield chance.randrange(limit)


def _keep(_: object) -> None:
    """What was measured was wanted."""
