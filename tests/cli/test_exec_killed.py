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

from tests.support.cli import Cli, python, without_coverage
from tests.support.effort import times
from tests.support.waiting import until

KILLS = times(6)
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


def test_a_kill_at_any_moment_leaves_the_call_complete_or_interrupted(cli: Cli) -> None:
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
            running *= 0.5
        kill(process)
        # The command inherits the lock of the call, and may end a little later.
        until(lambda: not cli.ok("log", "--json", "--state", "started").records)
        cli.ok("verify")
        rows = cli.ok("log", "-n", "0", "--json").records
        assert len(rows) <= run + 1
        assert {row["state"] for row in rows} <= {"interrupted", "success"}
        for row in rows:
            *_, number, _ = json.loads(cli.ok("show", row["id"], "--surface", "input").text)["argv"]
            line = f"{number}: some text that every line has\n".encode()
            # Nothing, where the kill came before the first second was over.
            printed = cli.run("show", row["id"], "--stream", "stdout").stdout
            assert (line * 80_000).startswith(printed)
    states = Counter(row["state"] for row in cli.ok("log", "-n", "0", "--json").records)
    assert midway >= KILLS // 2
    assert states["interrupted"] >= MIN_MIDWAY
    assert states["success"] >= 1
    # The store takes records as before.
    assert cli.exec("--", "echo", "after").stdout == b"after\n"
