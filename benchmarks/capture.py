"""Capturing 256 MB of real text, beside `zstd -3 -T1` on the same input."""

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import zstandard

from benchmarks._measure import Report, Times, compare, scratch_folder, speed
from tooltrail.artifacts import ArtifactArchive, Capture, open_sink
from tooltrail.store import create_store

SIZE = 256 * 1024 * 1024
ROUNDS = 5

_CHUNK = 1 << 20
"""Bytes of one write: as many as `exec` reads from a full pipe."""


def lines(*, is_full: bool) -> Report:
    """In this process, and by the whole program."""
    del is_full
    size = SIZE / 1_000_000
    baseline = "zstd -3 -T1" if shutil.which("zstd") else "python-zstandard level 3, one thread"
    with scratch_folder() as folder:
        make_input(folder / "input")
        times = _measure_capture(folder)
        yield speed("capture 256 MB, durable", baseline, times, size, "≥ 0.9")
        times = _measure_exec(folder)
        yield speed("exec -- cat of 256 MB, whole process", baseline, times, size)


def make_input(path: Path) -> None:
    """Real text: the standard library's sources, again and again."""
    files = sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py"))
    with path.open("wb") as target:
        while target.tell() < SIZE:
            for file in files:
                target.write(file.read_bytes())
        target.truncate(SIZE)


def _measure_capture(folder: Path) -> Times:
    """Hash, count, compress and publish durably."""
    source = folder / "input"
    archive = ArtifactArchive(open_sink(str(folder / "sink"), create=True))

    def subject() -> None:
        capture = Capture("stdout", folder / "stdout.zst", edge_bytes=128_000, inline_bytes=16_384)
        with source.open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                capture.write(chunk)
        stored = archive.publish(capture.close())
        archive.sink.delete(stored.path)
        capture.discard()

    return compare(subject, lambda: _zstd(source, folder / "baseline.zst"), ROUNDS)


def _measure_exec(folder: Path) -> Times:
    """`tooltrail exec -- cat FILE`; each time into an empty store, with ingestion."""
    source = folder / "input"
    home = folder / "store"
    command = [sys.executable, "-m", "tooltrail.cli", "exec", "--db", str(home / "tooltrail.db")]
    create_store(home / "tooltrail.db").close()

    def subject() -> None:
        subprocess.run([*command, "--", "cat", str(source)], check=True, stdout=subprocess.DEVNULL)

    return compare(subject, lambda: _zstd(source, folder / "baseline.zst"), ROUNDS)


def _zstd(source: Path, target: Path) -> None:
    if shutil.which("zstd"):
        command = ["zstd", "-3", "-T1", "-q", "-f", str(source), "-o", str(target)]
        subprocess.run(command, check=True)
        return
    with source.open("rb") as plain, target.open("wb") as packed:
        zstandard.ZstdCompressor(level=3).copy_stream(plain, packed)
