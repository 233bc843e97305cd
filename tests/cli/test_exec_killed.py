"""`kill -9` of exec at any moment: the store opens, and whatever it holds is whole."""

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import zstandard
from tests.support.cli import Cli, python, without_coverage
from tests.support.effort import times

KILLS = times(8)
MIN_MIDWAY = 2
"""Kills that must hit a running command, or the test proves too little."""

# Another content in each run, so that every run publishes an artifact of its own.
PRINT = """
import os, sys, time
open(sys.argv[2], "x").close()
line = b"%s: some text that every line has\\n" % sys.argv[1].encode()
for n in range(40):
    os.write(1, line * 2000)
    time.sleep(0.004)
"""


def start(cli: Cli, run: int) -> subprocess.Popen[bytes]:
    mark = str(mark_of(cli, run))
    return cli.start(
        *("exec", "--", *python(PRINT), str(run), mark),
        stdout=subprocess.DEVNULL,
        # What is killed saves none, and would take its time for it.
        env=without_coverage(cli.full_environment),
    )


def mark_of(cli: Cli, run: int) -> Path:
    """A file that is there once the command of a run has started."""
    return cli.folder / f"began-{run}"


def wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    while not path.exists():
        assert process.poll() is None
        time.sleep(0.001)


def whole_run(cli: Cli) -> tuple[float, float]:
    """Seconds until the command has started, and from then until the record is finished."""
    clock = time.monotonic()
    with start(cli, 0) as process:
        wait_for(mark_of(cli, 0), process)
        began = time.monotonic()
        assert process.wait(60) == 0
    with cli.open() as store:
        took = store.reader.invocation("@last").summary.duration_ms
    assert took
    return began - clock, took / 1000


def kill(process: subprocess.Popen[bytes]) -> None:
    """End exec and its command's group as `kill -9` does."""
    groups = [process.pid, *children_of(process.pid)]
    process.kill()
    for group in groups:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
    with process:
        process.wait(60)


def children_of(pid: int) -> list[int]:
    """The command of exec leads a group of its own; where /proc is not, its pipe ends it."""
    with suppress(OSError):
        return [
            int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        ]
    return []


def spooled(cli: Cli, invocation: str) -> bytes:
    """What the whole frames in the spool of an invocation hold."""
    stored = cli.folder / "spool" / invocation / "stdout.zst"
    if not stored.exists():
        return b""
    with stored.open("rb") as file:
        reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        return reader.read()


def test_a_kill_at_any_moment_leaves_the_invocation_started_or_complete(cli: Cli) -> None:
    beginning, running = whole_run(cli)
    midway = 0
    for run in range(1, KILLS + 1):
        process = start(cli, run)
        # A quarter anywhere, the others where there is something to lose.
        if run % 4 == 0:
            time.sleep(random.uniform(0, beginning + running))
        else:
            wait_for(mark_of(cli, run), process)
            time.sleep(random.uniform(0, running * 1.1))
        if process.poll() is None:
            midway += 1
        else:
            # The machine is quicker than it was when the whole run was measured.
            running *= 0.8
        kill(process)
        with cli.open() as store:
            views = store.reader.invocations().items
            details = [store.reader.invocation(view.id) for view in views]
        assert len(details) <= run + 1
        assert {detail.summary.state for detail in details} <= {"started", "success"}
        for detail in details:
            if detail.summary.state == "started":
                *_, number, _ = json.loads(detail.arguments)["argv"]
                line = f"{number}: some text that every line has\n".encode()
                assert (line * 80_000).startswith(spooled(cli, str(detail.summary.id)))
    states = Counter(row["state"] for row in cli.ok("log", "-n", "0", "--json").records)
    assert midway >= KILLS // 2
    assert states["started"] >= MIN_MIDWAY
    assert states["success"] >= 1
    # What was killed is told, and the store takes records as before.
    assert f"{states['started']} invocations of killed programs" in cli.ok("status").message
    assert cli.exec("--", "echo", "after").stdout == b"after\n"
