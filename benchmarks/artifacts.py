"""Reading parts of a stored artifact, beside the plain programs that decompress all of it."""

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import zstandard

from benchmarks._measure import Report, Times, compare, scratch_folder, speed
from benchmarks.capture import make_input
from tooltrail.artifacts import ArtifactReader, FrameIndex, open_reader, open_sink
from tooltrail.cli._searching import Search
from tooltrail.store import create_store, open_store

ROUNDS = 5
GIANT_TIMES = 16
GIANT_ROUNDS = 3
TAIL = "zstd -dc FILE | tail -n 100"
LINES = 100
SLICE = 4096
_TOOLTRAIL = (sys.executable, "-m", "tooltrail.cli")
_SEED = 1
_SLICES = 400
_LITERALS = {
    "a rare literal": "importlib.util",
    "a common literal": "self",
    "a letter": "e",
    "four spaces": "    ",
}
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


def lines(*, is_full: bool) -> Report:
    """Ends, slices and searches of 256 MB; with `is_full` the end of 4 GB."""
    with scratch_folder() as folder:
        make_input(folder / "input")
        stored = Stored.of(folder / "input", folder / "once")
        times = compare(lambda: stored.reader().tail(LINES), lambda: _tail(stored), ROUNDS)
        yield speed("the last 100 lines of 256 MB", TAIL, times)
        times = _measure_tail_command(stored, ROUNDS)
        yield speed("artifact tail -n 100, whole process", TAIL, times)
        times = _measure_slice(stored)
        yield speed("a 4 KiB slice of 256 MB", "decompress one frame", times)
        for name, literal in _LITERALS.items():
            times = _measure_grep(stored, literal, is_literal=True)
            yield speed(f"count {name} in 256 MB", "zstd -dc | grep -F -c", times, target="≥ 1")
        times = _measure_grep(stored, _EXPRESSION, is_literal=False)
        yield speed("count an expression in 256 MB", "zstd -dc | grep -E -c", times)
        if is_full:
            giant = Stored.of(folder / "input", folder / "giant", GIANT_TIMES)
            times = _measure_tail_command(giant, GIANT_ROUNDS)
            yield speed("artifact tail -n 100 of 4 GB, whole process", TAIL, times)


def _measure_tail_command(stored: Stored, rounds: int) -> Times:
    # As it is installed: compiled once.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    command = [*_TOOLTRAIL, "artifact", "tail", "-n", str(LINES)]
    command += ["--db", str(stored.database), stored.path]

    def subject() -> None:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)

    return compare(subject, lambda: _tail(stored), rounds)


def _measure_slice(stored: Stored) -> Times:
    """Slices anywhere, beside decompressing as many frames."""
    reader = stored.reader()
    index = stored.index
    data = stored.file.read_bytes()
    frames = [data[slice(*index.stored_span(number))] for number in range(len(index))]
    decompressor = zstandard.ZstdDecompressor()
    offsets = _offsets(reader.size - SLICE)

    def subject() -> None:
        offset = next(offsets)
        reader.read_bytes(offset, offset + SLICE)

    def baseline() -> None:
        decompressor.decompress(frames[next(offsets) % len(frames)])

    return compare(subject, baseline, _SLICES)


def _measure_grep(stored: Stored, pattern: str, *, is_literal: bool) -> Times:
    """Count the lines with a pattern as the command line does."""
    reader = stored.reader()
    search = Search(
        literal=is_literal, ignore_case=False, invert=False, before=0, after=0, max_count=None
    )
    grep = f"grep -{'F' if is_literal else 'E'} -c '{pattern}'"
    found = int(_program(stored, grep))

    def subject() -> None:
        assert search.count(reader, pattern) == found

    return compare(subject, lambda: _program(stored, grep), ROUNDS)


def _tail(stored: Stored) -> bytes:
    return _program(stored, f"tail -n {LINES}")


def _program(stored: Stored, filter_: str) -> bytes:
    command = ["sh", "-c", f'zstd -dc "$0" | {filter_}', str(stored.file)]
    return subprocess.run(command, check=True, capture_output=True).stdout


def _offsets(limit: int) -> Iterator[int]:
    chance = random.Random(_SEED)
    while True:
        yield chance.randrange(limit)
