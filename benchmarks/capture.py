"""Capturing 256 MB of real text and reading parts of it, against `zstd`, `tail` and `grep`."""

import shlex
import subprocess
import sysconfig
from functools import partial
from pathlib import Path

from benchmarks._measure import IS_FULL, TOOLTRAIL, Report, Times, compare, scratch_folder, speed
from tooltrail.artifacts import ArtifactArchive, Capture, StoredArtifact, open_reader, open_sink
from tooltrail.store import create_store

SIZE = 256 * 1024 * 1024
GIANT_TIMES = 16
ROUNDS = 5
LINES = 100

_PACK = "zstd -3 -T1"
_TAIL = f"zstd -dc FILE | tail -n {LINES}"
_CHUNK = 1 << 20
"""Bytes of one write; `exec` reads as many from a full pipe."""

_PATTERNS = {
    "a rare literal": ("importlib.util", "F"),
    "a common literal": ("self", "F"),
    "a letter": ("e", "F"),
    "an expression": ("^def ", "E"),
}


def lines() -> Report:
    """Capturing by this process and by `exec`; tails and searches; the tail of 4 GB."""
    with scratch_folder() as folder:
        source = folder / "input"
        _make_input(source)
        archive = ArtifactArchive(open_sink(str(folder / "sink"), create=True))
        pack = shlex.split(f"{_PACK} -q -f {source} -o {folder / 'packed'}")
        create_store(folder / "tooltrail.db").close()
        execute = [*TOOLTRAIL, "exec", "--db", str(folder / "tooltrail.db"), "--"]
        size = SIZE / 1_000_000
        times = compare(lambda: _capture(source, archive), lambda: _run(pack), ROUNDS)
        yield speed("capture 256 MB, durable", _PACK, times, size, "≥ 0.9")
        times = compare(lambda: _run([*execute, "cat", str(source)]), lambda: _run(pack), ROUNDS)
        yield speed("exec -- cat of 256 MB, whole process", _PACK, times, size)
        stored = _capture(source, archive, keep=True)
        yield from _read_parts(archive, stored, folder / "sink" / stored.path)
        if IS_FULL:
            stored = _capture(source, archive, GIANT_TIMES, keep=True)
            times = _measure_tail(archive, stored, folder / "sink" / stored.path)
            yield speed(f"the last {LINES} lines of 4 GB", _TAIL, times)


def _make_input(path: Path) -> None:
    """Write real text: the sources of the standard library, repeated."""
    files = sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py"))
    with path.open("wb") as target:
        while target.tell() < SIZE:
            for file in files:
                target.write(file.read_bytes())
        target.truncate(SIZE)


def _capture(
    source: Path, archive: ArtifactArchive, times: int = 1, *, keep: bool = False
) -> StoredArtifact:
    """Hash, count and compress a file, and publish it durably."""
    spooled = source.with_name("stdout.zst")
    capture = Capture("stdout", spooled, edge_bytes=128_000)
    for _ in range(times):
        with source.open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                capture.write(chunk)
    stored = archive.publish(capture.close())
    if not keep:
        archive.sink.delete(stored.path)
    capture.discard()
    return stored


def _read_parts(archive: ArtifactArchive, stored: StoredArtifact, file: Path) -> Report:
    times = _measure_tail(archive, stored, file)
    yield speed(f"the last {LINES} lines of 256 MB", _TAIL, times)
    for name, (pattern, kind) in _PATTERNS.items():
        count = partial(_count, archive, stored, pattern, is_literal=kind == "F")
        grep = partial(_pipe, file, f"grep -{kind} -c '{pattern}'")
        assert count() == int(grep())
        times, target = compare(count, grep, ROUNDS), "≥ 1" if kind == "F" else "-"
        yield speed(f"count {name} in 256 MB", f"zstd -dc | grep -{kind} -c", times, target=target)


def _count(
    archive: ArtifactArchive, stored: StoredArtifact, pattern: str, *, is_literal: bool
) -> int:
    return open_reader(archive.sink, stored.path).count_matches(pattern, literal=is_literal)


def _measure_tail(archive: ArtifactArchive, stored: StoredArtifact, file: Path) -> Times:
    return compare(
        lambda: open_reader(archive.sink, stored.path).tail(LINES),
        lambda: _pipe(file, f"tail -n {LINES}"),
        ROUNDS,
    )


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _pipe(file: Path, then: str) -> bytes:
    command = ["sh", "-c", f'zstd -dc "$0" | {then}', str(file)]
    return subprocess.run(command, check=True, capture_output=True).stdout
