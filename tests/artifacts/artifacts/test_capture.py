"""A capture knows exactly what it kept, at constant memory, whatever happens to its spool."""

import contextlib
import itertools
import os
import random
import resource
import stat
import subprocess
import sys
import tempfile
import textwrap
from array import array
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.killing import end_of, fork

from tooltrail.artifacts._flusher import Flusher
from tooltrail.artifacts.capture import Capture
from tooltrail.artifacts.captured import CapturedStream
from tooltrail.artifacts.codec import open_plain
from tooltrail.artifacts.sink import FRAME_SIZE
from tooltrail.records.counted_streams import INLINE_BYTES, count_lines
from tooltrail.records.digests import digest_of
from tooltrail.records.errors import InvalidRecordError, UnavailableError
from tooltrail.records.streams import StreamRecord

EDGE = 1000
RESCUED = 16 * 1024
"""Bytes that a record holds when the spool keeps nothing."""


def new_capture(folder: Path, *, edge_bytes: int = EDGE) -> Capture:
    return Capture("stdout", folder / "spool" / "stdout.zst", edge_bytes=edge_bytes)


def capture_all(capture: Capture, chunks: Sequence[bytes]) -> CapturedStream:
    for chunk in chunks:
        capture.write(chunk)
    return capture.close()


def decode(path: Path) -> bytes:
    with open_plain(path.open("rb")) as reader:
        return reader.read()


def check_against(record: StreamRecord, data: bytes, *, edge: int = EDGE) -> None:
    """The record says of its stream what a look at all of `data` says."""
    whole = StreamRecord.from_bytes(record.role, data)
    assert record.digest == whole.digest
    assert record.size == whole.size
    assert record.line_count == whole.line_count
    assert record.head == data[:edge]
    assert len(record.tail) == min(edge, max(0, len(data) - edge))
    assert data.endswith(record.tail)
    assert record.content == (data if len(data) <= INLINE_BYTES else None)


@given(
    data=st.binary(max_size=400),
    cuts=st.lists(st.integers(0, 400), max_size=8),
    flushes=st.sets(st.integers(0, 8)),
    edge=st.integers(0, 450),
)
def test_any_chunking_gives_the_record_of_the_whole(
    data: bytes, cuts: list[int], flushes: set[int], edge: int
) -> None:
    bounds = [0, *sorted(cuts), len(data)]
    with tempfile.TemporaryDirectory() as folder:
        capture = new_capture(Path(folder), edge_bytes=edge)
        for number, (start, end) in enumerate(itertools.pairwise(bounds)):
            capture.write(data[start:end])
            if number in flushes:
                capture.flush()
        captured = capture.close()
        check_against(captured.record, data, edge=edge)
        assert captured.record.produced_size == len(data)
        assert captured.record.produced_line_count == count_lines(data)
        assert captured.record.loss_reason is None
        assert (decode(captured.staged) if captured.staged else b"") == data


@pytest.mark.parametrize("chunk_size", [1000, 65_536, FRAME_SIZE, FRAME_SIZE + 1, 3_000_000])
def test_streams_of_many_frames_are_recorded_whole(tmp_path: Path, chunk_size: int) -> None:
    data = b"".join(b"line %d\n" % number for number in range(150_000)) + b"unfinished"
    chunks = [data[start : start + chunk_size] for start in range(0, len(data), chunk_size)]
    captured = capture_all(new_capture(tmp_path), chunks)
    check_against(captured.record, data)
    staged = tmp_path / "spool" / "stdout.zst"
    assert captured.staged == staged
    assert decode(staged) == data


def test_the_same_stream_gives_the_same_stored_bytes_however_it_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a machine that is slow enough a frame would end after a second.
    monkeypatch.setattr("tooltrail.artifacts.capture.FLUSHER", Flusher(3600))
    data = os.urandom(FRAME_SIZE) + b"text\n" * FRAME_SIZE
    one = capture_all(new_capture(tmp_path / "one"), [data])
    other = capture_all(
        new_capture(tmp_path / "other"), [data[i : i + 777] for i in range(0, len(data), 777)]
    )
    assert one.staged is not None
    assert other.staged is not None
    assert one.staged.read_bytes() == other.staged.read_bytes()


def test_nothing_is_created_before_the_first_byte(tmp_path: Path) -> None:
    capture = new_capture(tmp_path)
    capture.write(b"")
    capture.flush()
    assert list(tmp_path.iterdir()) == []
    captured = capture.close()
    assert list(tmp_path.iterdir()) == []
    assert captured.staged is None
    assert captured.record == StreamRecord.from_bytes("stdout", b"")


def test_chunks_of_several_threads_are_all_kept(tmp_path: Path) -> None:
    capture = new_capture(tmp_path)
    lines = [b"%d\n" % number for number in range(10_000)]
    with ThreadPoolExecutor(4) as threads:
        for line in lines:
            threads.submit(capture.write, line)
    captured = capture.close()
    assert captured.staged is not None
    assert sorted(decode(captured.staged).splitlines(keepends=True)) == sorted(lines)
    assert captured.record.digest == digest_of(decode(captured.staged))


def test_the_index_tells_where_every_frame_of_the_file_is(tmp_path: Path) -> None:
    data = b"line\n" * FRAME_SIZE
    captured = capture_all(new_capture(tmp_path), [data])
    assert captured.staged is not None
    assert captured.index is not None
    assert (captured.index.plain_size, captured.index.newline_count) == (len(data), FRAME_SIZE)
    assert captured.staged.read_bytes().endswith(captured.index.to_bytes())
    assert len(captured.index) == 5


def test_a_disk_without_room_for_the_index_keeps_all_frames(tmp_path: Path) -> None:
    capture = new_capture(tmp_path)
    data = os.urandom(2 * FRAME_SIZE)
    capture.write(data)
    capture.flush()
    staged = tmp_path / "spool" / "stdout.zst"
    size = staged.stat().st_size
    with room_for(size + 20):
        captured = capture.close()
    check_against(captured.record, data)
    assert captured.record.loss_reason is None
    assert (captured.staged, captured.stored_size, captured.index) == (staged, size, None)
    assert staged.stat().st_size == size
    assert decode(staged) == data


def test_a_forked_process_captures_with_threads_of_its_own(tmp_path: Path) -> None:
    capture_all(new_capture(tmp_path / "parent"), [b"x" * 3 * FRAME_SIZE, b"more"])
    program = """
        import os, sys, threading, time
        from pathlib import Path
        from tooltrail.artifacts import Capture, open_plain
        data = b"line" * 400_000
        def capture(name):
            capture = Capture("stdout", Path(name), edge_bytes=9)
            capture.write(data)
            while Path(name).stat().st_size == 0:
                time.sleep(0.01)
            return capture.close().record.digest
        mine = capture(sys.argv[1] + ".parent")
        child = os.fork()
        if not child:
            os._exit(capture(sys.argv[1] + ".child") != mine)
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program), str(tmp_path / "s")],
        timeout=120,
        check=False,
    )
    assert done.returncode == 0


def test_a_forked_child_cannot_touch_the_capture_of_its_parent(tmp_path: Path) -> None:
    first, rest = os.urandom(FRAME_SIZE + 1_000), os.urandom(1_000)
    closed = new_capture(tmp_path / "closed")
    outcome = capture_all(closed, [b"complete"])
    capture = new_capture(tmp_path)
    capture.write(first)
    capture.flush()

    def use_inherited() -> None:
        uses = [lambda: capture.write(rest), capture.flush, capture.close, capture.discard]
        for use in uses:
            with pytest.raises(InvalidRecordError, match=f"belongs to process {os.getppid()}"):
                use()
        with capture:
            pass
        assert closed.close() == outcome

    assert end_of(fork(use_inherited)) == 0
    capture.write(rest)
    whole = capture.close()
    check_against(whole.record, first + rest)
    assert whole.staged is not None
    assert decode(whole.staged) == first + rest


def test_a_chunk_may_be_reused_by_its_writer(tmp_path: Path) -> None:
    capture = new_capture(tmp_path)
    buffer = bytearray(b"first ")
    capture.write(buffer)
    buffer[:] = b"second"
    capture.write(memoryview(buffer))
    assert capture.close().record.content == b"first second"


def test_closing_twice_gives_the_same_and_writing_after_it_is_refused(tmp_path: Path) -> None:
    capture = new_capture(tmp_path)
    capture.write(b"bytes")
    assert capture.close() is capture.close()
    with pytest.raises(InvalidRecordError, match="the capture of stdout is closed"):
        capture.write(b"more")


def test_discarding_deletes_the_spool_file_once(tmp_path: Path) -> None:
    capture = new_capture(tmp_path)
    capture.write(b"bytes")
    capture.discard()
    capture.discard()
    assert list((tmp_path / "spool").iterdir()) == []
    new_capture(tmp_path).discard()


def test_a_spool_file_that_cannot_be_deleted_is_unavailable(tmp_path: Path) -> None:
    capture = new_capture(tmp_path)
    capture.write(b"bytes")
    staged = capture.close().staged
    assert staged is not None
    staged.unlink()
    staged.mkdir()
    with pytest.raises(UnavailableError, match="cannot delete"):
        capture.discard()


def test_the_spool_is_its_owners_alone(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        staged = capture_all(new_capture(tmp_path / "deep"), [b"bytes"]).staged
    finally:
        os.umask(before)
    assert staged is not None
    assert stat.S_IMODE(staged.stat().st_mode) == 0o600
    for folder in (staged.parent, tmp_path / "deep"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_the_stored_size_is_that_of_the_staged_file(tmp_path: Path) -> None:
    captured = capture_all(new_capture(tmp_path), [b"bytes\n", os.urandom(2 * FRAME_SIZE)])
    assert captured.staged is not None
    assert captured.stored_size == captured.staged.stat().st_size
    assert new_capture(tmp_path).close().stored_size is None


@pytest.mark.parametrize(
    "view",
    [
        memoryview(array("I", range(1000))),
        memoryview(array("d", [])),
        memoryview(bytes(range(200)))[::3],
        memoryview(bytes(24)).cast("B", (2, 3, 4)),
    ],
)
def test_views_of_any_shape_are_taken_as_their_bytes(tmp_path: Path, view: memoryview) -> None:
    capture = new_capture(tmp_path)
    capture.write(view)
    assert capture.close().record.content == view.tobytes()


def test_an_exception_in_a_with_block_closes_the_file_and_keeps_it(tmp_path: Path) -> None:
    def run_and_fail() -> None:
        with new_capture(tmp_path) as capture:
            capture.write(b"bytes")
            raise KeyError

    path = tmp_path / "spool" / "stdout.zst"
    with pytest.raises(KeyError):
        run_and_fail()
    with pytest.raises(AssertionError, match="is not open"):
        close_under(path)
    assert decode(path) == b"bytes"


@pytest.mark.parametrize("role", ["", "x" * 65, "lone \ud800"])
def test_a_role_that_no_record_takes_is_refused_before_any_byte(tmp_path: Path, role: str) -> None:
    with pytest.raises(InvalidRecordError, match="no stream can have the role"):
        Capture(role, tmp_path / "x.zst", edge_bytes=EDGE)


class TestSpoolThatCannotBeMade:
    def capture(self, folder: Path) -> Capture:
        (folder / "spool").write_bytes(b"a file where the folder should be")
        return new_capture(folder)

    def test_a_short_stream_loses_nothing(self, tmp_path: Path) -> None:
        captured = capture_all(self.capture(tmp_path), [b"a\n" * 1000, b"b"])
        check_against(captured.record, b"a\n" * 1000 + b"b")
        assert captured.record.loss_reason is None
        assert captured.staged is None

    def test_a_long_stream_keeps_what_memory_holds_and_counts_the_rest(
        self, tmp_path: Path
    ) -> None:
        data = b"line\n" * FRAME_SIZE + b"end"
        captured = capture_all(self.capture(tmp_path), [data])
        record = captured.record
        check_against(record, data[:RESCUED])
        assert (record.produced_size, record.produced_line_count) == (len(data), FRAME_SIZE + 1)
        assert record.loss_reason == "spool cannot be written: Not a directory"
        assert captured.staged is None

    def test_a_file_that_is_there_is_left_alone(self, tmp_path: Path) -> None:
        other = tmp_path / "spool" / "stdout.zst"
        other.parent.mkdir()
        other.write_bytes(b"left by a run that was killed")
        captured = capture_all(new_capture(tmp_path), [bytes(RESCUED + 1)])
        assert captured.record.loss_reason == "spool cannot be written: File exists"
        assert other.read_bytes() == b"left by a run that was killed"


@contextlib.contextmanager
def room_for(size: int) -> Generator[None]:
    """No file of this process may grow over `size` bytes.

    The limit stands for a full disk: it works everywhere and for every user, and like a full disk
    it takes a part of a frame before it refuses. Python ignores the signal that comes with it.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def capture_with_room_for(room: int, capture: Capture, data: bytes) -> CapturedStream:
    chunks = [data[start : start + 10_000] for start in range(0, len(data), 10_000)]
    with room_for(room):
        return capture_all(capture, chunks)


def test_a_full_disk_keeps_the_frames_that_are_complete(tmp_path: Path) -> None:
    data = os.urandom(2_000_000)
    captured = capture_with_room_for(700_000, new_capture(tmp_path), data)
    kept = data[: 2 * FRAME_SIZE]
    check_against(captured.record, kept)
    assert captured.record.produced_size == len(data)
    assert captured.record.produced_line_count == count_lines(data)
    assert captured.record.loss_reason == "spool cannot be written: File too large"
    assert captured.staged is not None
    assert decode(captured.staged) == kept


def test_a_disk_that_fills_up_at_the_end_loses_the_last_frame(tmp_path: Path) -> None:
    data = os.urandom(2 * FRAME_SIZE + 200_000)
    captured = capture_with_room_for(700_000, new_capture(tmp_path), data)
    check_against(captured.record, data[: 2 * FRAME_SIZE])
    assert captured.record.loss_reason == "spool cannot be written: File too large"


def test_a_disk_that_has_room_again_does_not_leave_a_hole(tmp_path: Path) -> None:
    capture = new_capture(tmp_path)
    data = os.urandom(3 * FRAME_SIZE)
    with room_for(400_000):
        capture.write(data)
        capture.flush()
    capture.write(b"later")
    captured = capture.close()
    check_against(captured.record, data[:FRAME_SIZE])
    assert captured.record.produced_size == len(data) + 5


def test_a_full_disk_loses_nothing_that_fits_into_memory(tmp_path: Path) -> None:
    data = os.urandom(RESCUED)
    captured = capture_with_room_for(RESCUED // 2, new_capture(tmp_path), data)
    check_against(captured.record, data)
    assert captured.record.loss_reason is None
    assert captured.staged is None
    assert list((tmp_path / "spool").iterdir()) == []


def test_a_disk_without_room_for_a_frame_leaves_no_file(tmp_path: Path) -> None:
    capture = new_capture(tmp_path)
    captured = capture_with_room_for(100_000, capture, os.urandom(1_000_000))
    assert (captured.record.size, captured.record.produced_size) == (RESCUED, 1_000_000)
    assert captured.staged is None
    assert list((tmp_path / "spool").iterdir()) == []


def close_under(path: Path) -> None:
    """Close the descriptor of an open file under its user: from now on all calls on it fail."""
    for descriptor in range(3, 256):
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                os.close(descriptor)
                return
    raise AssertionError(f"{path} is not open")


def test_a_spool_that_cannot_even_be_cut_is_not_trusted(tmp_path: Path) -> None:
    capture = new_capture(tmp_path)
    data = os.urandom(3 * FRAME_SIZE)
    capture.write(data[:FRAME_SIZE])
    close_under(tmp_path / "spool" / "stdout.zst")
    capture.write(data[FRAME_SIZE:])
    captured = capture.close()
    check_against(captured.record, data[:RESCUED])
    assert captured.record.produced_size == len(data)
    assert captured.record.loss_reason == "spool cannot be written: Bad file descriptor"
    assert captured.staged is None
    assert list((tmp_path / "spool").iterdir()) == []


PEAK = textwrap.dedent(
    """
    import resource, sys
    from pathlib import Path
    from tooltrail.artifacts import Capture
    megabytes = int(sys.argv[2])
    text = b"".join(b"%d: the quick brown fox jumps over %d\\n" % (n, n * n) for n in range(20_000))
    path = Path(sys.argv[1], "stdout.zst")
    capture = Capture("stdout", path, edge_bytes=65_536)
    written = 0
    while written < megabytes * 1_000_000:
        capture.write(text[: 1 << 16])
        written += 1 << 16
    capture.close()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    """
)


def peak_kib(folder: Path, megabytes: int) -> int:
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", PEAK, str(folder), str(megabytes)],
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


def test_memory_does_not_grow_with_the_stream(tmp_path: Path) -> None:
    idle = peak_kib(tmp_path / "idle", 0)
    small = peak_kib(tmp_path / "small", 32)
    large = peak_kib(tmp_path / "large", 128)
    assert large - small < 4 * 1024
    assert large - idle < 16 * 1024


def test_a_slow_stream_takes_about_as_much_room_as_one_that_came_at_once(tmp_path: Path) -> None:
    chance = random.Random(1)
    names = [f"src/{chance.randrange(10**6):x}/module_{n}.c" for n in range(300)]
    chunks = [
        "".join(
            f"[{chance.randrange(9999)}/9999] cc -O2 -Wall -Iinclude -c {name} -o build/{name}.o"
            f" took {chance.randrange(9999)} ms\n"
            for name in chance.sample(names, 25)
        ).encode()
        for _ in range(400)
    ]
    slow = new_capture(tmp_path / "slow")
    for chunk in chunks:
        slow.write(chunk)
        slow.flush()
    slowly, at_once = slow.close(), capture_all(new_capture(tmp_path / "fast"), chunks)
    assert slowly.index is not None
    assert at_once.index is not None
    assert len(slowly.index) == len(at_once.index)
    assert slowly.record == at_once.record
    assert slowly.stored_size is not None
    assert slowly.stored_size <= 1.1 * (at_once.stored_size or 0)


def test_on_a_disk_that_fills_up_all_that_was_flushed_is_kept(tmp_path: Path) -> None:
    capture = new_capture(tmp_path)
    flushed = os.urandom(20_000)
    capture.write(flushed)
    capture.flush()
    with room_for(30_000):
        capture.write(os.urandom(20_000))
        capture.flush()
        captured = capture.close()
    assert captured.staged is not None
    assert decode(captured.staged) == flushed
    assert (captured.record.size, captured.record.produced_size) == (20_000, 40_000)
    assert captured.record.loss_reason is not None
