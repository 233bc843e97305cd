"""A program that waits for more to print ends when its reader goes, and not before."""

import io
import os
import pty
import socket
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest
from tests.support.cli import Cli
from tests.support.spool_writer import SpoolWriter

from tooltrail.cli._waiting import wait_for_more

LONG_S = 120.0
"""Seconds that nobody waits for: by then the test hangs."""


@pytest.fixture
def writer(cli: Cli) -> Generator[SpoolWriter]:
    with SpoolWriter(cli.database, cli.folder / "artifacts", cli.spool) as process:
        yield process


def a_pipe() -> tuple[int, int]:
    return os.pipe()


def a_socket() -> tuple[int, int]:
    ours, theirs = socket.socketpair()
    return ours.detach(), theirs.detach()


def a_terminal() -> tuple[int, int]:
    return pty.openpty()


@contextmanager
def standard_output(fd: int) -> Generator[None]:
    """Standard output of this process for the block, which closes the descriptor."""
    with open(fd, "w", encoding="utf-8") as file, patch.object(sys, "stdout", file):
        yield


@pytest.mark.parametrize("make", [a_pipe, a_socket, a_terminal])
def test_a_wait_ends_when_the_other_end_is_closed(make: Callable[[], tuple[int, int]]) -> None:
    ours, theirs = make()
    with standard_output(theirs):
        wait_for_more(0.001)
        os.close(ours)
        with pytest.raises(BrokenPipeError, match="Broken pipe"):
            wait_for_more(LONG_S)


def test_a_file_and_the_null_device_have_no_reader_that_could_go(tmp_path: Path) -> None:
    for path in (tmp_path / "out", Path(os.devnull)):
        with path.open("w") as file, patch.object(sys, "stdout", file):
            wait_for_more(0.001)


def test_an_output_in_memory_is_waited_with() -> None:
    with patch.object(sys, "stdout", io.StringIO()):
        wait_for_more(0.001)


def test_an_output_that_was_closed_meanwhile_is_waited_with() -> None:
    ours, theirs = a_pipe()
    with standard_output(theirs):
        sys.stdout.close()
        wait_for_more(0.001)
    os.close(ours)
    # The descriptor alone, under the feet of its file.
    with Path(os.devnull).open("w") as file, patch.object(sys, "stdout", file):
        spare = os.dup(file.fileno())
        os.close(file.fileno())
        wait_for_more(0.001)
        os.dup2(spare, file.fileno())
        os.close(spare)


@contextmanager
def started(cli: Cli, *arguments: str, **more: int) -> Generator[subprocess.Popen[bytes]]:
    """The program, which is killed at the end should it still be there."""
    with cli.start(*arguments, **more) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("command", "line_count"), [("artifact tail -f {}", 1), ("log -f --ndjson", 1)]
)
def test_following_ends_with_its_reader_although_nothing_more_comes(
    cli: Cli, writer: SpoolWriter, command: str, line_count: int
) -> None:
    name = writer.do("start")
    writer.do("write stdout first")
    writer.do("flush stdout")
    with started(cli, *command.format(name).split()) as process:
        assert process.stdout
        seen = b""
        while seen.count(b"\n") < line_count:
            byte = process.stdout.read(1)
            assert byte, "it has ended"
            seen += byte
        process.stdout.close()
        assert process.communicate(timeout=LONG_S)[1] == b""
        assert process.returncode == 141
    # The tool is none the wiser.
    writer.do("write stdout last")
    writer.do("close stdout")
    writer.do("finish")
    assert cli.ok("artifact", "tail", "-f", name).stdout == b"first\nlast\n"


def test_following_into_a_file_goes_on_to_the_end(
    cli: Cli, writer: SpoolWriter, tmp_path: Path
) -> None:
    name = writer.do("start")
    writer.do("write stdout first")
    writer.do("flush stdout")
    with (
        (tmp_path / "out").open("wb") as file,
        started(cli, "log", "-f", "--invocation", name, stdout=file.fileno()) as log,
        started(cli, "artifact", "tail", "-f", name) as tail,
    ):
        assert tail.stdout
        assert tail.stdout.read(1) == b"f"
        writer.do("close stdout")
        writer.do("finish")
        for process in (tail, log):
            process.communicate(timeout=LONG_S)
            assert process.returncode == 0
    assert b"  ok  " in (tmp_path / "out").read_bytes()
