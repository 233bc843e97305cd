"""`artifact grep -c` of a large artifact: counted by as many processes as there are cores."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from tests.cli.test_artifact_command import store_artifact
from tests.support.cli import HANG_S, Cli, kill_group, without_coverage

from tooltrail.artifacts._counting_processes import PROCESS_BYTES

BLOCK = b"".join(b"line %d\n" % n if n % 3 else b"no\r\n" for n in range(20_000))
TIMES = 2 * PROCESS_BYTES // len(BLOCK) + 1

COMMAND = """
import os, sys
import tooltrail.artifacts._counting_processes as processes
from tooltrail.cli.__main__ import main

count_parts = processes.count_parts

def count_after_the_other(*arguments):
    open(os.environ["GATE"]).close()
    return count_parts(*arguments)

# Two cores, whichever there are, and no part is counted before the other process wants one.
os.sched_getaffinity = lambda pid: {0, 1}
processes.count_parts = count_after_the_other
sys.executable = os.environ["WORKER"]
main()
"""
"""The command line, which starts its workers by another program and waits until one opens GATE."""


@pytest.fixture
def path(cli: Cli) -> str:
    return store_artifact(cli, BLOCK * TIMES)


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "gate")
    return tmp_path / "gate"


def environment(cli: Cli) -> dict[str, str]:
    """A process that is killed while it writes coverage data would leave it damaged."""
    return without_coverage(cli.full_environment)


def start(cli: Cli, gate: Path, code: str, *options: str) -> "subprocess.Popen[bytes]":
    """Start a search whose workers are started by a shell script."""
    worker = gate.with_name("worker")
    worker.write_text(f"#!/bin/sh\n{code}\n")
    worker.chmod(0o700)
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND, "artifact", "grep", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env={**environment(cli), "WORKER": str(worker), "GATE": str(gate)},
    )


def test_a_large_artifact_is_counted_by_processes_and_nothing_else_is_printed(
    cli: Cli, path: str, gate: Path
) -> None:
    wanted = BLOCK.count(b"line") * TIMES
    ended = cli.program("artifact", "grep", "-F", "-c", "line", path, env=environment(cli))
    assert (ended.code, ended.text, ended.message) == (0, f"{wanted}\n", "")
    code = f'echo noise >&2; : > "{gate}"; exec "{sys.executable}" "$@"'
    for options, count in (("-Fc", wanted), ("-Fvc", BLOCK.count(b"\n") * TIMES - wanted)):
        process = start(cli, gate, code, options, "line", path)
        assert process.communicate(timeout=HANG_S) == (b"%d\n" % count, b"")


def test_damage_is_said_as_it_is_when_threads_count(cli: Cli, path: str) -> None:
    stored = cli.folder / "artifacts" / path
    data = bytearray(stored.read_bytes())
    data[len(data) // 2] ^= 1
    stored.chmod(0o600)
    stored.write_bytes(data)
    ended = cli.program("artifact", "grep", "-F", "-c", "line", path, env=environment(cli))
    assert (ended.code, ended.stdout) == (1, b"")
    assert "in the frame at byte " in ended.sentence
    assert (
        ended.sentence
        == cli.run("artifact", "grep", "-F", "-c", "-m", "9" * 9, "line", path).sentence
    )


def test_an_interrupt_ends_the_command_and_its_processes_in_silence(
    cli: Cli, path: str, gate: Path
) -> None:
    pipe = gate.with_name("pipe")
    os.mkfifo(pipe)
    # Takes a part that it never counts, so that it is waited for.
    code = f"""exec "{sys.executable}" -c '
import json, os, signal, sys
os.read(json.loads(sys.stdin.readline())[-1], 16)
open("{gate}", "w").close()
with open("{pipe}", "w") as pipe:
    pipe.write("taken")
    pipe.flush()
    signal.pause()
'"""
    process = start(cli, gate, code, "-F", "-c", "line", path)
    try:
        with pipe.open() as waiting:
            assert waiting.read(5) == "taken"
            os.killpg(process.pid, signal.SIGINT)
            # The end comes when nobody has the pipe open for writing.
            assert waiting.read() == ""
        assert process.communicate(timeout=HANG_S) == (b"", b"")
        assert process.returncode == -signal.SIGINT
    finally:
        # Who was killed may not have been reaped yet.
        with suppress(ProcessLookupError):
            kill_group(process)
