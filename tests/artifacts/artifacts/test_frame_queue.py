"""Blocks are compressed by other threads, and by the writer itself where there are none."""

import os
import subprocess
import sys
import tempfile
import textwrap
import threading
from pathlib import Path

import pytest
from tests.support.cli import without_coverage

from tooltrail.artifacts import Capture
from tooltrail.artifacts.capture import INTERRUPTED
from tooltrail.artifacts.codec import compress_frame, open_plain
from tooltrail.artifacts.frame_index import Frame
from tooltrail.records.digests import digest_of


class FullMemory:
    """No memory for compressing: in other threads, or anywhere."""

    def __init__(self) -> None:
        self.is_here_too = False

    def compress(self, block: bytearray) -> Frame:
        if self.is_here_too or threading.current_thread() is not threading.main_thread():
            raise MemoryError
        return compress_frame(block)


@pytest.fixture
def full_memory(monkeypatch: pytest.MonkeyPatch) -> FullMemory:
    memory = FullMemory()
    monkeypatch.setattr("tooltrail.artifacts._frame_queue.compress_frame", memory.compress)
    return memory


def test_without_memory_a_capture_ends_and_keeps_what_was_taken(
    full_memory: FullMemory, tmp_path: Path
) -> None:
    data = os.urandom(50_000)
    path = tmp_path / "stdout.zst"
    capture = Capture("stdout", path, edge_bytes=10, frame_size=1000)
    capture.write(data[:1500])
    full_memory.is_here_too = True
    with pytest.raises(MemoryError):
        capture.write(data[1500:40_000])
    full_memory.is_here_too = False
    capture.write(data[40_000:])
    record = capture.close().record
    assert 1500 <= record.size <= 40_000
    assert (record.produced_size, record.loss_reason) == (50_000, INTERRUPTED)
    assert record.digest == digest_of(data[: record.size])
    with open_plain(path.open("rb")) as plain:
        assert plain.read() == data[: record.size]


ALONE = textwrap.dedent(
    """
    import os, resource, sys, threading
    from pathlib import Path
    from tooltrail.artifacts import Capture
    from tooltrail.artifacts.codec import open_plain
    from tooltrail.records import StreamRecord  # Another user may not read the interpreter's files.

    def capture(name):
        data = b"".join(b"line %d\\n" % n for n in range(100_000))
        path = Path(sys.argv[1], name, "stdout.zst")
        with Capture("stdout", path, edge_bytes=10) as taken:
            for start in range(0, len(data), 100_000):
                taken.write(data[start : start + 100_000])
        captured = taken.close()
        assert captured.record.size == captured.record.produced_size == len(data)
        with open_plain(captured.staged.open("rb")) as plain:
            assert plain.read() == data
        print(name)

    def at_the_end():
        threading.main_thread().join()
        capture("at the end")

    if os.getuid() == 0:
        os.setgid(54321)
        os.setuid(54321)
    threading.Thread(target=at_the_end).start()
    resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
    capture("without threads")
    """
)


def test_where_no_thread_is_to_be_had_the_caller_compresses() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        done = subprocess.run(
            [sys.executable, "-c", ALONE, folder],
            capture_output=True,
            text=True,
            check=False,
            env=without_coverage(os.environ),
        )
    assert (done.stdout, done.stderr) == ("without threads\nat the end\n", "")
