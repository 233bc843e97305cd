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
from tooltrail.artifacts import ArtifactArchive, ArtifactReader, Capture, StoredArtifact, open_sink
from tooltrail.store import Store, create_store

ROUNDS = 9
LINES = 100
SLICE = 4096
_CHUNK = 1 << 20
_SEED = 1
_SLICES = 400
_RARE, _COMMON = "importlib.util", "self"


@dataclass(frozen=True)
class Stored:
    """An input as an artifact of a store.

    Attributes:
        database: the store's file.
        artifact: the input as it is stored.
        file: the stored object.
    """

    database: Path
    artifact: StoredArtifact
    file: Path

    @classmethod
    def of(cls, source: Path, folder: Path, times: int = 1) -> "Stored":
        """Store the input, so many times in a row, in a store of its own."""
        database = folder / "reading" / "tooltrail.db"
        with create_store(database) as store:
            artifact = _stored(store, source, folder, times)
            return cls(database, artifact, database.parent / "artifacts" / artifact.path)

    def reader(self) -> ArtifactReader:
        """A new reader that has the index, as from the artifact's row."""
        archive = ArtifactArchive(open_sink(str(self.database.parent / "artifacts")))
        return archive.reader(self.artifact.path, index=self.artifact.index)


def measure_tail(stored: Stored) -> Ratio:
    """The last lines, in this process, sink and reader opened anew."""
    return compare(
        lambda: _keep(stored.reader().tail(LINES)), lambda: _tail_program(stored), ROUNDS
    )


def measure_tail_command(stored: Stored, rounds: int = ROUNDS) -> Ratio:
    """`tooltrail artifact tail -n 100`, as a whole process."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-m", "tooltrail.cli", "artifact", "tail", "-n", str(LINES)]
    command += ["--db", str(stored.database), stored.artifact.path]

    def subject() -> None:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)

    return compare(subject, lambda: _tail_program(stored), rounds)


def measure_slice(stored: Stored) -> Ratio:
    """Slices of 4 KiB anywhere, beside decompressing as many frames."""
    reader = stored.reader()
    index = stored.artifact.index
    assert index is not None
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


def measure_grep(stored: Stored, *, literal: str) -> Ratio:
    """Count the lines with a literal, beside `zstd -dc FILE | grep -c LITERAL`."""
    reader = stored.reader()
    found = int(_program(stored, f"grep -F -c {literal}").stdout)

    def subject() -> None:
        assert reader.count_matches(literal, literal=True) == found

    return compare(subject, lambda: _keep(_program(stored, f"grep -F -c {literal}")), ROUNDS)


def measure_rare_grep(stored: Stored) -> Ratio:
    """See `measure_grep`: a literal of a few hundred lines."""
    return measure_grep(stored, literal=_RARE)


def measure_common_grep(stored: Stored) -> Ratio:
    """See `measure_grep`: a literal of every ninth line."""
    return measure_grep(stored, literal=_COMMON)


SUBJECTS: tuple[tuple[str, str, Callable[[Stored], Ratio]], ...] = (
    ("last 100 lines of 256 MB", "zstd -dc FILE | tail -n 100", measure_tail),
    ("artifact tail -n 100, whole process", "zstd -dc FILE | tail -n 100", measure_tail_command),
    ("a 4 KiB slice of 256 MB", "decompress one frame", measure_slice),
    ("count a rare literal in 256 MB", "zstd -dc FILE | grep -c", measure_rare_grep),
    ("count a common literal in 256 MB", "zstd -dc FILE | grep -c", measure_common_grep),
)


def _stored(store: Store, source: Path, folder: Path, times: int) -> StoredArtifact:
    capture = Capture("stdout", folder / "reading.zst", edge_bytes=1000, inline_bytes=0)
    for _ in range(times):
        with source.open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                capture.write(chunk)
    artifact = store.archive.publish(capture.close())
    capture.discard()
    return artifact


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
