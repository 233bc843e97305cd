import os
import random
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.process.harness import PYTHON, Driver, finish, pipe_of, python

BIG = 8 << 20


def big_file(folder: Path, size: int = BIG) -> tuple[str, bytes]:
    data = random.Random(1).randbytes(size)
    path = folder / "big"
    path.write_bytes(data)
    return str(path), data


def test_what_was_in_the_pipe_when_the_reader_left_is_recorded(driver: Driver) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    popen = {"stdout": writer}
    report = driver.run("sh", "-c", "echo first; echo second >&2; exit 5", popen=popen)
    os.close(writer)
    assert report.stream("stdout") == b"first\n"
    assert report.stream("stderr") == b"second\n"
    assert (report.exit_status, report.tee_closed) == (5, ["stdout"])


def test_the_other_stream_goes_on_after_one_reader_left(driver: Driver, tmp_path: Path) -> None:
    path, data = big_file(tmp_path)
    code = "echo x >&2; read x; echo y >&2; cat $0"
    process = driver.start("sh", "-c", code, path, popen={"stdin": subprocess.PIPE})
    assert pipe_of(process.stderr).readline() == b"x\n"
    pipe_of(process.stderr).close()
    process.stderr = None
    out, _ = process.communicate(b"\n", timeout=60)
    assert out == data
    report = driver.report()
    assert (report.exit_status, report.tee_closed) == (0, ["stderr"])
    assert report.stream("stderr") == b"x\ny\n"


def test_two_streams_in_one_pipe_keep_their_order(driver: Driver) -> None:
    # Far more than the pipe holds: each stream must wait while the other one is held.
    code = (
        "import os\n"
        "for i in range(40):\n"
        "  for fd in (1, 2):\n"
        "    os.write(fd, b'%d:%02d;' % (fd, i) + b'x' * 200000 + b'\\n')\n"
        "    os.read(0, 1)\n"
    )
    popen = {"stderr": subprocess.STDOUT, "stdin": subprocess.PIPE, "bufsize": -1}
    process = driver.start(*python(code), popen=popen)
    lines: list[bytes] = []
    for line in pipe_of(process.stdout):
        lines.append(line[:5])
        pipe_of(process.stdin).write(b"\n")
        pipe_of(process.stdin).flush()
    assert process.wait(60) == 0
    pipe_of(process.stdin).close()
    pipe_of(process.stdout).close()
    assert lines == [b"%d:%02d;" % (fd, i) for i in range(40) for fd in (1, 2)]
    assert driver.report().exit_status == 0


def test_one_reader_of_both_streams_takes_both_with_it(driver: Driver) -> None:
    process = driver.start("yes", popen={"stderr": subprocess.STDOUT})
    assert pipe_of(process.stdout).read(2) == b"y\n"
    pipe_of(process.stdout).close()
    assert process.wait(60) == 0
    report = driver.report()
    assert report.tee_closed == ["stdout", "stderr"]
    assert report.signal == 13


def test_neither_stream_starves_the_other(driver: Driver) -> None:
    # The endless one is only ended when the other one has come through.
    code = "yes & head -c 3000000 /dev/zero >&2; kill $!; wait"
    report = driver.run("sh", "-c", code)
    assert len(report.stream("stderr")) == 3_000_000


def test_a_reader_that_stalls_on_one_stream_does_not_hold_the_other(driver: Driver) -> None:
    code = "head -c 4000000 /dev/zero & echo here >&2; wait"
    process = driver.start("sh", "-c", code)
    assert pipe_of(process.stderr).readline() == b"here\n"
    out, _ = finish(process)
    assert out == bytes(4_000_000)


def non_blocking_pipe() -> tuple[int, int]:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    return reader, writer


def two_sockets() -> tuple[int, int]:
    ours, theirs = socket.socketpair()
    return ours.detach(), theirs.detach()


@pytest.mark.parametrize("make", [non_blocking_pipe, two_sockets])
def test_a_non_blocking_output_and_a_socket_get_everything(
    driver: Driver, tmp_path: Path, make: Callable[[], tuple[int, int]]
) -> None:
    path, data = big_file(tmp_path)
    ours, theirs = make()
    process = driver.start("cat", path, popen={"stdout": theirs})
    os.close(theirs)
    with os.fdopen(ours, "rb") as stream:
        assert stream.read() == data
    finish(process)
    assert driver.report().exit_status == 0


def test_a_file_is_appended_to(driver: Driver, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"before\n")
    with log.open("ab") as stream:
        driver.run("sh", "-c", "echo out; read x; echo err >&2", popen={"stdout": stream})
    assert log.read_bytes() == b"before\nout\n"


def test_an_output_that_we_closed_ourselves_is_only_recorded(tmp_path: Path) -> None:
    code = (
        "import os, sys\n"
        "from tooltrail.cli._process import run_child\n"
        "os.close(2)\n"
        "got = []\n"
        "note = lambda n, d: got.append((n, d))\n"
        "run_child(['sh', '-c', 'echo e >&2'], on_chunk=note, on_idle=int)\n"
        "print(got)\n"
    )
    done = subprocess.run([PYTHON, "-c", code], capture_output=True, check=True, timeout=60)
    assert done.stdout == b"[('stderr', b'e\\n')]\n"


def test_the_caller_may_flush_about_once_a_second(driver: Driver, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    # The child ends only when it is poked from on_idle.
    report = driver.run("sh", "-c", 'read x < "$0"; echo $x', str(fifo), poke_when_idle=str(fifo))
    assert report.stream("stdout") == b"go\n"
    assert report.idle_count >= 1
