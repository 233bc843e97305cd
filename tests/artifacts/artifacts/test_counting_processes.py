"""Several processes count what threads count, and leave nothing behind."""

import gc
import io
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.support.effort import times
from tests.support.sinks import CountingSink, Framed, counting_sink, framed, put_raw

from tooltrail.artifacts import ArtifactArchive, ArtifactReader, FrameIndex, open_sink
from tooltrail.artifacts import _counting_processes as processes_module
from tooltrail.artifacts import _part_queue as queue_module
from tooltrail.artifacts._block_counts import literal_counter, others
from tooltrail.artifacts._count_worker import Tally, Task, count_parts
from tooltrail.artifacts._counting_processes import (
    WORKER,
    answer_of,
    count_in_processes,
    worker_for,
)
from tooltrail.artifacts._frames import Frames, open_frames
from tooltrail.artifacts._line_counts import Part, count_lines_of
from tooltrail.artifacts._part_queue import PartQueue, parts_of
from tooltrail.records.errors import DamageError, InvalidRecordError

FRAME = 1_000
LINES = [b"line %d of e\n" % n if n % 3 else b"\n" for n in range(3_000)]
PLAIN = b"".join(LINES)
CONTENTS = {
    "lines": PLAIN,
    "no newline at the end": PLAIN + b"e",
    "lines that end as frames do": (b"e" * 99 + b"\n") * 100,
    "a line over many frames": b"a\n" + b"x" * 4_500 + b"e" + b"x" * 4_500 + b"\ne\n" * 900,
    "one line": b"x" * 9_000 + b"e",
    "empty lines": b"\n" * 9_000 + b"e",
    "carriage returns": b"one e\r\n\r\n\re\n" * 800,
    "no text": bytes(range(256)) * 40,
    "a frame more than processes": b"e\n" * (FRAME * 3 // 2) + b"last e\n",
}
MEASURING = {name: value for name, value in os.environ.items() if name.startswith("COV")}
"""What makes another process write coverage data."""

AMONG_FRAMES = (0, 9, 20, -1)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let processes count artifacts of any size and part them finely.

    None of them writes coverage data, which those that are killed would leave damaged.
    """
    for name in MEASURING:
        monkeypatch.delenv(name)
    monkeypatch.setattr(processes_module, "PROCESS_BYTES", 1)
    monkeypatch.setattr(queue_module, "SMALLEST_PART", 1)


@pytest.fixture
def sink(tmp_path: Path) -> CountingSink:
    return CountingSink(open_sink(str(tmp_path / "sink"), create=True))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("counting")


def frames_of(sink: CountingSink, made: Framed, index: FrameIndex | None = None) -> Frames:
    return open_frames(sink, made.path, index or made.index, None, None)


def reader_of(sink: CountingSink, tmp_path: Path, plain: bytes) -> ArtifactReader:
    made = framed(plain, FRAME)
    put_raw(sink, tmp_path, made.path, made.stored)
    return ArtifactArchive(sink).reader(made.path, index=made.index)


def task_of(sink: CountingSink, made: Framed, fd: int, *, invert: bool = False) -> Task:
    index = made.index.to_bytes().hex()
    return Task(sink.url, made.path, index, b"e".hex(), invert, fd)


def lines_with(plain: bytes, literal: bytes, *, invert: bool) -> int:
    return sum((literal in line) != invert for line in io.BytesIO(plain))


def by_a_worker(sink: CountingSink, made: Framed, parts: list[Part], *, invert: bool) -> Tally:
    """What another process counts when nobody else takes a part."""
    with PartQueue.of(parts, 1) as queue:
        task = task_of(sink, made, queue.fd, invert=invert)
        with patch.dict(os.environ, MEASURING), worker_for(task) as process:
            tally = answer_of(process)
            process.wait()
            return tally


def a_program(tmp_path: Path, code: str) -> str:
    """A program that stands in for Python when a worker is started."""
    program = tmp_path / "program"
    begin = f"#!{sys.executable} -S\nimport json, os, signal, sys\n"
    program.write_text(begin + textwrap.dedent(code))
    program.chmod(0o700)
    return str(program)


TAKE_A_PART = "os.read(json.loads(sys.stdin.readline())[-1], 16)\n"


def descriptors_and_children() -> tuple[set[str], set[str]]:
    # What an earlier test has let go of may be closed at any time.
    gc.collect()
    return {link.name for link in Path("/proc/self/fd").iterdir()}, _children(os.getpid())


def _children(parent: int) -> set[str]:
    found: set[str] = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name in parentheses may hold anything.
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.add(status.parent.name)
    return found


PIECES = st.sampled_from(["", "\n", "\n\n", "a", "ab", "aab\n", "b\n", "\r\n", "é\n"])


@settings(max_examples=times(75), deadline=None)
@example(pieces=["a\n", "a\n"], literal="a", size=2, takers=2, smallest=1, invert=False)
@example(pieces=["aaaa"], literal="aaa", size=1, takers=2, smallest=1, invert=True)
@given(
    pieces=st.lists(PIECES, max_size=40),
    literal=st.text("ab", min_size=1, max_size=3),
    size=st.integers(1, 9),
    takers=st.integers(1, 4),
    smallest=st.integers(1, 30),
    invert=st.booleans(),
)
def test_each_line_belongs_to_one_part(
    folder: Path,
    *,
    pieces: list[str],
    literal: str,
    size: int,
    takers: int,
    smallest: int,
    invert: bool,
) -> None:
    plain, needle = "".join(pieces).encode(), literal.encode()
    sink, made = counting_sink(), framed(plain, size)
    put_raw(sink, folder, made.path, made.stored)
    frames = frames_of(sink, made)
    counter = others(literal_counter(needle)) if invert else literal_counter(needle)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(queue_module, "SMALLEST_PART", smallest)
        parts = parts_of(made.index, takers)
    assert [0, *(part.stop for part in parts)] == [*(part.start for part in parts), len(plain)]
    found = [sum(count_lines_of(frames, made.path, counter, part)) for part in reversed(parts)]
    assert sum(found) == lines_with(plain, needle, invert=invert)


@pytest.mark.parametrize("plain", CONTENTS.values(), ids=CONTENTS)
@pytest.mark.parametrize("invert", [False, True])
def test_another_process_counts_what_each_line_has(
    sink: CountingSink, tmp_path: Path, plain: bytes, invert: bool
) -> None:
    made = framed(plain, FRAME)
    put_raw(sink, tmp_path, made.path, made.stored)
    parts = parts_of(made.index, 2)
    wanted = lines_with(plain, b"e", invert=invert)
    assert by_a_worker(sink, made, parts, invert=invert) == (wanted, len(parts))
    # Of the second half alone, which begins anywhere in a line.
    half = [part for part in parts if part.start >= len(plain) // 2]
    begin = plain.find(b"\n", half[0].start - 1) + 1
    rest = plain[begin:] if begin else b""
    counted = by_a_worker(sink, made, half, invert=invert)
    assert counted == (lines_with(rest, b"e", invert=invert), len(half))


@pytest.mark.parametrize("plain", CONTENTS.values(), ids=CONTENTS)
@pytest.mark.parametrize("invert", [False, True])
def test_processes_count_what_threads_count(
    sink: CountingSink, tmp_path: Path, plain: bytes, invert: bool
) -> None:
    reader = reader_of(sink, tmp_path, plain)
    wanted = lines_with(plain, b"e", invert=invert)
    for processes in (1, 2, 3):
        count = reader.count_matches("e", literal=True, invert=invert, processes=processes)
        assert count == wanted


def test_a_count_by_processes_leaves_nothing_behind(sink: CountingSink, tmp_path: Path) -> None:
    made = framed(PLAIN, FRAME)
    put_raw(sink, tmp_path, made.path, made.stored)
    frames = frames_of(sink, made)
    before = descriptors_and_children()
    for _ in range(2):
        found = count_in_processes(frames, made.path, b"e", invert=False, processes=3)
        assert found == lines_with(PLAIN, b"e", invert=False)
    assert descriptors_and_children() == before


@pytest.mark.parametrize("frame", AMONG_FRAMES)
def test_damage_anywhere_is_the_same_error_as_of_threads(
    sink: CountingSink, tmp_path: Path, frame: int
) -> None:
    made = framed(PLAIN, FRAME)
    damaged = bytearray(made.stored)
    for number in {frame % len(made.index), len(made.index) - 1}:
        damaged[made.index.stored_span(number)[0] + 20] ^= 1
    put_raw(sink, tmp_path, made.path, bytes(damaged))
    messages: list[str] = []
    for processes in (1, 2, 3):
        reader = ArtifactArchive(sink).reader(made.path, index=made.index)
        with pytest.raises(DamageError, match="in the frame at byte ") as caught:
            reader.count_matches("e", literal=True, processes=processes)
        messages.append(str(caught.value))
    assert len(set(messages)) == 1
    parts = parts_of(made.index, 1)
    assert by_a_worker(sink, made, parts, invert=False) == Tally(0, 0)


def test_a_line_that_cannot_be_held_is_refused_as_by_threads(
    sink: CountingSink, tmp_path: Path
) -> None:
    plain = b"e\n" * 600_000 + b"x" * (65 * 1024 * 1024) + b"e\n"
    made = framed(plain, 256 * 1024)
    put_raw(sink, tmp_path, made.path, made.stored)
    reader = ArtifactArchive(sink).reader(made.path, index=made.index)
    for processes in (1, 2):
        with pytest.raises(InvalidRecordError, match=r"line 600,001 of artifact \S+ has more than"):
            reader.count_matches("e", literal=True, processes=processes)
    assert by_a_worker(sink, made, parts_of(made.index, 1), invert=False) == Tally(0, 0)


def test_processes_count_frames_that_are_others_than_the_index_says(
    sink: CountingSink, tmp_path: Path
) -> None:
    told, stored = framed(PLAIN, FRAME), framed(PLAIN, FRAME // 3)
    put_raw(sink, tmp_path, told.path, stored.stored)
    wanted = lines_with(PLAIN, b"e", invert=False)
    parts = parts_of(told.index, 2)
    assert by_a_worker(sink, told, parts, invert=False) == (wanted, len(parts))
    reader = ArtifactArchive(sink).reader(told.path, index=told.index)
    assert reader.count_matches("e", literal=True, processes=2) == wanted


@pytest.mark.parametrize(
    "code",
    [
        f"{TAKE_A_PART}os.kill(os.getpid(), signal.SIGKILL)",
        f"{TAKE_A_PART}sys.exit(1)",
        f"{TAKE_A_PART}print('what?')",
        f"{TAKE_A_PART}print('3')",
        f"{TAKE_A_PART}print('[1')",
        f"{TAKE_A_PART}signal.raise_signal(signal.SIGINT)",
    ],
)
def test_a_part_that_was_taken_and_not_counted_is_not_forgotten(
    sink: CountingSink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    made = framed(PLAIN, FRAME)
    put_raw(sink, tmp_path, made.path, made.stored)
    frames = frames_of(sink, made)
    parts = parts_of(made.index, 2)
    monkeypatch.setattr(sys, "executable", a_program(tmp_path, code))
    before = descriptors_and_children()
    with PartQueue.of(parts, 2) as queue:
        task = task_of(sink, made, queue.fd)
        with worker_for(task) as process:
            process.wait()
            tally = count_parts(frames, made.path, task.counter(), queue)
            assert tally.parts == len(parts) - 1
            assert answer_of(process) == Tally(0, 0)
    # Whoever is the first to take a part, the count is right.
    reader = ArtifactArchive(sink).reader(made.path, index=made.index)
    for _ in range(3):
        count = reader.count_matches("e", literal=True, processes=3)
        assert count == lines_with(PLAIN, b"e", invert=False)
    assert descriptors_and_children() == before


def test_where_no_process_can_be_started_threads_count(
    sink: CountingSink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = reader_of(sink, tmp_path, PLAIN)
    frames = frames_of(sink, framed(PLAIN, FRAME))
    before = descriptors_and_children()
    for executable in ("", str(tmp_path / "missing"), str(tmp_path)):
        monkeypatch.setattr(sys, "executable", executable)
        args = (frames, reader.path, b"e")
        assert count_in_processes(*args, invert=False, processes=2) is None
        count = reader.count_matches("e", literal=True, processes=2)
        assert count == lines_with(PLAIN, b"e", invert=False)
    assert descriptors_and_children() == before


@pytest.mark.parametrize(
    ("pattern", "more"),
    [
        ("e", {"processes": 1, "literal": True}),
        ("e", {}),
        ("E", {"literal": True, "ignore_case": True}),
        ("e", {"literal": True, "max_count": 9}),
        ("", {"literal": True}),
        ("line 1 of", {"literal": True}),
    ],
)
def test_no_process_is_started_where_threads_do_better_or_it_may_take_for_ever(
    sink: CountingSink,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pattern: str,
    more: dict[str, Any],
) -> None:
    def no_parts(index: FrameIndex, takers: int) -> list[Part]:
        raise AssertionError(f"{takers} processes are to count")

    monkeypatch.setattr(processes_module, "parts_of", no_parts)
    reader = reader_of(sink, tmp_path, PLAIN)
    wanted: dict[str, Any] = {"processes": 2, **more}
    assert reader.count_matches(pattern, **wanted) > 0
    with pytest.raises(AssertionError, match="2 processes are to count"):
        reader.count_matches("e", literal=True, processes=2)


def test_no_process_is_started_for_what_is_small_or_in_no_folder(
    sink: CountingSink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = framed(PLAIN, FRAME)
    for place in (sink, counting_sink()):
        put_raw(place, tmp_path, made.path, made.stored)
    args = (made.path, b"e")
    in_memory = open_frames(counting_sink(), made.path, made.index, None, None)
    assert count_in_processes(in_memory, *args, invert=False, processes=2) is None
    monkeypatch.setattr(processes_module, "PROCESS_BYTES", len(PLAIN) // 2 + 1)
    assert count_in_processes(frames_of(sink, made), *args, invert=False, processes=9) is None
    monkeypatch.setattr(processes_module, "PROCESS_BYTES", 1)
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert count_in_processes(frames_of(sink, made), *args, invert=False, processes=2) is None


def test_a_number_of_processes_is_at_least_one(sink: CountingSink, tmp_path: Path) -> None:
    reader = reader_of(sink, tmp_path, PLAIN)
    with pytest.raises(InvalidRecordError, match="not a number of processes: 0"):
        reader.count_matches("e", literal=True, processes=0)


def test_nothing_is_imported_from_the_current_folder(
    sink: CountingSink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = framed(PLAIN, FRAME)
    put_raw(sink, tmp_path, made.path, made.stored)
    for module in ("zstandard", "json", "tooltrail"):
        (tmp_path / f"{module}.py").write_text("raise SystemExit(7)")
    monkeypatch.chdir(tmp_path)
    parts = parts_of(made.index, 1)
    assert by_a_worker(sink, made, parts, invert=False).parts == len(parts)


@pytest.mark.parametrize(("flag", "is_trusted"), [("-I", False), ("-E", False), ("-B", True)])
def test_a_process_trusts_no_more_than_the_one_that_starts_it(
    tmp_path: Path, flag: str, *, is_trusted: bool
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import os, pathlib, sys\n"
        "argv = pathlib.Path('/proc/self/cmdline').read_bytes().split(b'\\0')\n"
        f"argv.count({WORKER.encode()!r}) and pathlib.Path({str(tmp_path / 'met')!r}).touch()\n"
    )
    code = (
        "import os, sys\n"
        "from tooltrail.artifacts._counting_processes import answer_of, worker_for\n"
        "from tooltrail.artifacts._count_worker import Task\n"
        "with worker_for(Task('file:///', 'x', '', '65', False, 0)) as process:\n"
        "    answer_of(process)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    subprocess.run([sys.executable, flag, "-c", code], env=environment, check=True)
    assert (tmp_path / "met").exists() == is_trusted


def test_nobody_waits_for_a_process_to_hear_what_it_is_to_do(
    sink: CountingSink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a gigabyte that is more than a pipe holds."""
    monkeypatch.setattr(sys, "executable", a_program(tmp_path, "signal.pause()"))
    task = task_of(sink, framed(PLAIN, 1), 0)
    assert len(task.to_line()) > 128 * 1024
    with worker_for(task) as deaf:
        assert deaf.poll() is None


def test_a_process_ends_when_nobody_waits_for_what_it_counts(
    sink: CountingSink, tmp_path: Path
) -> None:
    made = framed(PLAIN, FRAME)
    put_raw(sink, tmp_path, made.path, made.stored)
    parts = parts_of(made.index, 1)
    with PartQueue.of(parts, 1) as queue:
        # It waits for a task until its other end is gone.
        task = task_of(sink, made, queue.fd)
        process = _without_a_reader(task)
        assert process.wait() == 1
        # And has stopped in its first part.
        assert len(list(queue)) == len(parts) - 1


def _without_a_reader(task: Task) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", WORKER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=(task.parts_fd,),
    )
    assert process.stdin
    assert process.stdout
    process.stdout.close()
    with process.stdin as stdin:
        stdin.write(task.to_line())
    return process


class InterruptedSink(CountingSink):
    """Ctrl-C while the part after the samples is read."""

    def read(self, path: str, start: int, stop: int | None = None) -> bytes:
        if len(self.requests) >= processes_module.SAMPLES:
            signal.raise_signal(signal.SIGINT)
        return super().read(path, start, stop)


def test_an_interrupt_leaves_no_process_behind(
    sink: CountingSink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = framed(PLAIN, FRAME)
    put_raw(sink, tmp_path, made.path, made.stored)
    # Of those that would wait for ever.
    code = f"{TAKE_A_PART}signal.pause()"
    monkeypatch.setattr(sys, "executable", a_program(tmp_path, code))
    frames = open_frames(InterruptedSink(sink.sink), made.path, made.index, None, None)
    before = descriptors_and_children()
    with pytest.raises(KeyboardInterrupt):
        count_in_processes(frames, made.path, b"e", invert=False, processes=3)
    assert descriptors_and_children() == before


def test_parts_wait_in_a_pipe_and_each_is_given_to_one_taker() -> None:
    parts = [Part(number, number + 1) for number in range(100)]
    with PartQueue.of(parts, 2) as queue:
        first, second = iter(queue), iter(queue)
        taken = [next(first), next(second), *first]
        assert taken == parts
        assert list(second) == []


def test_more_parts_than_a_pipe_holds_are_an_error_and_no_wait() -> None:
    before = descriptors_and_children()
    for count in (10_000, 100_000):
        with pytest.raises(BlockingIOError, match="too many parts for a pipe"):
            PartQueue.of([Part(0, 1)] * count, 1)
    assert descriptors_and_children() == before


def test_a_task_is_one_line_whatever_a_path_holds() -> None:
    task = Task("file:///a\udcff\n", "b", "00", b"\n\xff".hex(), invert=True, parts_fd=7)
    line = task.to_line()
    assert line.count(b"\n") == 1
    assert Task.from_line(line) == task
