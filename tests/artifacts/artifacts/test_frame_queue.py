"""Blocks come back in their order, and few of them are held."""

import os
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest
from tests.support.cli import without_coverage

from tooltrail.artifacts._frame_queue import IN_FLIGHT, IN_FLIGHT_BYTES, THREADS, FrameQueue


@pytest.mark.parametrize(
    ("size", "most"),
    [
        (1, IN_FLIGHT),
        (256 * 1024, IN_FLIGHT),
        (1024 * 1024, max(THREADS + 2, IN_FLIGHT_BYTES // (1024 * 1024))),
    ],
)
def test_no_more_blocks_wait_than_may_and_all_come_back_in_order(size: int, most: int) -> None:
    queue = FrameQueue(size)
    taken: list[int] = []
    for number in range(3 * most):
        queue.put(bytearray([number]) * size)
        taken += [compressed.block[0] for compressed in queue.ready()]
        assert number + 1 - len(taken) <= most
    taken += [compressed.block[0] for compressed in queue.drain()]
    assert queue.is_empty
    assert taken == list(range(3 * most))


ALONE = textwrap.dedent(
    """
    import os, resource, sys, threading
    from pathlib import Path
    from tooltrail.artifacts import Capture
    from tooltrail.artifacts.codec import open_plain

    def capture(name):
        data = b"".join(b"line %d\\n" % n for n in range(100_000))
        path = Path(sys.argv[1], name, "stdout.zst")
        with Capture("stdout", path, edge_bytes=10, inline_bytes=10) as taken:
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
